/**
 * The queue of jobs in SQLite (see job-queue.ts for what it promises).
 *
 * Durability: what its callers may have been told of (a job accepted, cancelled, ended) waits for the disk. Claims and
 * leases do not: a machine that stops forgets them, and the jobs are queued again.
 *
 * Cost with 10,000 waiting jobs of 100 keys: 0.25 ms to accept a job of many at once, 0.2 ms to claim the next one,
 * 0.7 ms to end it. The next job of the next key is one step in an index of waiting jobs alone.
 * Choosing the key by who was served longest ago would need a row per key, written with every claim; going round by key
 * id needs no memory.
 */

import type { Kysely, Transaction } from 'kysely';
import type { Clock } from '../shared/clock.ts';
import { turnOfOthers } from '../shared/turn.ts';
import { DurableTransactions } from './durable-transactions.ts';
import { type Ending, type JobEndingOptions, JobEndings } from './job-endings.ts';
import { JobPieces, PROGRAM } from './job-pieces.ts';
import {
  type Cancelled,
  type Claim,
  type ClaimedJob,
  type Enqueued,
  type JobEnd,
  type JobProgram,
  type JobQueue,
  LOSSES_MAX,
  type NewJob,
  type Turn,
} from './job-queue.ts';
import { addToTotals, countAnew, makeRoom, removeEnded, removeExcess } from './job-room.ts';
import {
  held,
  type JobRow,
  nextJob,
  programBytesOf,
  queuedCount,
  RUNNING,
  toClaimed,
  toNewRow,
} from './job-rows.ts';
import { quickTransaction } from './quick-transaction.ts';
import type { Database } from './schema.ts';
import type { RunCharge } from './usage-store.ts';

export interface JobStoreOptions extends JobEndingOptions {
  db: Kysely<Database>;
  clock: Clock;
  /** Names this process among all that take jobs from the database. */
  worker: string;
  /** How long a claim holds without being renewed, in milliseconds. */
  leaseMs: number;
}

/** Jobs that are taken over in one transaction. */
const TAKEN_AT_ONCE = 100;

export class JobStore implements JobQueue {
  readonly #options: JobStoreOptions;
  readonly #db: Kysely<Database>;
  readonly #durable: DurableTransactions;
  readonly #pieces: JobPieces;
  readonly #endings: JobEndings;
  /** Jobs that there may be pieces of which nobody needs. */
  readonly #rubbish = new Set<string>();
  onQueued: () => void = () => undefined;
  onEnded: (id: string, charge: RunCharge | null) => void = () => undefined;

  constructor(options: JobStoreOptions) {
    this.#options = options;
    this.#db = options.db;
    this.#durable = new DurableTransactions(options.db);
    this.#pieces = new JobPieces(options.db);
    this.#endings = new JobEndings(options);
  }

  async enqueue(
    job: NewJob,
    queuedMax: number | null,
    alongside: (transaction: Transaction<Database>) => Promise<void> = async () => undefined,
  ): Promise<Enqueued> {
    let answer: Enqueued | string[] | undefined;
    try {
      answer = await this.#accept(job, queuedMax, alongside);
    } finally {
      if (!Array.isArray(answer)) this.#rubbish.add(job.id);
    }
    if (!Array.isArray(answer)) return answer;
    for (const id of answer) this.#rubbish.add(id);
    this.onQueued();
    return 'queued';
  }

