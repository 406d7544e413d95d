import type { Kysely, Selectable } from 'kysely';
import { turnOfOthers } from '../shared/turn.ts';
import type { Database, UsageHoursTable } from './schema.ts';

/** An hour's row, with what its key is called today. */
export interface UsageHour extends Selectable<UsageHoursTable> {
  /** Null for a key that is not in the database: that of CODECELL_ADMIN_KEY. */
  key_name: string | null;
  team: string | null;
}

export interface UsageHourSelection {
  /** Start of the first hour. */
  fromMs: number;
  /** End of the last hour. */
  toMs: number;
  keyId?: string | undefined;
}

/** Rows that are read at once: 3 ms. */
const ROWS_AT_ONCE = 500;

/**
 * Reads usage hours by hour and key, some at a time: a million rows are four seconds of reading, in which runs and
 * other requests want their turn.
 */
export async function* usageHours(
  db: Kysely<Database>,
  { fromMs, toMs, keyId }: UsageHourSelection,
): AsyncGenerator<UsageHour[]> {
  let after = { hour: fromMs - 1, key_id: '', outcome: '' };
  for (;;) {
    let query = db
      .selectFrom('usage_hours')
      .leftJoin('keys', 'keys.id', 'usage_hours.key_id')
      .selectAll('usage_hours')
      .select(['keys.name as key_name', 'keys.team'])
      .where((where) =>
        where(
          where.refTuple('usage_hours.hour', 'usage_hours.key_id', 'usage_hours.outcome'),
          '>',
          where.tuple(after.hour, after.key_id, after.outcome),
        ),
      )
      .where('usage_hours.hour', '<', toMs)
      .orderBy('usage_hours.hour')
      .orderBy('usage_hours.key_id')
      .orderBy('usage_hours.outcome')
      .limit(ROWS_AT_ONCE);
    if (keyId !== undefined) query = query.where('usage_hours.key_id', '=', keyId);
    const rows = await query.execute();
    const last = rows.at(-1);
    if (last !== undefined) yield rows;
    if (last === undefined || rows.length < ROWS_AT_ONCE) return;
    after = last;
    await turnOfOthers();
  }
}
