/** The `Run` of the contract as JSON Schema: what answers are serialised by and the OpenAPI document shows. */

import { type Static, Type } from 'typebox';
import { RUN_STATUSES, type Run, type RunStatus } from '../runs/run.ts';
import { nullable } from './nullable.ts';

const value = Type.Object(
  {
    type: Type.String({ description: "The class's `__name__`." }),
    text: Type.String({ description: 'Its repr, as a notebook shows it; at most 64 KiB.' }),
    html: nullable(Type.String({ description: '`_repr_html_`; untrusted: show it in a sandboxed frame.' })),
    json: Type.Unknown({
      description:
        'The value as JSON where that applies (DataFrame, Series, dict, list, scalars), else null.',
    }),
  },
  {
    description:
      'Value of the last expression. Null for None, after a trailing `;`, or when there is none. It is not printed.',
  },
);

const image = Type.Object({
  format: Type.String({ examples: ['png'] }),
  media_type: Type.String({ examples: ['image/png'] }),
  data: Type.String({ description: 'Base64.' }),
  width: nullable(Type.Integer({ description: 'Pixels.' })),
  height: nullable(Type.Integer({ description: 'Pixels.' })),
  name: nullable(Type.String({ description: 'The name that the program saved it under.' })),
  title: nullable(Type.String()),
});

const error = Type.Object(
  {
    type: Type.String({
      description:
        'Stable: the exception class, or SystemExit, NonZeroExit, TimedOut, MemoryError, OutputExceeded, Crashed, Cancelled, Lost.',
    }),
    message: Type.String(),
    line: nullable(Type.Integer({ description: "A line of the caller's code, counted from 1." })),
    traceback: nullable(Type.String()),
    hint: nullable(Type.String({ description: 'How to live with a rule of the sandbox.' })),
  },
  { description: 'Why the run did not succeed. Null only for queued, running and succeeded.' },
);

const truncated = Type.Object(
  {
    stdout: Type.Boolean(),
    stderr: Type.Boolean(),
    value: Type.Boolean(),
    images: Type.Boolean(),
  },
  { description: 'What was cut because it was larger than is kept.' },
);

const usage = Type.Object({
  queue_ms: nullable(Type.Integer({ description: 'Time spent waiting for a free slot.' })),
  wall_ms: nullable(Type.Integer()),
  cpu_ms: nullable(Type.Integer()),
  peak_memory_mb: nullable(
    Type.Number({
      description: 'Growth of peak resident memory over the loaded interpreter, in MB of 2^20 bytes.',
    }),
  ),
});

const limits = Type.Object(
  { timeout_ms: Type.Integer(), memory_mb: Type.Integer() },
  { description: 'The limits in force.' },
);

const time = (description: string) => Type.String({ description, format: 'date-time' });

export const runSchema = Type.Object(
  {
    id: Type.String({ description: '`run_` and a UUIDv7.' }),
    status: Type.Unsafe<RunStatus>({ type: 'string', enum: RUN_STATUSES }),
    exit_code: nullable(
      Type.Integer({
        description:
          '0 to 255, as the shell would see it; null when a signal or the supervisor ended the run.',
      }),
    ),
    stdout: Type.String({ description: 'What was written to file descriptor 1; at most 1 MiB is kept.' }),
    stderr: Type.String({ description: 'What was written to file descriptor 2; at most 1 MiB is kept.' }),
    value: nullable(value),
    images: Type.Array(image, { description: 'Figures in the order they were shown.' }),
    error: nullable(error),
    truncated,
    usage,
    limits,
    created_at: time('UTC.'),
    started_at: nullable(time('UTC.')),
    finished_at: nullable(time('UTC.')),
  },
  {
    $id: 'Run',
    description: 'One execution. Every field is always present.',
    examples: [exampleRun()],
  },
);

/**
 * `Described` while the schema has every field of it and no other, each of the same type; otherwise never, and the
 * routes that answer with it no longer compile.
 */
type Exactly<Schema, Described> = [Schema] extends [Described]
  ? [Described] extends [Schema]
    ? Described
    : never
  : never;

/** The schema as a reference to the shared one, so that the document describes a Run once. */
export const runReference = Type.Unsafe<Exactly<Static<typeof runSchema>, Run>>({ $ref: 'Run#' });

function exampleRun(): Run {
  return {
    id: 'run_0199f3a2-6c1e-7d4b-9a53-2f8e5b1c7d90',
    status: 'succeeded',
    exit_code: 0,
    stdout: '42\n',
    stderr: '',
    value: null,
    images: [],
    error: null,
    truncated: { stdout: false, stderr: false, value: false, images: false },
    usage: { queue_ms: 0, wall_ms: 3, cpu_ms: 2, peak_memory_mb: 0.4 },
    limits: { timeout_ms: 30_000, memory_mb: 512 },
    created_at: '2026-01-31T12:00:00.000Z',
    started_at: '2026-01-31T12:00:00.001Z',
    finished_at: '2026-01-31T12:00:00.004Z',
  };
}
