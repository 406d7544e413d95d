/** What `codecell run` says of a run that has ended, and the exit code that it passes on. */

import { constants } from 'node:os';
import type { Run } from '../runs/run.ts';
import type { Ending } from '../sandbox/execution.ts';

/** Exit codes of the command besides those of the program. */
export const EXIT_CODES = {
  badUsage: 2,
  /** EX_SOFTWARE: the sandbox could not be started, or it lost the run. */
  sandboxFault: 70,
  /** EX_CANTCREAT: the program succeeded, but an image could not be written. */
  cannotWriteImages: 73,
  /** As timeout(1). */
  timedOut: 124,
  /** As after SIGKILL by the kernel for want of memory. */
  memoryExceeded: 137,
  /** As after SIGXFSZ, the signal for writing more than is allowed. */
  outputExceeded: 153,
} as const;

/** The exit code of a process that a signal ended, as a shell sees it. */
export function signalExitCode(signal: string): number {
  const number = constants.signals[signal as NodeJS.Signals] ?? Number(/^signal (\d+)$/.exec(signal)?.[1]);
  return 128 + (number || 0);
}

/** The exit code of `codecell run`, by how the program has ended. */
export function exitCodeOf(run: Run, ending: Ending): number {
  switch (run.status) {
    case 'timed_out':
      return EXIT_CODES.timedOut;
    case 'memory_exceeded':
      return EXIT_CODES.memoryExceeded;
    case 'output_exceeded':
      return EXIT_CODES.outputExceeded;
    case 'crashed':
      return signalExitCode(ending.by === 'signal' ? ending.signal : '');
    default:
      return run.exit_code ?? EXIT_CODES.sandboxFault;
  }
}

/** Lines for stderr: why the run was ended, what was cut, and how to live with it. */
export function noticesOf(run: Run): string[] {
  const { error, truncated } = run;
  const notices = [endOf(run)];
  for (const stream of ['stdout', 'stderr'] as const) {
    if (truncated[stream]) notices.push(`codecell: ${stream} was cut after 1 MiB`);
  }
  if (truncated.images) notices.push('codecell: there were more or larger images than are kept');
  if (error !== null && error.hint !== null) notices.push(`hint: ${error.hint}`);
  return notices.filter((notice) => notice !== null);
}

/** Why the sandbox or the kernel ended the program; null when it ended by itself. */
function endOf({ status, error, limits }: Run): string | null {
  switch (status) {
    case 'timed_out': {
      const place = error?.line ? ` at line ${error.line}` : '';
      return `codecell: timed out after ${limits.timeout_ms} ms${place}`;
    }
    case 'memory_exceeded':
      return `codecell: out of memory: it may use ${limits.memory_mb} MB`;
    case 'output_exceeded':
    case 'crashed':
      return `codecell: ${error?.message}`;
    default:
      return null;
  }
}
