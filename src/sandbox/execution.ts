/** What the sandbox is asked to do, and what it can say afterwards. It knows nothing of HTTP, keys or stores. */

import type { RunImage, RunValue, Truncated } from '../runs/run.ts';

/** A program to run, with its limits. */
export interface ExecutionRequest {
  code: string;
  stdin: string;
  /** JSON text of an object, exactly as the caller sent it. */
  inputsJson: string;
  timeoutMs: number;
  memoryMb: number;
}

/** How the kernel says that the process ended. */
export type Ending = { by: 'exit'; code: number } | { by: 'signal'; signal: string };

/** Why the supervisor ended the process, when it did. */
export type StopReason = 'deadline' | 'output' | 'cancel';

/** An uncaught exception as the run itself reported it: its own words, to be shown to its caller only. */
export interface ReportedError {
  type: string;
  message: string;
  line: number | null;
  traceback: string | null;
  hint: string | null;
}

/** Everything known of one finished execution. */
export interface Execution {
  ending: Ending;
  stopped: StopReason | null;
  stdout: string;
  stderr: string;
  value: RunValue | null;
  images: RunImage[];
  truncated: Truncated;
  reportedError: ReportedError | null;
  /** The caller's line that was running when the deadline passed, where it could be read. */
  stoppedAtLine: number | null;
  startedAt: Date;
  finishedAt: Date;
  wallMs: number;
  cpuMs: number;
  peakMemoryMb: number;
}

/** Runs programs. One implementation: the pool of confined processes. */
export interface Sandbox {
  /** Resolves once programs can be run; rejects when the isolation cannot be had on this host. */
  start(): Promise<void>;
  /** True while a warmed zygote is there to serve. */
  readonly ready: boolean;
  /**
   * Runs one program. An abort of `signal` stops it (`stopped: 'cancel'`). `onStart` is called with the
   * start of its running time, again if a fault of the service makes it run again.
   * @throws SandboxFaultError when the service itself lost the run twice, or the sandbox is stopping.
   */
  execute(
    request: ExecutionRequest,
    options?: { signal?: AbortSignal; onStart?: (startedAt: Date) => void },
  ): Promise<Execution>;
  /** Waits for no program: every process of the sandbox has been killed when it resolves. */
  stop(): Promise<void>;
}

/** A fault of the service, never of the program: the run was lost and nothing is charged for it. */
export class SandboxFaultError extends Error {
  override name = 'SandboxFaultError';
}
