/** The `Run` of the HTTP contract: one execution, from the moment it is accepted. Times are UTC. */

import type { RunImage, RunValue, Truncated } from '../sandbox/execution.ts';

export type { RunImage, RunValue, Truncated };

export const RUN_STATUSES = [
  'queued',
  'running',
  'succeeded',
  'failed',
  'timed_out',
  'memory_exceeded',
  'output_exceeded',
  'crashed',
  'cancelled',
  'lost',
] as const;

export type RunStatus = (typeof RUN_STATUSES)[number];

export interface Run {
  id: string;
  status: RunStatus;
  /** 0…255 as the shell would see it; null when a signal or the supervisor ended the run. */
  exit_code: number | null;
  stdout: string;
  stderr: string;
  value: RunValue | null;
  images: RunImage[];
  error: RunError | null;
  truncated: Truncated;
  usage: RunUsage;
  limits: RunLimits;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
}

export interface RunError {
  type: string;
  message: string;
  /** A line of the caller's code, counted from 1. */
  line: number | null;
  traceback: string | null;
  hint: string | null;
}

export interface RunUsage {
  /** Time spent waiting for a free slot, in milliseconds. */
  queue_ms: number | null;
  wall_ms: number | null;
  cpu_ms: number | null;
  /** Growth of peak resident memory over the loaded interpreter, in MB of 2^20 bytes. */
  peak_memory_mb: number | null;
}

export interface RunLimits {
  timeout_ms: number;
  memory_mb: number;
}
