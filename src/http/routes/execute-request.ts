/** The body of `POST /v1/execute`: its schema, and the rules that JSON Schema cannot say. */

import { type Static, Type } from 'typebox';
import {
  FIELD_BYTES_MAX,
  type LimitRange,
  MEMORY_MB_DEFAULT,
  MEMORY_MB_MIN,
  resolveLimits,
  TIMEOUT_MS_DEFAULT,
  TIMEOUT_MS_MAX,
} from '../../runs/limits.ts';
import type { ExecutionRequest } from '../../sandbox/execution.ts';
import { type FieldError, invalidRequest } from '../../shared/errors.ts';
import { escapePointer } from '../json-body.ts';

/** The schema of the body. `memoryMbMax` is the service's ceiling. */
export function executeBodySchema(memoryMbMax: number) {
  return Type.Object(
    {
      code: Type.String({
        description: 'The Python program, run unchanged as `main.py`. At most 1 MiB of UTF-8.',
      }),
      stdin: Type.Optional(
        Type.String({
          description: 'What `input()` and `sys.stdin` read. At most 4 MiB of UTF-8.',
          default: '',
        }),
      ),
      inputs: Type.Optional(
        Type.Unsafe<Record<string, unknown>>({
          type: 'object',
          additionalProperties: true,
          description:
            'A global dict `inputs` in the program, parsed by Python from the JSON text as it was sent. At most 4 MiB.',
          default: {},
        }),
      ),
      timeout_ms: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: TIMEOUT_MS_MAX,
          description: `Running time after which the program is stopped. By default ${TIMEOUT_MS_DEFAULT} or the key's maximum, whichever is lower.`,
        }),
      ),
      memory_mb: Type.Optional(
        Type.Integer({
          minimum: MEMORY_MB_MIN,
          maximum: memoryMbMax,
          description: `Memory on top of the loaded interpreter and libraries, in MB of 2^20 bytes. By default ${MEMORY_MB_DEFAULT} or the key's maximum, whichever is lower. scikit-learn and seaborn want 128.`,
        }),
      ),
    },
    {
      additionalProperties: false,
      examples: [
        { code: 'print(6 * 7)' },
        {
          code: "print(sum(inputs['prices']), input())",
          stdin: 'EUR\n',
          inputs: { prices: [9.5, 3] },
          timeout_ms: 5000,
          memory_mb: 256,
        },
      ],
    },
  );
}

export type ExecuteBody = Static<ReturnType<typeof executeBodySchema>>;

/**
 * The execution that a body of the right schema asks for.
 * @param members The text of each of its members, as sent.
 * @throws ServiceError `invalid_request` with everything that is wrong.
 */
export function toExecutionRequest(
  body: ExecuteBody,
  members: Map<string, string>,
  range: LimitRange,
): ExecutionRequest {
  const errors: FieldError[] = [];
  const { code, stdin = '', inputs } = body;
  const inputsJson = members.get('inputs') ?? '{}';
  checkText('/code', code, FIELD_BYTES_MAX.code, errors);
  checkText('/stdin', stdin, FIELD_BYTES_MAX.stdin, errors);
  checkSize('/inputs', inputsJson, FIELD_BYTES_MAX.inputs, errors);
  // The body was valid UTF-8, so only an escape can make half a surrogate pair.
  if (/\\u[dD][89a-fA-F]/.test(inputsJson)) {
    const path = loneSurrogatePath(inputs, '/inputs');
    if (path !== null) errors.push({ path, message: LONE_SURROGATE });
  }
  const limits = resolveLimits(body, range, errors);
  if (errors.length > 0) throw invalidRequest(errors);
  return { code, stdin, inputsJson, timeoutMs: limits.timeout_ms, memoryMb: limits.memory_mb };
}

const LONE_SURROGATE =
  'has half a surrogate pair (\\ud800 to \\udfff), which is not a character: leave it out';

function checkText(path: string, text: string, bytesMax: number, errors: FieldError[]): void {
  if (!text.isWellFormed()) errors.push({ path, message: LONE_SURROGATE });
  checkSize(path, text, bytesMax, errors);
}

function checkSize(path: string, text: string, bytesMax: number, errors: FieldError[]): void {
  const bytes = Buffer.byteLength(text);
  if (bytes > bytesMax) {
    errors.push({ path, message: `is ${bytes} bytes of UTF-8 long; at most ${bytesMax} are allowed` });
  }
}

/** JSON Pointer of the first text, name or value, that has half a surrogate pair. Depth was bounded before. */
function loneSurrogatePath(value: unknown, path: string): string | null {
  if (typeof value === 'string') return value.isWellFormed() ? null : path;
  if (typeof value !== 'object' || value === null) return null;
  for (const [name, member] of Object.entries(value)) {
    const memberPath = `${path}/${escapePointer(name)}`;
    const found = name.isWellFormed() ? loneSurrogatePath(member, memberPath) : memberPath;
    if (found !== null) return found;
  }
  return null;
}
