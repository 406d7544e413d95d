/** Jobs as their callers see them: sent now, fetched later. */

import type { Transaction } from 'kysely';
import type { Key } from '../../keys/key.ts';
import type { ExecutionRequest } from '../../sandbox/execution.ts';
import type { Clock } from '../../shared/clock.ts';
import { counted } from '../../shared/counted.ts';
import { ServiceError } from '../../shared/errors.ts';
import { newRunId } from '../../shared/ids.ts';
import type { JobLoad, JobQueue, JobReader, JobRecord, JobSelection } from '../../store/job-queue.ts';
import type { Database } from '../../store/schema.ts';
import type { Run } from '../run.ts';
import { unendedRun } from './job-end.ts';
import type { JobRunner } from './job-runner.ts';
import type { JobWatch } from './job-watch.ts';

/** Jobs of a key that may wait when its limits do not say. */
const QUEUED_MAX = 1000;

/** Jobs that are cancelled in one go when a key is revoked. */
const CANCELLED_AT_ONCE = 50;

/** A running job that is cancelled is gone within milliseconds, or within 1.5 s when its zygote hangs. */
const CANCEL_MS_MAX = 30_000;

export class Jobs {
  readonly #queue: JobQueue;
  readonly #reader: JobReader;
  readonly #runner: JobRunner;
  readonly #watch: JobWatch;
  readonly #clock: Clock;

  constructor(options: {
    queue: JobQueue;
    reader: JobReader;
    runner: JobRunner;
    watch: JobWatch;
    clock: Clock;
  }) {
    this.#queue = options.queue;
    this.#reader = options.reader;
    this.#runner = options.runner;
    this.#watch = options.watch;
    this.#clock = options.clock;
  }

  /**
   * Accepts a job. It is stored for good when this resolves.
   * @param alongside Stores what is to be there exactly when the job is.
   * @throws ServiceError `concurrency_limited` when the key has as many waiting as it may, `overloaded` when all have.
   */
  async submit(
    key: Key,
    request: ExecutionRequest,
    alongside: (transaction: Transaction<Database>, run: Run) => Promise<void>,
  ): Promise<Run> {
    const record: JobRecord = {
      id: newRunId(),
      keyId: key.id,
      status: 'queued',
      timeoutMs: request.timeoutMs,
      memoryMb: request.memoryMb,
      createdAtMs: this.#clock.now(),
      startedAtMs: null,
      finishedAtMs: null,
      summary: null,
      resultBytes: 0,
    };
    const program = {
      code: Buffer.from(request.code),
      stdin: Buffer.from(request.stdin),
      inputsJson: Buffer.from(request.inputsJson),
    };
    const queuedMax = queuedMaxOf(key);
    const run = unendedRun(record);
    const answer = await this.#queue.enqueue({ ...record, program }, queuedMax, (transaction) =>
      alongside(transaction, run),
    );
    if (answer === 'key full') throw keyFull(queuedMax ?? 0);
    if (answer === 'full') throw full();
    return run;
  }

  /**
   * A job of a key, once it has ended or `waitMs` have passed, whichever is first; the signal ends the wait.
   * @throws ServiceError `not_found`.
   */
  async find(key: Key, id: string, wait: { waitMs: number; signal: AbortSignal }): Promise<JobRecord> {
    const first = existing(await this.#reader.find(id, key.id));
    if (first.finishedAtMs !== null || wait.waitMs === 0) return first;
    await this.#watch.ended(id, {
      timeoutMs: wait.waitMs,
      signal: wait.signal,
      begin: async () => (await this.#reader.endedAmong([id])).length === 0,
    });
    return existing(await this.#reader.find(id, key.id));
  }

  /** How many more jobs of a key may wait; null where there is no limit. */
  async queueable(key: Key): Promise<number | null> {
    const max = queuedMaxOf(key);
    return max === null ? null : max - (await this.#reader.queuedCount(key.id, max));
  }

  /** What has not ended, of all keys. */
  async load(): Promise<JobLoad> {
    return this.#reader.load(this.#clock.now());
  }

  /** Newest first. */
  async list(key: Key, selection: Omit<JobSelection, 'keyId'>): Promise<JobRecord[]> {
    return this.#reader.list({ ...selection, keyId: key.id });
  }

  /**
   * Cancels a job and waits until its process is gone. One that has ended stays as it is.
   * @throws ServiceError `not_found`.
   */
  async cancel(key: Key, id: string, signal: AbortSignal): Promise<JobRecord> {
    const answer = await this.#queue.cancel(id, key.id);
    if (answer === 'missing') throw noSuchJob();
    if (answer === 'ended') return existing(await this.#reader.find(id, key.id));
    this.#runner.cancel(id);
    await this.#watch.ended(id, {
      timeoutMs: CANCEL_MS_MAX,
      signal,
      // The service ends no sooner than its programs.
      outlastsShutdown: true,
      begin: async () => (await this.#reader.endedAmong([id])).length === 0,
    });
    return existing(await this.#reader.find(id, key.id));
  }

  /** Cancels every job of a key. */
  async cancelAll(keyId: string): Promise<void> {
    await cancelJobsOf(keyId, { queue: this.#queue, reader: this.#reader }, (id) => this.#runner.cancel(id));
  }

  /**
   * The result of an ended job: the Run as JSON, in parts.
   * @throws ServiceError `not_found` at the first part when the job has been removed since it was found.
   */
  async *result(job: JobRecord): AsyncGenerator<Buffer> {
    const parts = this.#reader.result(job);
    const first = await parts.next().catch(async (error: unknown) => {
      throw (await this.#reader.find(job.id, job.keyId)) === null ? noSuchJob() : error;
    });
    if (first.done) return;
    yield first.value;
    yield* parts;
  }
}

/** Cancels every job of a key, and tells of each. Those that run are to be stopped by whoever runs them. */
export async function cancelJobsOf(
  keyId: string,
  { queue, reader }: { queue: JobQueue; reader: JobReader },
  onCancelled: (id: string) => void = () => undefined,
): Promise<void> {
  for (;;) {
    const ids = await reader.unended(keyId, CANCELLED_AT_ONCE);
    if (ids.length === 0) return;
    await Promise.all(ids.map((id) => queue.cancel(id, keyId)));
    for (const id of ids) onCancelled(id);
  }
}

function queuedMaxOf({ limits, role }: Key): number | null {
  return limits.max_queued_jobs ?? (role === 'admin' ? null : QUEUED_MAX);
}

function existing(job: JobRecord | null): JobRecord {
  if (job === null) throw noSuchJob();
  return job;
}

function noSuchJob(): ServiceError {
  return new ServiceError('not_found', 'There is no job of this id.');
}

function keyFull(max: number): ServiceError {
  if (max === 0)
    return new ServiceError('concurrency_limited', 'This key may have no jobs (max_queued_jobs is 0).');
  return new ServiceError(
    'concurrency_limited',
    `This key has ${counted(max, 'job')} waiting, which is its limit (max_queued_jobs): send it again when one has started.`,
  );
}

function full(): ServiceError {
  return new ServiceError(
    'overloaded',
    'As many jobs wait as the service keeps. Nothing was accepted: send the request again.',
  );
}
