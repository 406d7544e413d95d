/**
 * How many jobs are kept, how large they are, and which of them go when that is too much.
 *
 * Algorithm: what goes is the oldest ended job of the key that keeps most, of jobs or of bytes, whichever is short. So who
 * fills the store loses its own, and a key that keeps little loses nothing to one that keeps much. Sums by key are in a
 * table of their own, changed in the transaction of whatever changes them: to add them up would read every job.
 */

import { type Kysely, sql, type Transaction } from 'kysely';
import { turnOfOthers } from '../shared/turn.ts';
import { quickTransaction } from './quick-transaction.ts';
import type { Database } from './schema.ts';

export interface JobTotals {
  jobs: number;
  bytes: number;
}

/** Jobs that are removed in one transaction. */
const REMOVED_AT_ONCE = 100;

/** An ended job that is removed. */
interface Removed {
  id: string;
  key_id: string;
  result_bytes: number;
}

/** Adds to how many jobs there are, ended or not, and to how large they are together. */
export async function addToTotals(transaction: Transaction<Database>, more: JobTotals): Promise<void> {
  await transaction
    .updateTable('job_totals')
    .set((column) => ({
      jobs: column('jobs', '+', more.jobs),
      bytes: column('bytes', '+', more.bytes),
    }))
    .execute();
}

/** Adds to what a key keeps of ended jobs. */
export async function addToKept(
  transaction: Transaction<Database>,
  keyId: string,
  { jobs, bytes }: JobTotals,
): Promise<void> {
  await transaction
    .insertInto('jobs_kept')
    .values({ key_id: keyId, jobs, bytes })
    .onConflict((conflict) =>
      conflict.column('key_id').doUpdateSet((row) => ({
        jobs: row('jobs_kept.jobs', '+', row.ref('excluded.jobs')),
        bytes: row('jobs_kept.bytes', '+', row.ref('excluded.bytes')),
      })),
    )
    .execute();
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
  await transaction.deleteFrom('jobs_kept').execute();
  await transaction
    .insertInto('jobs_kept')
    .columns(['key_id', 'jobs', 'bytes'])
    .expression((query) =>
      query
        .selectFrom('jobs')
        .where('finished_at', 'is not', null)
        .groupBy('key_id')
        .select(({ fn }) => [
          'key_id',
          fn.countAll<number>().as('jobs'),
          fn.sum<number>('result_bytes').as('bytes'),
        ]),
    )
    .execute();
}

/** Removes the jobs that ended by then. Answers their ids as they go; their results are removed later (job-pieces.ts). */
export async function* removeEnded(db: Kysely<Database>, untilMs: number): AsyncGenerator<string[]> {
  for (let removed = REMOVED_AT_ONCE; removed === REMOVED_AT_ONCE; ) {
    const rows = await quickTransaction(db, async (transaction) => {
      const old = await transaction
        .selectFrom('jobs')
        .where('finished_at', '<=', untilMs)
        .select(['id', 'key_id', 'result_bytes'])
        .limit(REMOVED_AT_ONCE)
        .execute();
      await remove(transaction, old);
      return old;
    });
    yield rows.map(({ id }) => id);
    removed = rows.length;
    await turnOfOthers();
  }
}

/** Removes ended jobs until all are within bounds that may be lower than those before the start. */
export async function removeExcess(db: Kysely<Database>, bounds: JobTotals): Promise<void> {
  for (let removed = 1; removed > 0; ) {
    removed = await quickTransaction(db, async (transaction) => {
      const excess = await excessOf(transaction, NOTHING, bounds);
      return isNothing(excess) ? 0 : (await removeSome(transaction, excess, '')).length;
    });
    await turnOfOthers();
  }
}

/**
 * Removes ended jobs until all that are left, `room` added, are within bounds. Of keys that keep as much, the one that
 * needs the room loses. Results are removed later (job-pieces.ts).
 * @returns the ids, and whether it was enough: what has not ended stays.
 */
export async function makeRoom(
  transaction: Transaction<Database>,
  room: JobTotals,
  { bounds, keyId }: { bounds: JobTotals; keyId: string },
): Promise<{ removed: string[]; fits: boolean }> {
  const removed: string[] = [];
  for (;;) {
    const excess = await excessOf(transaction, room, bounds);
    if (isNothing(excess)) return { removed, fits: true };
    const some = await removeSome(transaction, excess, keyId);
    if (some.length === 0) return { removed, fits: false };
    removed.push(...some);
  }
}

const NOTHING: JobTotals = { jobs: 0, bytes: 0 };

function isNothing({ jobs, bytes }: JobTotals): boolean {
  return jobs <= 0 && bytes <= 0;
}

/** Removes some of what is too much, all of one key. Answers the ids: none when no job has ended. */
async function removeSome(
  transaction: Transaction<Database>,
  excess: JobTotals,
  keyId: string,
): Promise<string[]> {
  const measure = excess.jobs > 0 ? 'jobs' : 'bytes';
  const [most, second] = await transaction
    .selectFrom('jobs_kept')
    .where('jobs', '>', 0)
    .orderBy(measure, 'desc')
    .orderBy((column) => column('key_id', '=', keyId), 'desc')
    .selectAll()
    .limit(2)
    .execute();
  if (most === undefined) return [];
  const oldest = await transaction
    .selectFrom('jobs')
    .where('key_id', '=', most.key_id)
    .where('finished_at', 'is not', null)
    .orderBy('id')
    .select(['id', 'key_id', 'result_bytes'])
    .limit(REMOVED_AT_ONCE)
    .execute();
  const gone: Removed[] = [];
  // From then on it is another key that keeps most.
  let left = Math.min(excess[measure], Math.max(1, most[measure] - (second?.[measure] ?? 0)));
  for (const job of oldest) {
    if (left <= 0) break;
    gone.push(job);
    left -= measure === 'jobs' ? 1 : job.result_bytes;
  }
  await remove(transaction, gone);
  return gone.map(({ id }) => id);
}

/** By how much all jobs, `room` added, are over the bounds. */
async function excessOf(
  transaction: Transaction<Database>,
  room: JobTotals,
  bounds: JobTotals,
): Promise<JobTotals> {
  const totals = await transaction
    .selectFrom('job_totals')
    .select(['jobs', 'bytes'])
    .executeTakeFirstOrThrow();
  return {
    jobs: totals.jobs + room.jobs - bounds.jobs,
    bytes: totals.bytes + room.bytes - bounds.bytes,
  };
}

async function remove(transaction: Transaction<Database>, jobs: Removed[]): Promise<void> {
  if (jobs.length === 0) return;
  await transaction
    .deleteFrom('jobs')
    .where(
      'id',
      'in',
      jobs.map(({ id }) => id),
    )
    .execute();
  for (const [keyId, its] of Map.groupBy(jobs, ({ key_id }) => key_id)) {
    const bytes = its.reduce((sum, job) => sum + job.result_bytes, 0);
    await addToKept(transaction, keyId, { jobs: -its.length, bytes: -bytes });
    await addToTotals(transaction, { jobs: -its.length, bytes: -bytes });
  }
}
