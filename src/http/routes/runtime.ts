import { type Static, Type } from 'typebox';
import { FIELD_BYTES_MAX, limitRange, MEMORY_MB_MIN } from '../../runs/limits.ts';
import type { App } from '../app.ts';
import { callersKey } from '../caller.ts';
import { KEPT, RULES } from './runtime-rules.ts';

/** What the route needs to know of the Python runtime. */
export interface RuntimeDescription {
  python: { version: string };
  packages: { name: string; version: string }[];
}

const limit = Type.Object({ min: Type.Integer(), max: Type.Integer(), default: Type.Integer() });

const runtimeSchema = Type.Object(
  {
    python: Type.Object({ version: Type.String({ examples: ['3.11.2'] }) }),
    packages: Type.Array(Type.Object({ name: Type.String(), version: Type.String() }), {
      description: 'What a program can import besides the standard library.',
    }),
    limits: Type.Object(
      {
        timeout_ms: limit,
        memory_mb: limit,
        code_bytes: Type.Integer(),
        stdin_bytes: Type.Integer(),
        inputs_bytes: Type.Integer(),
        stdout_bytes: Type.Integer({ description: 'Kept of what is written; the same for stderr.' }),
        output_bytes: Type.Integer({
          description: 'A program that writes more than this in all is stopped.',
        }),
        images: Type.Integer(),
        image_bytes: Type.Integer(),
        images_bytes: Type.Integer(),
        threads: Type.Integer(),
      },
      { description: 'What holds for the key that asks.' },
    ),
    rules: Type.Array(Type.String(), { description: 'What to know before writing a program.' }),
  },
  { description: 'What programs meet.' },
);

/** `GET /v1/runtime`: what an agent needs before it writes code. */
export function runtimeRoute(app: App, options: { runtime: RuntimeDescription; memoryMbMax: number }): void {
  const { python, packages } = options.runtime;
  app.route({
    method: 'GET',
    url: '/v1/runtime',
    config: { access: 'key' },
    schema: {
      operationId: 'runtime',
      summary: 'Python version, packages, limits and rules',
      response: { 200: runtimeSchema },
    },
    handler: async (request): Promise<Static<typeof runtimeSchema>> => {
      const { max, default: byDefault } = limitRange(callersKey(request).limits, options.memoryMbMax);
      return {
        python: { version: python.version },
        packages: packages.map(({ name, version }) => ({ name, version })),
        limits: {
          timeout_ms: { min: 1, max: max.timeout_ms, default: byDefault.timeout_ms },
          memory_mb: { min: MEMORY_MB_MIN, max: max.memory_mb, default: byDefault.memory_mb },
          code_bytes: FIELD_BYTES_MAX.code,
          stdin_bytes: FIELD_BYTES_MAX.stdin,
          inputs_bytes: FIELD_BYTES_MAX.inputs,
          ...KEPT,
        },
        rules: RULES,
      };
    },
  });
}
