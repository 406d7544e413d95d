/**
 * One run process as the service sees it: a spare until it is given a program, then that program's execution.
 *
 * It has ended when the zygote has reported its exit status and its output streams are drained; one may come
 * before the other. What it sends on the frame connection is its own word and checked as such; how it ended,
 * how long it took and what was cut is known from outside.
 */

import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type { Ending, Execution, ExecutionRequest, OutputListener, StopReason } from './execution.ts';
import { type Frame, FrameReader } from './frames.ts';
import { readGently } from './gentle-reader.ts';
import { OUTPUT_WRITTEN_BYTES_MAX, OutputCapture } from './output.ts';
import { type ConnectionKind, decodeWaitStatus, encodeRequestHeader, type Report } from './protocol.ts';
import { parseErrorFrame, parseValueFrame, ReportedImages } from './reported.ts';
import type { Zygote } from './zygote.ts';

type Exited = Extract<Report, { operation: 'exited' }>;

const READY_BYTES = 16;
/** All images, the value and the error fit in this twice over; who sends more is no longer listened to. */
const FRAME_BYTES_MAX = 96 << 20;
/** How long output may still arrive after the process is gone; it is all in socket buffers by then. */
const DRAIN_MS_MAX = 2000;
/** The zygote ends a run at its deadline; this much later its caller is answered all the same. */
const DEADLINE_GRACE_MS = 1500;

/** The zygote ended before it had reported how the run ended. */
export class RunLostError extends Error {
  override name = 'RunLostError';
}

export interface RunProcessOptions {
  sequence: number;
  core: number;
  token: Buffer;
  zygote: Zygote;
  onReady: () => void;
}

export class RunProcess {
  readonly sequence: number;
  readonly core: number;
  readonly token: Buffer;
  readonly zygote: Zygote;
  /** Confined, and waiting for its program. */
  ready = false;
  /** Given to a caller, who will run a program in it. */
  taken = false;
  #onReady: () => void;
  #baseline = { cpuMicroseconds: 0, peakMemoryKb: 0 };
  readonly #connections = new Map<ConnectionKind, Socket>();
  readonly #stdout = new OutputCapture();
  readonly #stderr = new OutputCapture();
  readonly #frames = new FrameReader();
  #onOutput: OutputListener | undefined;
  #openStreams = 3;
  readonly #images = new ReportedImages();
  #errorFrame: Buffer | null = null;
  #valueFrame: Buffer | null = null;
  #frameBytes = 0;
  #stopped: StopReason | null = null;
  #exited: Exited | null = null;
  #started: { at: Date; atMs: number } | null = null;
  #endedAtMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #settle: { resolve: (execution: Execution) => void; reject: (error: Error) => void } | null = null;

  constructor(options: RunProcessOptions) {
    this.sequence = options.sequence;
    this.core = options.core;
    this.token = options.token;
    this.zygote = options.zygote;
    this.#onReady = options.onReady;
  }

  /** Takes one of the process's connections, as `RunChannels` hands it over. */
  attach(kind: ConnectionKind, connection: Socket, early: Buffer): void {
    this.#connections.set(kind, connection);
    if (kind === 'stdin') {
      // Nothing is to come on this one, and what a program writes to it all the same is not read.
      connection.pause();
      return;
    }
    const take =
      kind === 'frames'
        ? (chunk: Buffer) => this.#takeFrames(chunk)
        : (chunk: Buffer) => this.#takeOutput(kind, chunk);
    if (early.length > 0) take(early);
    readGently(connection, take);
    connection.once('close', () => {
      this.#openStreams--;
      this.#finishWhenComplete();
    });
    connection.once('end', () => connection.destroy());
  }

