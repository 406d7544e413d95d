import type { KeyLimits } from './key.ts';

export type LimitName = keyof KeyLimits;

/** What may be set of each limit: whole numbers. */
export const LIMIT_BOUNDS: Record<LimitName, { min: number; max: number; description: string }> = {
  requests_per_minute: {
    min: 1,
    max: 1_000_000,
    description: 'Requests that come back in a minute, one at a time. By itself it is the burst as well.',
  },
  burst: {
    min: 1,
    max: 1_000_000,
    description: 'Requests at once after a rest. It needs requests_per_minute.',
  },
  concurrency: { min: 1, max: 10_000, description: 'Executions at the same time.' },
  cpu_seconds_per_day: {
    min: 1,
    max: 100_000_000,
    description:
      'Processor time in a day of UTC. It is looked at before a run starts; a started run finishes, and jobs that wait go on waiting until midnight.',
  },
  max_timeout_ms: {
    min: 1,
    max: 30_000,
    description: "Highest timeout_ms. The service's ceiling holds all the same.",
  },
  max_memory_mb: {
    min: 32,
    max: 1_048_576,
    description: "Highest memory_mb. The service's ceiling holds all the same.",
  },
  max_queued_jobs: {
    min: 0,
    max: 1_000_000,
    description: 'Jobs that may wait; when absent, 1000, and of an admin key any number.',
  },
};

export const LIMIT_NAMES = Object.keys(LIMIT_BOUNDS) as LimitName[];
