/** Usage as JSON Schema. Answers are not serialised by it, because they are written while they are read. */

import { type TInteger, Type } from 'typebox';
import { GROUPINGS } from '../usage/range.ts';
import { REFUSAL_CODES } from '../usage/refusals.ts';
import { CHARGED_STATUSES } from '../usage/report.ts';
import { nullable } from './nullable.ts';

const counts = (names: readonly string[], description: string) =>
  Type.Object(Object.fromEntries(names.map((name) => [name, Type.Integer()])) as Record<string, TInteger>, {
    description,
  });

const sums = {
  runs: counts(CHARGED_STATUSES, 'Runs that have ended, by status. All of them are charged.'),
  refused: counts(REFUSAL_CODES, 'Requests that were refused, by error code. None of them is charged.'),
  wall_ms: Type.Integer({ description: 'Sum of `usage.wall_ms`.' }),
  cpu_ms: Type.Integer({ description: 'Sum of `usage.cpu_ms`.' }),
  queue_ms: Type.Integer({ description: 'Sum of `usage.queue_ms`.' }),
  memory_mb_seconds: Type.Number({
    description: 'Sum of `limits.memory_mb` × `usage.wall_ms`, in MB of 2^20 bytes × seconds.',
  }),
  bytes_in: Type.Integer({ description: '`code`, `stdin` and the JSON text of `inputs`, as UTF-8.' }),
  bytes_out: Type.Integer({
    description: '`stdout`, `stderr`, `value.text` and `value.html` as UTF-8, and images before base64.',
  }),
  images: Type.Integer(),
};

export const usageSchema = Type.Object({
  from: Type.String({ format: 'date-time' }),
  to: Type.String({ format: 'date-time' }),
  group_by: Type.Unsafe<string>({ type: 'string', enum: GROUPINGS }),
  data: Type.Array(
    Type.Object({
      period: Type.String({
        description: 'Its start, UTC, as far as it is needed.',
        examples: ['2026-01-31T12:00:00Z', '2026-01-31', '2026-01'],
      }),
      key_id: Type.String(),
      key_name: Type.String({ description: 'As the key is called today.' }),
      team: nullable(Type.String({ description: 'The team that the key belongs to today.' })),
      ...sums,
    }),
    { description: 'Oldest period first, by key id within it. Periods without usage are left out.' },
  ),
  totals: Type.Object(sums, { description: 'Of everything in `data`.' }),
});