  /** Answers the ids of the jobs that had to go for it, or why it is not accepted. */
  async #accept(
    job: NewJob,
    queuedMax: number | null,
    alongside: (transaction: Transaction<Database>) => Promise<void>,
  ): Promise<Enqueued | string[]> {
    const isFull = async (db: Kysely<Database>): Promise<boolean> =>
      queuedMax !== null && (await queuedCount(db, job.keyId, queuedMax)) >= queuedMax;
    // Before a large program is written, and again in the transaction, where it counts.
    if (await isFull(this.#db)) return 'key full';
    const { code, stdin, inputsJson } = job.program;
    const program = await this.#pieces.prepare(job.id, PROGRAM, [code, stdin, inputsJson]);
    return this.#durable.run<Enqueued | string[]>(async (transaction) => {
      if (await isFull(transaction)) return 'key full';
      const room = { jobs: 1, bytes: program.bytes };
      const { removed, fits } = await makeRoom(transaction, room, {
        bounds: this.#options.bounds,
        keyId: job.keyId,
      });
      if (!fits) return 'full';
      await transaction.insertInto('jobs').values(toNewRow(job)).execute();
      if (!(await program.store(transaction))) throw new Error('A part of a program was not stored.');
      await addToTotals(transaction, room);
      await alongside(transaction);
      return removed;
    }, program.lastBytes);
  }

  async claim(turn: Turn): Promise<ClaimedJob | null> {
    const { worker, clock, leaseMs } = this.#options;
    return quickTransaction(this.#db, async (transaction) => {
      const row = await nextJob(transaction, turn);
      if (row === undefined) return null;
      const nowMs = clock.now();
      const claimed = { status: 'running', started_at: nowMs, worker, token: row.token + 1 };
      await transaction
        .updateTable('jobs')
        .set({ ...claimed, lease_until: nowMs + leaseMs })
        .where('id', '=', row.id)
        .execute();
      return toClaimed({ ...row, ...claimed });
    });
  }

  async program({ id }: Claim): Promise<JobProgram> {
    const row = await this.#db
      .selectFrom('jobs')
      .where('id', '=', id)
      .select(['code_bytes', 'stdin_bytes', 'inputs_bytes'])
      .executeTakeFirstOrThrow();
    const parts: Buffer[] = [];
    for await (const part of this.#pieces.read(id, PROGRAM, programBytesOf(row))) parts.push(part);
    const whole = Buffer.concat(parts);
    const codeEnd = row.code_bytes;
    const stdinEnd = codeEnd + row.stdin_bytes;
    return {
      code: whole.subarray(0, codeEnd),
      stdin: whole.subarray(codeEnd, stdinEnd),
      inputsJson: whole.subarray(stdinEnd),
    };
  }

  async renew(): Promise<Map<string, { cancelRequested: boolean }>> {
    const { worker, clock, leaseMs } = this.#options;
    const rows = await quickTransaction(this.#db, (transaction) =>
      transaction
        .updateTable('jobs')
        .set({ lease_until: clock.now() + leaseMs })
        .where('status', '=', RUNNING)
        .where('worker', '=', worker)
        .returning(['id', 'cancel_requested'])
        .execute(),
    );
    return new Map(rows.map((row) => [row.id, { cancelRequested: row.cancel_requested === 1 }]));
  }

  async complete(claim: Claim, end: JobEnd): Promise<boolean> {
    const result = await this.#pieces.prepare(claim.id, claim.token, end.result());
    const ending = await this.#durable.run(async (transaction) => {
      const row = await held(transaction, claim);
      return row !== undefined && (await result.store(transaction))
        ? this.#endings.end(transaction, row, { token: claim.token, resultBytes: result.bytes, end })
        : null;
    }, result.lastBytes);
    this.#rubbish.add(claim.id);
    if (ending !== null) this.#ended(ending);
    return ending !== null;
  }

  async giveBack(claim: Claim, losses: number): Promise<void> {
    await this.#endOrQueue(async (transaction) => [await held(transaction, claim)], losses);
  }

  async takeOver(): Promise<number> {
    const { clock, leaseMs, worker } = this.#options;
    const nowMs = clock.now();
    const expired = (transaction: Kysely<Database>) =>
      transaction
        .selectFrom('jobs')
        .where('status', '=', RUNNING)
        .where('worker', '!=', worker)
        // A lease that ends later than any that is given now was given by a clock that has been set back since.
        .where((where) =>
          where.or([where('lease_until', '<=', nowMs), where('lease_until', '>', nowMs + 2 * leaseMs)]),
        );
    const found = await expired(this.#db).select('id').limit(1).executeTakeFirst();
    if (found === undefined) return 0;
    return this.#endOrQueue(
      (transaction) => expired(transaction).selectAll().limit(TAKEN_AT_ONCE).execute(),
      1,
    );
  }

  async cancel(id: string, keyId: string | undefined): Promise<Cancelled> {
    const { clock, worker } = this.#options;
    const answer = await this.#durable.run<Cancelled | Ending>(async (transaction) => {
      let query = transaction.selectFrom('jobs').where('id', '=', id).selectAll();
      if (keyId !== undefined) query = query.where('key_id', '=', keyId);
      const row = await query.executeTakeFirst();
      if (row === undefined) return 'missing';
      if (row.finished_at !== null) return 'ended';
      // A job of another process whose lease has run out has nobody who would stop it.
      const abandoned = row.worker !== worker && (row.lease_until ?? 0) <= clock.now();
      if (row.status === 'queued' || abandoned) {
        return this.#endings.endWithoutRun(transaction, row, 'cancelled');
      }
      await transaction.updateTable('jobs').set({ cancel_requested: 1 }).where('id', '=', id).execute();
      return 'requested';
    });
    if (typeof answer === 'string') return answer;
    this.#ended(answer);
    return 'ended';
  }

  async purge(): Promise<void> {
    const { clock, bounds } = this.#options;
    for await (const ids of removeEnded(this.#db, clock.now() - bounds.retentionMs)) {
      for (const id of ids) this.#rubbish.add(id);
    }
    for (const id of this.#rubbish) {
      // Before, since more of it may become rubbish meanwhile.
      this.#rubbish.delete(id);
      try {
        await this.#pieces.clear(id);
      } catch (error) {
        this.#rubbish.add(id);
        throw error;
      }
      await turnOfOthers();
    }
  }

  /** Removes what an earlier process has left behind, and counts what is there; before anything is claimed. */
  async clear(): Promise<void> {
    await quickTransaction(this.#db, countAnew);
    await removeExcess(this.#db, this.#options.bounds);
    await this.#pieces.clear();
  }

  /** Ends every lease: for a service that has the data folder for itself, before it claims anything. */
  async endLeases(): Promise<void> {
    await quickTransaction(this.#db, (transaction) =>
      transaction.updateTable('jobs').set({ lease_until: 0 }).where('status', '=', RUNNING).execute(),
    );
  }

  /** Counts the losses of these jobs, then queues each again or, where it is to go on no longer, ends it. */
  async #endOrQueue(
    select: (transaction: Transaction<Database>) => Promise<(JobRow | undefined)[]>,
    losses: number,
  ): Promise<number> {
    const { endings, count } = await this.#durable.run(async (transaction) => {
      const done = { endings: [] as Ending[], count: 0 };
      for (const row of await select(transaction)) {
        if (row === undefined) continue;
        done.count++;
        const lost = row.losses + losses;
        if (row.cancel_requested === 1 || lost >= LOSSES_MAX) {
          const status = row.cancel_requested === 1 ? 'cancelled' : 'lost';
          done.endings.push(await this.#endings.endWithoutRun(transaction, row, status));
          continue;
        }
        const queued = { status: 'queued', started_at: null, worker: null, lease_until: null, losses: lost };
        await transaction.updateTable('jobs').set(queued).where('id', '=', row.id).execute();
      }
      return done;
    });
    for (const ending of endings) this.#ended(ending);
    if (count > endings.length) this.onQueued();
    return count;
  }

  #ended({ id, charge, removed }: Ending): void {
    for (const each of [id, ...removed]) this.#rubbish.add(each);
    this.onEnded(id, charge);
  }
}
