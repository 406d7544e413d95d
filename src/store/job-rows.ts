/** Rows of jobs: which one is next, and as records. */

import { type Kysely, type Selectable, sql, type Transaction } from 'kysely';
import { PROGRAM } from './job-pieces.ts';
import type { Claim, ClaimedJob, JobRecord, NewJob, Turn } from './job-queue.ts';
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

/** The row of a job that is being accepted. */
export function toNewRow(job: NewJob): JobRow {
  const { code, stdin, inputsJson } = job.program;
  return {
    id: job.id,
    key_id: job.keyId,
    status: 'queued',
    timeout_ms: job.timeoutMs,
    memory_mb: job.memoryMb,
    created_at: job.createdAtMs,
    started_at: null,
    finished_at: null,
    worker: null,
    lease_until: null,
    token: PROGRAM,
    losses: 0,
    cancel_requested: 0,
    code_bytes: code.length,
    stdin_bytes: stdin.length,
    inputs_bytes: inputsJson.length,
    result_bytes: 0,
    summary: null,
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
