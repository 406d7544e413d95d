import type { Kysely } from 'kysely';
import { JobPieces } from './job-pieces.ts';
import type { JobLoad, JobReader, JobRecord, JobSelection, Turn } from './job-queue.ts';
import { nextJob, queuedCount, RUNNING, toRecord, WAITING } from './job-rows.ts';
import type { Database } from './schema.ts';

/** Jobs in SQLite, for reading. */
export class StoredJobs implements JobReader {
  readonly #db: Kysely<Database>;
  readonly #pieces: JobPieces;

  constructor(db: Kysely<Database>) {
    this.#db = db;
    this.#pieces = new JobPieces(db);
  }

  async unended(keyId: string, limit: number): Promise<string[]> {
    const rows = await this.#db
      .selectFrom('jobs')
      .where('key_id', '=', keyId)
      .where('status', 'in', ['queued', 'running'])
      .where('cancel_requested', '=', 0)
      .limit(limit)
      .select('id')
      .execute();
    return rows.map(({ id }) => id);
  }

  async nextKeyId(turn: Turn): Promise<string | null> {
    return (await nextJob(this.#db, turn))?.key_id ?? null;
  }

  async anyWaiting(): Promise<boolean> {
    const waiting = this.#db.selectFrom('jobs').where('status', '=', WAITING).select('id').limit(1);
    return (await waiting.executeTakeFirst()) !== undefined;
  }

  async queuedCount(keyId: string, max: number): Promise<number> {
    return queuedCount(this.#db, keyId, max);
  }

  async load(nowMs: number): Promise<JobLoad> {
    const { queued, oldestQueuedAtMs } = await this.#db
      .selectFrom('jobs')
      .where('status', '=', WAITING)
      .select(({ fn }) => [
        fn.countAll<number>().as('queued'),
        fn.min<number | null>('created_at').as('oldestQueuedAtMs'),
      ])
      .executeTakeFirstOrThrow();
    const { running } = await this.#db
      .selectFrom('jobs')
      .where('status', '=', RUNNING)
      .select(({ fn }) => fn.countAll<number>().as('running'))
      .executeTakeFirstOrThrow();
    return { queued, running, oldestQueuedMs: nowMs - (oldestQueuedAtMs ?? nowMs) };
  }

  async endedAmong(ids: string[]): Promise<string[]> {
    if (ids.length === 0) return [];
    const unended = await this.#db
      .selectFrom('jobs')
      .where('id', 'in', ids)
      .where('finished_at', 'is', null)
      .select('id')
      .execute();
    const going = new Set(unended.map(({ id }) => id));
    return ids.filter((id) => !going.has(id));
  }

  async find(id: string, keyId: string | undefined): Promise<JobRecord | null> {
    let query = this.#db.selectFrom('jobs').where('id', '=', id).selectAll();
    if (keyId !== undefined) query = query.where('key_id', '=', keyId);
    const row = await query.executeTakeFirst();
    return row === undefined ? null : toRecord(row);
  }

  async list({ keyId, status, beforeId, limit }: JobSelection): Promise<JobRecord[]> {
    let query = this.#db.selectFrom('jobs').selectAll().orderBy('id', 'desc').limit(limit);
    if (keyId !== undefined) query = query.where('key_id', '=', keyId);
    if (status !== undefined) query = query.where('status', '=', status);
    if (beforeId !== undefined) query = query.where('id', '<', beforeId);
    return (await query.execute()).map(toRecord);
  }

  async *result(job: JobRecord): AsyncGenerator<Buffer> {
    const row = await this.#db
      .selectFrom('jobs')
      .where('id', '=', job.id)
      .select('token')
      .executeTakeFirstOrThrow();
    yield* this.#pieces.read(job.id, row.token, job.resultBytes);
  }
}
