/** Jobs in lists, as JSON Schema. */

import { Type } from 'typebox';
import { nextCursorSchema } from './cursor.ts';
import { runSchema } from './run-schema.ts';

const { stdout: _, stderr: __, value: ___, images: ____, error, ...kept } = runSchema.properties;

/** A Run without what may be large. */
export const jobSummarySchema = Type.Object(
  {
    ...kept,
    error: Type.Unsafe<unknown>({
      type: ['object', 'null'],
      description: 'As in a Run, without `traceback`.',
      properties: Object.fromEntries(
        Object.entries((error as unknown as { properties: object }).properties).filter(
          ([name]) => name !== 'traceback',
        ),
      ),
    }),
  },
  {
    $id: 'JobSummary',
    description:
      'A job in a list: a Run without `stdout`, `stderr`, `value`, `images` and `error.traceback`.',
  },
);

/** A page of jobs. It is written as it is stored. */
export const jobListSchema = Type.Unsafe<string>(
  Type.Object(
    {
      data: Type.Array(Type.Unsafe<unknown>({ $ref: 'JobSummary#' })),
      next_cursor: nextCursorSchema,
    },
    { description: 'A page of jobs.' },
  ),
);
