/** How a job ends, as it is stored: its Run for who asks for it, a summary for lists, a charge. */

import type { JobEnd, JobRecord } from '../../store/job-queue.ts';
import type { RunCharge } from '../../store/usage-store.ts';
import type { Run, RunError, RunStatus } from '../run.ts';
import { runJsonParts } from '../run-json.ts';

/** What lists show of a job. */
export type JobSummary = Omit<Run, 'stdout' | 'stderr' | 'value' | 'images' | 'error'> & {
  error: Omit<RunError, 'traceback'> | null;
};

/** The end of a job whose program has ended. */
export function jobEnd(run: Run, charge: RunCharge | null): JobEnd {
  if (run.finished_at === null) throw new Error('A Run that has not ended is the end of no job.');
  return {
    status: run.status,
    startedAtMs: run.started_at === null ? null : Date.parse(run.started_at),
    finishedAtMs: Date.parse(run.finished_at),
    summary: JSON.stringify(summaryOf(run)),
    result: () => utf8Parts(runJsonParts(run)),
    charge,
  };
}

/** The end of a job that no program ends. A cancelled job is charged as a run that took no time, a lost one is not. */
export function endWithoutRun(
  job: JobRecord & { programBytes: number },
  status: 'cancelled' | 'lost',
  nowMs: number,
): JobEnd {
  const queueMs = Math.max(0, nowMs - job.createdAtMs);
  const run: Run = {
    ...unendedRun(job),
    status,
    error: status === 'cancelled' ? CANCELLED : LOST,
    usage: { queue_ms: queueMs, wall_ms: 0, cpu_ms: 0, peak_memory_mb: 0 },
    started_at: null,
    finished_at: new Date(nowMs).toISOString(),
  };
  const charge: RunCharge = {
    id: job.id,
    key_id: job.keyId,
    status,
    ended_at: nowMs,
    queue_ms: queueMs,
    wall_ms: 0,
    cpu_ms: 0,
    memory_mb_ms: 0,
    bytes_in: job.programBytes,
    bytes_out: 0,
    images: 0,
  };
  return jobEnd(run, status === 'cancelled' ? charge : null);
}

/** The Run of a job that has not ended. */
export function unendedRun(job: JobRecord): Run {
  return {
    id: job.id,
    status: job.status as RunStatus,
    exit_code: null,
    stdout: '',
    stderr: '',
    value: null,
    images: [],
    error: null,
    truncated: { stdout: false, stderr: false, value: false, images: false },
    usage: { queue_ms: null, wall_ms: null, cpu_ms: null, peak_memory_mb: null },
    limits: { timeout_ms: job.timeoutMs, memory_mb: job.memoryMb },
    created_at: new Date(job.createdAtMs).toISOString(),
    started_at: job.startedAtMs === null ? null : new Date(job.startedAtMs).toISOString(),
    finished_at: null,
  };
}

/** What lists show of a job, as JSON. */
export function summaryJson(job: JobRecord): string {
  return job.summary ?? JSON.stringify(summaryOf(unendedRun(job)));
}

function summaryOf(run: Run): JobSummary {
  const { id, status, exit_code, error, truncated, usage, limits, created_at, started_at, finished_at } = run;
  const { type, message, line, hint } = error ?? { type: '', message: '', line: null, hint: null };
  const shown = error === null ? null : { type, message, line, hint };
  return {
    id,
    status,
    exit_code,
    error: shown,
    truncated,
    usage,
    limits,
    created_at,
    started_at,
    finished_at,
  };
}

const CANCELLED: RunError = {
  type: 'Cancelled',
  message: 'The job was cancelled.',
  line: null,
  traceback: null,
  hint: null,
};

const LOST: RunError = {
  type: 'Lost',
  message: 'The service lost the run three times.',
  line: null,
  traceback: null,
  hint: 'Nothing was charged: send it again.',
};

/** Characters that are written at once: 2 ms of base64, 10 ms of other text. */
const CHARACTERS = 2 ** 20;

function* utf8Parts(texts: Iterable<string>): Generator<Buffer> {
  for (const text of texts) {
    for (let start = 0; start < text.length; ) {
      let end = Math.min(text.length, start + CHARACTERS);
      // Not between the halves of a surrogate pair.
      if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
      yield Buffer.from(text.slice(start, end));
      start = end;
    }
  }
}
