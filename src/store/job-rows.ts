/** Rows of jobs as records, and the bookkeeping of how many there are. */

import { type Kysely, type Selectable, sql, type Transaction } from 'kysely';
import { turnOfOthers } from '../shared/turn.ts';
import type { Claim, ClaimedJob, JobRecord, Turn } from './job-queue.ts';
import { quickTransaction } from './quick-transaction.ts';
import type { Database, JobsTable } from './schema.ts';

/** Written into the statement: SQLite does not look into an index of waiting jobs for a status it gets as a parameter. */
export const WAITING = sql.lit('queued');
export const RUNNING = sql.lit('running');

export type JobRow = Selectable<JobsTable>;

export function toRecord(row: JobRow): JobRecord {
  return {
    id: row.id,
    keyId: row.key_id,
    status: row.status,
    timeoutMs: row.timeout_ms,
    memoryMb: row.memory_mb,
    createdAtMs: row.created_at,
    startedAtMs: row.started_at,
    finishedAtMs: row.finished_at,
    summary: row.summary,
    resultBytes: row.result_bytes,
  };
}

export function toClaimed(row: JobRow): ClaimedJob {
  return { ...toRecord(row), token: row.token, losses: row.losses };
}

/** The row of a claim that still holds. */
export async function held(
  transaction: Transaction<Database>,
  { id, token }: Claim,
): Promise<JobRow | undefined> {
  return transaction
    .selectFrom('jobs')
    .where('id', '=', id)
    .where('status', '=', RUNNING)
    .where('token', '=', token)
    .selectAll()
    .executeTakeFirst();
}

/** The waiting job whose turn it is. */
export async function nextJob(
  db: Kysely<Database>,
  { afterKeyId, except }: Turn,
): Promise<JobRow | undefined> {
  let waiting = db
    .selectFrom('jobs')
    .where('status', '=', WAITING)
    .orderBy('key_id')
    .orderBy('id')
    .limit(1)
    .selectAll();
  if (except.length > 0) waiting = waiting.where('key_id', 'not in', except);
  return (
    (await waiting.where('key_id', '>', afterKeyId).executeTakeFirst()) ??
    (await waiting.where('key_id', '<=', afterKeyId).executeTakeFirst())
  );
}

/** How many jobs of a key wait; no more than `max` are counted. */
export async function queuedCount(db: Kysely<Database>, keyId: string, max: number): Promise<number> {
  const waiting = db
    .selectFrom('jobs')
    .where('key_id', '=', keyId)
    .where('status', '=', WAITING)
    .select('id')
    .limit(max)
    .as('waiting');
  const { count } = await db
    .selectFrom(waiting)
    .select((select) => select.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

/** Bytes of a job's program. */
export function programBytesOf(row: Pick<JobRow, 'code_bytes' | 'stdin_bytes' | 'inputs_bytes'>): number {
  return row.code_bytes + row.stdin_bytes + row.inputs_bytes;
}

export interface JobTotals {
  jobs: number;
  bytes: number;
}

/** How many jobs are kept and how large they are together. Counting them anew would take a millisecond each time. */
export async function readTotals(db: Kysely<Database>): Promise<JobTotals> {
  return db.selectFrom('job_totals').select(['jobs', 'bytes']).executeTakeFirstOrThrow();
}

export async function addToTotals(transaction: Transaction<Database>, more: JobTotals): Promise<void> {
  await transaction
    .updateTable('job_totals')
    .set((column) => ({
      jobs: column('jobs', '+', more.jobs),
      bytes: column('bytes', '+', more.bytes),
    }))
    .execute();
}

/** Jobs that are removed in one transaction. */
const REMOVED_AT_ONCE = 100;

/** Removes the jobs that ended by then. Answers their ids as they go; their results are removed later (job-pieces.ts). */
export async function* removeEnded(db: Kysely<Database>, untilMs: number): AsyncGenerator<string[]> {
  const old = db.selectFrom('jobs').where('finished_at', '<=', untilMs).select('id').limit(REMOVED_AT_ONCE);
  for (let removed = REMOVED_AT_ONCE; removed === REMOVED_AT_ONCE; ) {
    const rows = await quickTransaction(db, async (transaction) => {
      const deleted = await transaction
        .deleteFrom('jobs')
        .where('id', 'in', old)
        .returning(['id', 'result_bytes'])
        .execute();
      const bytes = deleted.reduce((sum, row) => sum + row.result_bytes, 0);
      await addToTotals(transaction, { jobs: -deleted.length, bytes: -bytes });
      return deleted;
    });
    yield rows.map(({ id }) => id);
    removed = rows.length;
    await turnOfOthers();
  }
}

/** Writes down how many jobs are kept and how large they are, whatever was written down before. */
export async function countAnew(transaction: Transaction<Database>): Promise<void> {
  const programs = sql<number>`code_bytes + stdin_bytes + inputs_bytes`;
  const size = sql<number>`case when finished_at is null then ${programs} else result_bytes end`;
  const { jobs, bytes } = await transaction
    .selectFrom('jobs')
    .select(({ fn }) => [fn.countAll<number>().as('jobs'), fn.sum<number | null>(size).as('bytes')])
    .executeTakeFirstOrThrow();
  await transaction
    .updateTable('job_totals')
    .set({ jobs, bytes: bytes ?? 0 })
    .execute();
}

/**
 * Removes ended jobs until all that are left, `room` added, are within bounds: at first those of the key that needs the
 * room, the oldest first, so that filling the store hurts who fills it; then those that ended first. Their results are
 * removed later (job-pieces.ts).
 * @returns the ids, and whether it was enough: what has not ended stays.
 */
export async function makeRoom(
  transaction: Transaction<Database>,
  room: JobTotals,
  { bounds, keyId }: { bounds: JobTotals; keyId: string },
): Promise<{ removed: string[]; fits: boolean }> {
  const totals = await readTotals(transaction);
  const removed: string[] = [];
  const gone = { jobs: 0, bytes: 0 };
  const fits = () =>
    totals.jobs + room.jobs - gone.jobs <= bounds.jobs &&
    totals.bytes + room.bytes - gone.bytes <= bounds.bytes;
  const ended = transaction
    .selectFrom('jobs')
    .where('finished_at', 'is not', null)
    .select(['id', 'result_bytes'])
    .limit(1);
  while (!fits()) {
    const oldest =
      (await ended.where('key_id', '=', keyId).orderBy('id').executeTakeFirst()) ??
      (await ended.orderBy('finished_at').orderBy('id').executeTakeFirst());
    if (oldest === undefined) break;
    await transaction.deleteFrom('jobs').where('id', '=', oldest.id).execute();
    removed.push(oldest.id);
    gone.jobs++;
    gone.bytes += oldest.result_bytes;
  }
  if (gone.jobs > 0) await addToTotals(transaction, { jobs: -gone.jobs, bytes: -gone.bytes });
  return { removed, fits: fits() };
}
