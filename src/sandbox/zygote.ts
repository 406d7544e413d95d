/**
 * One zygote process as the service sees it: commands go in, reports come out, and its end, whatever the cause,
 * is noticed once. A zygote that stops answering is killed, so that being hung is a kind of being dead.
 */

import type { ChildProcess } from 'node:child_process';
import type { Duplex } from 'node:stream';
import type { Launcher, LaunchOptions } from './launchers/launcher.ts';
import { type Command, encodeCommand, type Report, ReportReader } from './protocol.ts';

const PING_INTERVAL_MS = 400;
/** Counted in answered timer ticks and not in time: a stall of this process's own loop is no fault of the zygote. */
const PINGS_UNANSWERED_MAX = 5;
const COMPLAINT_CHARACTERS_MAX = 16_384;

export interface ZygoteOptions {
  launcher: Launcher;
  launch: LaunchOptions;
  /** How long it may take to warm up, in milliseconds. */
  warmMsMax: number;
}

export interface ZygoteListener {
  report(report: Report): void;
  /** Called once. `complaint` is the end of what it wrote to stderr. */
  ended(complaint: string): void;
}

export class Zygote {
  readonly #startedAtMs = performance.now();
  readonly #process: ChildProcess;
  readonly #control: Duplex;
  readonly #listener: ZygoteListener;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #gone: Promise<void>;
  #beatsUntilWarm: number;
  #unanswered = 0;
  #warm = false;
  #complaint = '';

  constructor({ launcher, launch, warmMsMax }: ZygoteOptions, listener: ZygoteListener) {
    this.#listener = listener;
    this.#beatsUntilWarm = Math.ceil(warmMsMax / PING_INTERVAL_MS);
    this.#process = launcher.launch(launch);
    this.#control = this.#process.stdio[3] as Duplex;
    const reader = new ReportReader();
    this.#control.on('data', (chunk: Buffer) => {
      try {
        for (const report of reader.read(chunk)) this.#receive(report);
      } catch (error) {
        this.#complain(`${error}\n`);
        this.kill();
      }
    });
    // A broken pipe here is the zygote's end, which its exit reports.
    for (const stream of this.#process.stdio) stream?.on('error', () => this.kill());
    this.#process.stderr?.on('data', (chunk: Buffer) => this.#complain(chunk.toString()));
    this.#heartbeat = setInterval(() => this.#beat(), PING_INTERVAL_MS).unref();
    this.#gone = new Promise((resolve) => {
      const end = (complaint: string): void => {
        this.#complain(complaint);
        clearInterval(this.#heartbeat);
        resolve();
        this.#listener.ended(this.#complaint);
      };
      // It may have gone before it had bound its child's life to its own: the child would keep the streams open.
      this.#process.once('exit', () => this.#killGroup());
      // 'close' follows 'exit' once the streams are drained, so that every report has been read.
      this.#process.once('close', () => end(''));
      this.#process.once('error', (error) => {
        if (this.#process.pid === undefined) end(`${error.message}\n`);
      });
    });
  }

  get ageMs(): number {
    return performance.now() - this.#startedAtMs;
  }

  get processId(): number | undefined {
    return this.#process.pid;
  }

  /**
   * Sends a command; one to a zygote that has ended is lost with it. What is sent in one turn of the event loop goes
   * out as one write, so that the zygote wakes once.
   */
  send(command: Command): void {
    if (!this.#control.writable) return;
    if (this.#control.writableCorked === 0) {
      this.#control.cork();
      process.nextTick(() => this.#control.uncork());
    }
    this.#control.write(encodeCommand(command));
  }

  /** Ends it and everything in it, at once. */
  kill(): void {
    const { pid, exitCode, signalCode } = this.#process;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    if (!this.#killGroup()) this.#process.kill('SIGKILL');
    this.#control.destroy();
  }

  /** Resolves when it is gone. */
  gone(): Promise<void> {
    return this.#gone;
  }

  /** Ends the launcher and whatever has not left its group. False when there is nobody in it. */
  #killGroup(): boolean {
    const { pid } = this.#process;
    if (pid === undefined) return false;
    try {
      return process.kill(-pid, 'SIGKILL');
    } catch {
      return false;
    }
  }

  #receive(report: Report): void {
    this.#unanswered = 0;
    if (report.operation === 'warm') this.#warm = true;
    if (report.operation !== 'pong') this.#listener.report(report);
  }

  #beat(): void {
    if (!this.#warm) {
      if (--this.#beatsUntilWarm > 0) return;
      this.#complain('the zygote does not get warm\n');
      this.kill();
      return;
    }
    if (this.#unanswered >= PINGS_UNANSWERED_MAX) {
      this.#complain('the zygote no longer answers\n');
      this.kill();
      return;
    }
    this.#unanswered++;
    this.send({ operation: 'ping' });
  }

  #complain(text: string): void {
    this.#complaint = (this.#complaint + text).slice(-COMPLAINT_CHARACTERS_MAX);
  }
}
