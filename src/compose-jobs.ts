/** The part of compose.ts that is about jobs. */

import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Config } from './config.ts';
import type { KeyWork } from './limits/key-work.ts';
import type { Admission } from './runs/admission.ts';
import { endWithoutRun } from './runs/jobs/job-end.ts';
import { JobRunner } from './runs/jobs/job-runner.ts';
import { JobWatch } from './runs/jobs/job-watch.ts';
import { Jobs } from './runs/jobs/jobs.ts';
import type { Sandbox } from './sandbox/execution.ts';
import { type Clock, HOUR_MS } from './shared/clock.ts';
import { every } from './shared/every.ts';
import type { Logger } from './shared/logger.ts';
import { StoredJobs } from './store/job-reader.ts';
import { JobStore } from './store/job-store.ts';
import type { KeyStore } from './store/key-store.ts';
import type { Database } from './store/schema.ts';
import type { UsageStore } from './store/usage-store.ts';
import type { UsageRecorder } from './usage/recorder.ts';

/** How long a claim holds without being renewed, in milliseconds. Leases are renewed every second. */
const LEASE_MS = 5000;

/** Time between two looks for jobs that others have ended and results that are kept no longer, in milliseconds. */
const LOOK_MS = 1000;

export interface JobsOptions {
  config: Pick<Config, 'jobRetentionHours' | 'jobsMax' | 'resultsMbMax'>;
  db: Kysely<Database>;
  sandbox: Sandbox;
  admission: Admission;
  work: KeyWork;
  keys: KeyStore;
  usageStore: UsageStore;
  usage: UsageRecorder;
  clock: Clock;
  logger: Logger;
}

export interface ComposedJobs {
  jobs: Jobs;
  /** From now on jobs are run. */
  start(): void;
  /** Cancels every job of a key, soon; whatever is left is cancelled when it is its turn. */
  cancelAll(keyId: string): void;
  /** Ends every wait for a job's end: who waits is answered as things stand. */
  endWaits(): void;
  /** Resolves when every running job has ended. */
  stop(): Promise<void>;
}

/** Everything that jobs need, put together; nothing runs yet. The caller must `stop` what it has started. */
export async function composeJobs(options: JobsOptions): Promise<ComposedJobs> {
  const { config, db, sandbox, admission, work, keys, usageStore, usage, clock, logger } = options;
  const queue = new JobStore({
    db,
    usage: usageStore,
    clock,
    worker: randomUUID(),
    leaseMs: LEASE_MS,
    bounds: {
      jobs: config.jobsMax,
      bytes: config.resultsMbMax * 2 ** 20,
      retentionMs: config.jobRetentionHours * HOUR_MS,
    },
    endWithoutRun: (job, status) => endWithoutRun(job, status, clock.now()),
  });
  const reader = new StoredJobs(db);
  const watch = new JobWatch();
  queue.onEnded = (id, charge) => {
    if (charge !== null) usage.charged(charge);
    watch.notify(id);
  };
  const runner = new JobRunner({
    queue,
    reader,
    sandbox,
    admission,
    work,
    keys,
    usage,
    clock,
    logger,
  });
  // Apart from the runner's own ticks, which renew leases: to delete gigabytes takes longer than those last.
  const lookAfter = async (): Promise<void> => {
    // Another process may have ended one, as `codecell jobs cancel` does.
    for (const id of await reader.endedAmong(watch.ids)) watch.notify(id);
    await queue.purge();
  };
  let stopLooking = async (): Promise<void> => undefined;
  await queue.clear();
  await queue.endLeases();
  const jobs = new Jobs({ queue, reader, runner, watch, clock });
  return {
    jobs,
    start: () => {
      runner.start();
      stopLooking = every(LOOK_MS, lookAfter, (error) =>
        logger.error({ err: error }, 'old jobs could not be looked after'),
      );
    },
    cancelAll: (keyId) => {
      jobs
        .cancelAll(keyId)
        .catch((error: unknown) => logger.error({ err: error }, 'jobs of a revoked key were not cancelled'));
    },
    endWaits: () => watch.close(),
    stop: async () => {
      await runner.stop();
      await stopLooking();
    },
  };
}
