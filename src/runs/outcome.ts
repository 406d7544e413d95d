/**
 * The outcome of a finished execution in the contract's words. What decides is what the kernel and the
 * supervisor know; the program's own report supplies the words of an exception, and one status: the exit by an
 * uncaught MemoryError.
 */

import type { Execution } from '../sandbox/execution.ts';
import type { Run, RunError, RunLimits, RunStatus } from './run.ts';

const TIME_HINT =
  'Do less work in one run, or ask for more time (timeout_ms) where the limits allow it. What was printed is kept.';
const OUTPUT_HINT =
  'The first 1 MiB of each stream is kept: print a summary, or the last expression as the value.';

/** The finished Run of an execution. `queueMs` is the time it waited for a slot. */
export function finishedRun(
  start: { id: string; createdAt: Date; limits: RunLimits },
  execution: Execution,
  queueMs: number,
): Run {
  const { status, error } = outcomeOf(execution, start.limits);
  const { stopped, ending } = execution;
  return {
    id: start.id,
    status,
    exit_code: stopped === null && ending.by === 'exit' ? ending.code : null,
    stdout: execution.stdout,
    stderr: execution.stderr,
    value: execution.value,
    images: execution.images,
    error,
    truncated: execution.truncated,
    usage: {
      queue_ms: Math.round(queueMs),
      wall_ms: Math.round(execution.wallMs),
      cpu_ms: Math.ceil(execution.cpuMs),
      peak_memory_mb: Math.round(execution.peakMemoryMb * 10) / 10,
    },
    limits: start.limits,
    created_at: start.createdAt.toISOString(),
    started_at: execution.startedAt.toISOString(),
    finished_at: execution.finishedAt.toISOString(),
  };
}

function outcomeOf(execution: Execution, limits: RunLimits): { status: RunStatus; error: RunError | null } {
  switch (execution.stopped) {
    case 'cancel':
      return { status: 'cancelled', error: plainError('Cancelled', 'The run was cancelled.') };
    case 'deadline': {
      const message = `The run was stopped after ${limits.timeout_ms} ms.`;
      return {
        status: 'timed_out',
        error: { ...plainError('TimedOut', message), line: execution.stoppedAtLine, hint: TIME_HINT },
      };
    }
    case 'output':
      return {
        status: 'output_exceeded',
        error: {
          ...plainError('OutputExceeded', 'The run wrote more than 16 MiB of output and was stopped.'),
          hint: OUTPUT_HINT,
        },
      };
    case 'memory': {
      const message = 'The run was stopped because the memory of the sandbox ran out.';
      return { status: 'memory_exceeded', error: plainError('MemoryError', message) };
    }
    case null:
      return outcomeOfEnding(execution);
  }
}

function outcomeOfEnding({ ending, reportedError }: Execution): {
  status: RunStatus;
  error: RunError | null;
} {
  if (ending.by === 'signal') {
    return { status: 'crashed', error: plainError('Crashed', `The process was ended by ${ending.signal}.`) };
  }
  if (ending.code === 0) return { status: 'succeeded', error: null };
  const error = reportedError ?? plainError('NonZeroExit', `The process exited with code ${ending.code}.`);
  const outOfMemory = ending.code === 1 && reportedError?.type === 'MemoryError';
  return { status: outOfMemory ? 'memory_exceeded' : 'failed', error };
}

function plainError(type: string, message: string): RunError {
  return { type, message, line: null, traceback: null, hint: null };
}
