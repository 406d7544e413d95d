/** What the sandbox is asked to do, and what it can say afterwards. It knows nothing of HTTP, keys or stores. */

/** A program to run, with its limits. */
export interface ExecutionRequest {
  code: string;
  stdin: string;
  /** JSON text of an object, exactly as the caller sent it. */
  inputsJson: string;
  timeoutMs: number;
  memoryMb: number;
}

/** The value of the last expression, as the run reported it. */
export interface RunValue {
  type: string;
  text: string;
  html: string | null;
  /** JSON text, known to be valid; null where JSON does not apply. It is passed on as it is. */
  json: string | null;
}

/** A picture that the run reported: its first bytes are of its format, and nothing more is known of it. */
export interface RunImage {
  format: string;
  media_type: string;
  /** Base64. */
  data: string;
  width: number | null;
  height: number | null;
  name: string | null;
  title: string | null;
}

/** What was cut at a cap. */
export interface Truncated {
  stdout: boolean;
  stderr: boolean;
  value: boolean;
  images: boolean;
}

/** How the kernel says that the process ended. */
export type Ending = { by: 'exit'; code: number } | { by: 'signal'; signal: string };

/** Why the process was ended, when it did not end itself: by the supervisor, or by the kernel for want of memory. */
export type StopReason = 'deadline' | 'output' | 'cancel' | 'memory';

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

/** What a caller may want of an execution while it goes on. */
export interface ExecuteOptions {
  /** Stops the program when it is aborted (`stopped: 'cancel'`). */
  signal?: AbortSignal;
  /** Called with the start of its running time, again if a fault of the service makes it run again. */
  onStart?: (startedAt: Date) => void;
  /**
   * Called with output as it arrives, as far as it is kept. A run that the service loses after that is not run
   * again, so that nothing is passed on twice.
   */
  onOutput?: OutputListener;
}

export type OutputListener = (stream: 'stdout' | 'stderr', chunk: Buffer) => void;

/** Counts since the start, and what is there now. */
export interface SandboxStatistics {
  /** Processes that wait for a program. */
  sparesReady: number;
  /** Zygotes that ended without being asked to. */
  zygoteRestarts: number;
  /** Times that a program was lost with its zygote; it was then run again, or answered as a fault. */
  runsLost: number;
}

/** Runs programs. One implementation: the pool of confined processes. */
export interface Sandbox {
  /** Resolves once programs can be run; rejects when the isolation cannot be had on this host. */
  start(): Promise<void>;
  /** True while a warmed zygote is there to serve. */
  readonly ready: boolean;
  statistics(): SandboxStatistics;
  /**
   * Runs one program.
   * @throws SandboxFaultError when the service itself lost the run and could not run it again, or the sandbox is
   * stopping.
   */
  execute(request: ExecutionRequest, options?: ExecuteOptions): Promise<Execution>;
  /** Waits for no program: every process of the sandbox has been killed when it resolves. */
  stop(): Promise<void>;
}

/** A fault of the service, never of the program: the run was lost and nothing is charged for it. */
export class SandboxFaultError extends Error {
  override name = 'SandboxFaultError';
}
