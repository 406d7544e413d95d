import type { Kysely } from 'kysely';
import { endWithoutRun } from '../runs/jobs/job-end.ts';
import { systemClock } from '../shared/clock.ts';
import { StoredJobs } from '../store/job-reader.ts';
import { JobStore } from '../store/job-store.ts';
import type { Database } from '../store/schema.ts';
import { UsageStore } from '../store/usage-store.ts';

/** Jobs as a command reaches them. */
export interface CommandJobs {
  reader: StoredJobs;
  queue: JobStore;
}

/** The jobs in a database that a service may be working on: a command runs none, and removes none. */
export function commandJobs(db: Kysely<Database>): CommandJobs {
  const queue = new JobStore({
    db,
    usage: new UsageStore(db),
    clock: systemClock,
    worker: 'command line',
    leaseMs: 0,
    bounds: {
      jobs: Number.MAX_SAFE_INTEGER,
      bytes: Number.MAX_SAFE_INTEGER,
      retentionMs: Number.MAX_SAFE_INTEGER,
    },
    endWithoutRun: (job, status) => endWithoutRun(job, status, systemClock.now()),
  });
  return { reader: new StoredJobs(db), queue };
}
