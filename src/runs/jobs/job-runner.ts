/**
 * Runs the jobs of the queue as slots become free.
 *
 * Algorithm: one loop takes a slot, claims the next job of the next key, and starts it. It sleeps until it is woken: by
 * a job that was accepted, or by the end of an execution of a key that had as many as it may. So a job is picked up as
 * soon as there is a slot, and an idle service asks the database for nothing. A tick of a second renews the leases,
 * takes over jobs of processes that died, and wakes the loop all the same.
 *
 * Turns: which key is next is said in job-turns.ts, what requests and jobs get of the slots in admission.ts.
 *
 * Failure: a run that is lost with its zygote goes back into the queue, and so does the job of a process that died, once
 * its lease has run out; at the third loss the job ends as lost. A program is stopped when its lease was lost all the
 * same, so that it does not run twice at once; its end would be refused by its token. An end that cannot be stored is
 * tried again until it can. Without a process to run in, a job goes back uncounted: it waits as for a slot.
 */

import type { KeyWork, Work } from '../../limits/key-work.ts';
import {
  type Execution,
  type ExecutionRequest,
  type Sandbox,
  SandboxFaultError,
} from '../../sandbox/execution.ts';
import type { Clock } from '../../shared/clock.ts';
import { every } from '../../shared/every.ts';
import type { Logger } from '../../shared/logger.ts';
import { turnOfOthers } from '../../shared/turn.ts';
import {
  type ClaimedJob,
  type JobEnd,
  type JobQueue,
  type JobReader,
  LOSSES_MAX,
} from '../../store/job-queue.ts';
import type { KeyStore } from '../../store/key-store.ts';
import type { CpuUsage } from '../../usage/cpu-usage.ts';
import type { Admission, Slot } from '../admission.ts';
import { chargeOf } from '../charge.ts';
import { finishedRun } from '../outcome.ts';
import { endWithoutRun, jobEnd } from './job-end.ts';
import { JobTurns } from './job-turns.ts';

export interface JobRunnerOptions {
  queue: JobQueue;
  sandbox: Sandbox;
  admission: Admission;
  work: KeyWork;
  reader: Pick<JobReader, 'anyWaiting' | 'nextKeyId'>;
  keys: Pick<KeyStore, 'findAll'>;
  usage: CpuUsage & { readonly writable: boolean };
  clock: Clock;
  logger: Logger;
  tickMs?: number;
}

/** Between two attempts at what failed for want of a process or of a disk. */
const PAUSE_MS = 1000;

/** A job whose program runs here. */
interface RunningJob {
  job: ClaimedJob;
  stop: AbortController;
  ended: Promise<void>;
}

/** Reasons to stop a program, besides the revocation of its key. */
type StopReason = 'cancelled' | 'lease lost' | 'lost too often';

export class JobRunner {
  readonly #options: Required<JobRunnerOptions>;
  readonly #running = new Map<string, RunningJob>();
  readonly #turns: JobTurns;
  #mayHaveWork = true;
  #wake: () => void = () => undefined;
  #stopping = false;
  #loop: Promise<void> = Promise.resolve();
  #stopTicking: () => Promise<void> = async () => undefined;

  constructor(options: JobRunnerOptions) {
    this.#options = { tickMs: 1000, ...options };
    this.#turns = new JobTurns(options);
  }

  /** From now on jobs are run. */
  start(): void {
    const { queue, work, logger, tickMs } = this.#options;
    queue.onQueued = () => this.#wakeUp();
    work.onEnded = () => {
      if (this.#turns.passedOver) this.#wakeUp();
    };
    this.#loop = this.#takeOver()
      .catch((error: unknown) =>
        logger.error({ err: error }, 'jobs of the service before were not taken over'),
      )
      .then(() => this.#serve());
    this.#stopTicking = every(
      tickMs,
      () => this.#tick(),
      (error) => logger.error({ err: error }, 'the jobs could not be looked after'),
    );
  }

  /** Says that there may be a job to run. */
  #wakeUp(): void {
    this.#mayHaveWork = true;
    this.#wake();
  }

  /** Stops the program of a job, if it runs here. */
  cancel(id: string): void {
    this.#running.get(id)?.stop.abort('cancelled' satisfies StopReason);
  }