  /** Runs a program in this process. Rejects with RunLostError when the zygote ends first. */
  execute(request: ExecutionRequest, onOutput?: OutputListener): Promise<Execution> {
    return new Promise((resolve, reject) => {
      this.#onOutput = onOutput;
      this.#settle = { resolve, reject };
      const stdin = this.#connections.get('stdin')!;
      const code = Buffer.from(request.code);
      const inputs = Buffer.from(request.inputsJson);
      const { timeoutMs, memoryMb } = request;
      const header = { codeBytes: code.length, inputsBytes: inputs.length, timeoutMs, memoryMb };
      this.#started = { at: new Date(), atMs: performance.now() };
      stdin.end(Buffer.concat([encodeRequestHeader(header), code, inputs, Buffer.from(request.stdin)]));
      this.zygote.send({ operation: 'arm', sequence: this.sequence, timeoutMs });
      this.#timer = setTimeout(() => this.#overdue(), timeoutMs + DEADLINE_GRACE_MS);
      if (this.#exited !== null) this.#finishWhenComplete();
    });
  }

  /**
   * The deadline has passed and no exit is reported: the zygote is hung, which its own heartbeat finds, or the
   * process is slow to die. Its caller waits no longer for either.
   */
  #overdue(): void {
    // An exit that was reported while this process was busy is read first.
    setImmediate(() => {
      if (this.#exited !== null) return;
      this.stop('deadline');
      this.#endedAtMs = performance.now();
      this.#finish();
    });
  }

  /** Ends the process at once. The first reason given stands. */
  stop(reason: StopReason): void {
    if (this.#exited !== null) return;
    this.#stopped ??= reason;
    this.zygote.send({ operation: 'kill', sequence: this.sequence });
  }

  /** The zygote has reaped the process; `killedForMemory` when the kernel ended it for want of memory. */
  exited(report: Exited, killedForMemory: boolean): void {
    this.#exited = report;
    if (killedForMemory) this.#stopped ??= 'memory';
    this.#endedAtMs = performance.now();
    clearTimeout(this.#timer);
    if (report.deadlinePassed) this.#stopped ??= 'deadline';
    this.#connections.get('stdin')?.destroy();
    this.#timer = setTimeout(() => this.#finish(), DRAIN_MS_MAX);
    this.#finishWhenComplete();
  }

  /** The zygote has ended without a report on this process. */
  lost(): void {
    if (this.#exited !== null) return;
    clearTimeout(this.#timer);
    if (this.#stopped !== null) {
      // It was the service that ended it, for a reason of the run's own.
      this.#endedAtMs = performance.now();
      this.#finish();
      return;
    }
    this.#closeConnections();
    this.#settle?.reject(new RunLostError('the zygote ended while the program ran'));
  }

  /** What the process wrote to stderr, for the log when a spare fails to start. */
  get complaint(): string {
    return this.#stderr.text();
  }

  #takeOutput(stream: 'stdout' | 'stderr', chunk: Buffer): void {
    const kept = (stream === 'stdout' ? this.#stdout : this.#stderr).take(chunk);
    if (kept.length > 0) this.#onOutput?.(stream, kept);
    if (this.#stdout.writtenBytes + this.#stderr.writtenBytes > OUTPUT_WRITTEN_BYTES_MAX) this.stop('output');
  }

  #takeFrames(chunk: Buffer): void {
    this.#frameBytes += chunk.length;
    if (this.#frameBytes > FRAME_BYTES_MAX) {
      this.#connections.get('frames')?.destroy();
      return;
    }
    for (const frame of this.#frames.read(chunk)) this.#takeFrame(frame);
  }

  #takeFrame({ kind, payload }: Frame): void {
    if (!this.ready) {
      // The first frame is sent before the request is read, and so by nobody but the sandbox itself.
      if (kind !== 'ready' || payload.length !== READY_BYTES) return;
      this.#baseline = {
        cpuMicroseconds: Number(payload.readBigUInt64LE(0)),
        peakMemoryKb: Number(payload.readBigUInt64LE(8)),
      };
      this.ready = true;
      this.#onReady();
    } else if (kind === 'error') {
      this.#errorFrame = Buffer.from(payload);
    } else if (kind === 'value') {
      this.#valueFrame = Buffer.from(payload);
    } else if (kind === 'image') {
      this.#images.take(payload);
    } else if (kind === 'cut') {
      this.#images.cut = true;
    }
  }

  #finishWhenComplete(): void {
    if (this.#exited !== null && this.#openStreams === 0) this.#finish();
  }

  #finish(): void {
    clearTimeout(this.#timer);
    this.#closeConnections();
    const settle = this.#settle;
    if (settle === null || this.#started === null) return;
    this.#settle = null;
    const { at, atMs } = this.#started;
    const wallMs = this.#endedAtMs - atMs;
    const exited = this.#exited ?? { ...UNREPORTED_EXIT, sequence: this.sequence };
    const reportedValue = this.#valueFrame === null ? null : parseValueFrame(this.#valueFrame);
    settle.resolve({
      ending: endingOf(exited.waitStatus),
      stopped: this.#stopped,
      stdout: this.#stdout.text(),
      stderr: this.#stderr.text(),
      value: reportedValue?.value ?? null,
      images: this.#images.images,
      truncated: {
        stdout: this.#stdout.truncated,
        stderr: this.#stderr.truncated,
        value: reportedValue?.cut ?? false,
        images: this.#images.cut,
      },
      reportedError: this.#errorFrame === null ? null : parseErrorFrame(this.#errorFrame),
      stoppedAtLine: this.#stopped === 'deadline' ? runningLine(this.#frames.tail) : null,
      startedAt: at,
      finishedAt: new Date(at.getTime() + wallMs),
      wallMs,
      cpuMs: Math.max(0, exited.cpuMicroseconds - this.#baseline.cpuMicroseconds) / 1000,
      peakMemoryMb: Math.max(0, exited.peakMemoryKb - this.#baseline.peakMemoryKb) / 1024,
    });
  }

  #closeConnections(): void {
    for (const connection of this.#connections.values()) connection.destroy();
  }
}

const UNREPORTED_EXIT = {
  operation: 'exited',
  waitStatus: constants.signals.SIGKILL,
  deadlinePassed: false,
  peakMemoryKb: 0,
  cpuMicroseconds: 0,
} as const;

/** Reversed, so that of two names for one number the common one, which comes first, stands. */
const SIGNAL_NAMES = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
);

function endingOf(waitStatus: number): Ending {
  const decoded = decodeWaitStatus(waitStatus);
  if ('code' in decoded) return { by: 'exit', code: decoded.code };
  return { by: 'signal', signal: SIGNAL_NAMES.get(decoded.signalNumber) ?? `signal ${decoded.signalNumber}` };
}

/** The caller's innermost line in what Python's fault handler wrote: most recent call first. */
function runningLine(tail: string): number | null {
  const match = /File "main\.py", line (\d{1,9}) in /.exec(tail);
  return match === null ? null : Number(match[1]);
}
