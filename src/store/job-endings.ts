import type { Transaction } from 'kysely';
import type { JobEnd, JobRecord } from './job-queue.ts';
import { addToKept, addToTotals, makeRoom } from './job-room.ts';
import { type JobRow, programBytesOf, toRecord } from './job-rows.ts';
import type { Database } from './schema.ts';
import type { RunCharge, UsageStore } from './usage-store.ts';

export interface JobEndingOptions {
  usage: Pick<UsageStore, 'addWithin'>;
  bounds: JobBounds;
  /** The end of a job that no program ends: one that is cancelled before it runs, or lost. */
  endWithoutRun: (job: JobRecord & { programBytes: number }, status: 'cancelled' | 'lost') => JobEnd;
}

export interface JobBounds {
  /** Jobs that are kept, ended or not. */
  jobs: number;
  /** Programs that wait and results that are kept, together. */
  bytes: number;
  /** How long an ended job is kept, in milliseconds. */
  retentionMs: number;
}

/** An end that is stored once its transaction is. */
export interface Ending {
  id: string;
  charge: RunCharge | null;
  /** Ids of other jobs, which had to go. */
  removed: string[];
}

/** The last step of a job's life, within the transaction of whoever takes it. */
export class JobEndings {
  readonly #options: JobEndingOptions;

  constructor(options: JobEndingOptions) {
    this.#options = options;
  }

  /** Under a token of its own, so that whoever still runs it comes too late. */
  async endWithoutRun(
    transaction: Transaction<Database>,
    row: JobRow,
    status: 'cancelled' | 'lost',
  ): Promise<Ending> {
    const end = this.#options.endWithoutRun({ ...toRecord(row), programBytes: programBytesOf(row) }, status);
    const token = row.token + 1;
    const content = Buffer.concat([...end.result()]);
    await transaction
      .insertInto('job_pieces')
      .values({ job_id: row.id, attempt: token, part: 0, content })
      .execute();
    return this.end(transaction, row, { token, resultBytes: content.length, end });
  }

  /** Stores how a job has ended, charges it, and makes room for its result. */
  async end(
    transaction: Transaction<Database>,
    row: JobRow,
    { token, resultBytes, end }: { token: number; resultBytes: number; end: JobEnd },
  ): Promise<Ending> {
    await transaction
      .updateTable('jobs')
      .set({
        status: end.status,
        started_at: end.startedAtMs,
        finished_at: end.finishedAtMs,
        worker: null,
        lease_until: null,
        token,
        result_bytes: resultBytes,
        summary: end.summary,
      })
      .where('id', '=', row.id)
      .execute();
    await addToTotals(transaction, { jobs: 0, bytes: resultBytes - programBytesOf(row) });
    await addToKept(transaction, row.key_id, { jobs: 1, bytes: resultBytes });
    if (end.charge !== null) await this.#options.usage.addWithin(transaction, [end.charge], []);
    const { removed } = await makeRoom(
      transaction,
      { jobs: 0, bytes: 0 },
      { bounds: this.#options.bounds, keyId: row.key_id },
    );
    return { id: row.id, charge: end.charge, removed };
  }
}