  /** Starts nothing more, and resolves when every running job has ended. The admission must have been closed. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#wake();
    await this.#loop;
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
    await this.#stopTicking();
  }

  async #serve(): Promise<void> {
    const { admission, logger } = this.#options;
    while (!this.#stopping) {
      if (!this.#mayHaveWork) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      // A slot is not taken, and its turn not used, to find that there is nothing to do.
      if (!(await this.#anyWaiting())) continue;
      const slot = await admission.acquireForJob();
      if (slot === null) return;
      try {
        const job = await this.#claim();
        if (job === null) slot.release();
        else this.#start(job, slot);
        // Jobs of a revoked key end without a wait: a thousand of them in a row would keep everybody else out.
        await turnOfOthers();
      } catch (error) {
        slot.release();
        logger.error({ err: error }, 'no job could be claimed');
        await this.#pause();
      }
    }
  }

  /** Whether a job waits for a slot. One that comes in the meantime wakes the loop again. */
  async #anyWaiting(): Promise<boolean> {
    this.#mayHaveWork = false;
    try {
      return await this.#options.reader.anyWaiting();
    } catch (error) {
      this.#options.logger.error({ err: error }, 'the queue cannot be read');
      return false;
    }
  }

  /** What is not writable now is asked again with the next tick. */
  async #claim(): Promise<ClaimedJob | null> {
    this.#mayHaveWork = false;
    if (!this.#options.usage.writable || this.#stopping) return null;
    const job = await this.#turns.claim();
    if (job !== null) this.#mayHaveWork = true;
    return job;
  }

  #start(job: ClaimedJob, slot: Slot): void {
    const { logger } = this.#options;
    logger.debug({ run_id: job.id, token: job.token }, 'a job starts');
    const stop = new AbortController();
    const ended = this.#run(job, slot, stop)
      .catch((error: unknown) => logger.error({ err: error, run_id: job.id }, 'a job failed'))
      .finally(() => {
        // Given back, it may have been claimed again by now.
        if (this.#running.get(job.id)?.stop === stop) this.#running.delete(job.id);
      });
    this.#running.set(job.id, { job, stop, ended });
  }

  async #run(job: ClaimedJob, slot: Slot, stop: AbortController): Promise<void> {
    const { queue, work, logger } = this.#options;
    const jobWork = work.begin(job.keyId, 'job');
    let outcome: JobEnd | Lost;
    let used: { onStored: () => void } | undefined;
    try {
      outcome = await this.#execute(job, stop, jobWork);
      if ('charge' in outcome && outcome.charge !== null) used = this.#turns.ended(outcome.charge);
    } catch (error) {
      // Its program could not be read, or its end not be made: like a lost run, it is tried again.
      logger.error({ err: error, run_id: job.id }, 'a job could not be run');
      outcome = { losses: 1 };
    } finally {
      slot.release();
      jobWork.end();
    }
    if ('losses' in outcome) {
      const { losses } = outcome;
      logger.warn({ run_id: job.id, losses: job.losses + losses }, 'the run of a job was lost');
      if (losses === 0) await this.#pause();
      await this.#untilStored(() => queue.giveBack(job, losses));
      return;
    }
    const end = outcome;
    const stored = await this.#untilStored(() => queue.complete(job, end));
    used?.onStored();
    if (!stored) logger.warn({ run_id: job.id }, 'the end of a job came too late, or could not be stored');
    else logger.info({ run_id: job.id, key_id: job.keyId, run_status: end.status }, 'a job has ended');
  }

  async #execute(job: ClaimedJob, stop: AbortController, jobWork: Work): Promise<JobEnd | Lost> {
    const { queue, sandbox, clock, keys } = this.#options;
    // A job whose key was revoked while it waited; that of CODECELL_ADMIN_KEY is in no table.
    const [key] = await keys.findAll([job.keyId]);
    if (key !== undefined && key.revokedAt !== null) stop.abort('cancelled' satisfies StopReason);
    const { code, stdin, inputsJson } = await queue.program(job);
    const limits = { timeout_ms: job.timeoutMs, memory_mb: job.memoryMb };
    const request: ExecutionRequest = {
      code: code.toString(),
      stdin: stdin.toString(),
      inputsJson: inputsJson.toString(),
      timeoutMs: job.timeoutMs,
      memoryMb: job.memoryMb,
    };
    const signal = AbortSignal.any([stop.signal, jobWork.signal]);
    let starts = 0;
    let execution: Execution;
    try {
      execution = await sandbox.execute(request, {
        signal,
        onStart: () => {
          starts++;
          if (job.losses + starts > LOSSES_MAX) stop.abort('lost too often' satisfies StopReason);
        },
      });
    } catch (error) {
      if (!(error instanceof SandboxFaultError) && error !== signal.reason) throw error;
      if (stop.signal.reason === 'lost too often') return { losses: starts };
      if (signal.aborted) {
        const programBytes = code.length + stdin.length + inputsJson.length;
        return endWithoutRun({ ...job, programBytes }, 'cancelled', clock.now());
      }
      return { losses: starts };
    }
    if (stop.signal.reason === 'lost too often') return { losses: starts - 1 };
    const createdAt = new Date(job.createdAtMs);
    const queueMs = Math.max(0, execution.startedAt.getTime() - job.createdAtMs);
    const run = finishedRun({ id: job.id, createdAt, limits }, execution, queueMs);
    return jobEnd(run, chargeOf(job.keyId, request, run));
  }

  async #tick(): Promise<void> {
    const { queue } = this.#options;
    if (this.#running.size > 0) {
      const before = [...this.#running];
      const held = await queue.renew();
      for (const [id, { stop }] of before) {
        const lease = held.get(id);
        // It may have ended meanwhile: then it makes no difference.
        if (lease === undefined) stop.abort('lease lost' satisfies StopReason);
        else if (lease.cancelRequested) stop.abort('cancelled' satisfies StopReason);
      }
    }
    await this.#takeOver();
    await this.#turns.refresh();
    if (!this.#stopping) this.#wakeUp();
  }

  async #takeOver(): Promise<void> {
    const { queue, logger } = this.#options;
    const jobs = await queue.takeOver();
    if (jobs > 0) logger.warn({ jobs }, 'jobs of a service that ended were taken over');
  }

  /** Repeats what fails, with pauses, until the service ends. False is an answer like any other. */
  async #untilStored<Result>(store: () => Promise<Result>): Promise<Result | false> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await store();
      } catch (error) {
        if (attempt === 1) this.#options.logger.error({ err: error }, 'the end of a job could not be stored');
        if (this.#stopping) return false;
        await this.#pause();
      }
    }
  }

  async #pause(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** A run that came to no end, lost this often. */
interface Lost {
  losses: number;
}
