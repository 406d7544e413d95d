/**
 * One zygote and the processes it has forked: spares that wait for a program, and programs that run.
 *
 * A generation that retires forks no more, gives up its spares, and ends when its last program has. A fork that
 * fails, or a spare that ends before it is ready, is tried again a little later; after several in a row the
 * generation is faulty: it forks no more, and ends when its last program has, to be replaced.
 */

import { randomUUID } from 'node:crypto';
import { availableParallelism, constants } from 'node:os';
import type { RunChannels } from './channels.ts';
import type { Launcher, LaunchOptions } from './launchers/launcher.ts';
import type { SandboxLogger } from './logger.ts';
import type { Report } from './protocol.ts';
import { RunProcess } from './run-process.ts';
import { Zygote } from './zygote.ts';

const RETRY_MS = 100;
const FAILURES_MAX = 5;
/**
 * How long a zygote may be unable to fork, in milliseconds. Programs that have many threads may take every process there
 * may be for a while: another zygote would do no better, and what runs would be lost.
 */
const CANNOT_FORK_MS_MAX = 5000;

export interface GenerationOptions {
  launcher: Launcher;
  launch: LaunchOptions;
  /** A zygote that takes longer to warm up is killed. */
  warmMsMax: number;
  channels: RunChannels;
  logger: SandboxLogger;
  /** How many processes to keep ready. */
  spares: number;
  onSpareReady: () => void;
  /** The zygote is gone, and with it every process. `complaint` is what it last wrote to stderr. */
  onEnd: (complaint: string) => void;
}

export class Generation {
  readonly zygote: Zygote;
  readonly #options: GenerationOptions;
  readonly #processes = new Map<number, RunProcess>();
  readonly #cores = availableParallelism();
  #sequence = 0;
  #warm = false;
  #retiring = false;
  /** Spares in a row that did not come to be. */
  #failures = 0;
  /** Since when it could not fork; null since the last spare that came to be. */
  #cannotForkSinceMs: number | null = null;
  #retry: NodeJS.Timeout | undefined;
  #everReady = false;
  #lastComplaint = '';
  /** Of the launcher's count, what has been accounted for. */
  #killedForMemory: number;

  constructor(options: GenerationOptions) {
    this.#options = options;
    this.#killedForMemory = options.launcher.killedForMemory ?? 0;
    this.zygote = new Zygote(options, {
      report: (report) => this.#receive(report),
      ended: (complaint) => this.#ended(complaint),
    });
  }

  get retiring(): boolean {
    return this.#retiring;
  }

  /** Forks this generation was asked for. */
  get forks(): number {
    return this.#sequence;
  }

  /** Processes that wait for a program. */
  get sparesReady(): number {
    let count = 0;
    for (const process of this.#processes.values()) if (process.ready && !process.taken) count++;
    return count;
  }

  /** Whether it can make processes: one has come to be, and the latest have not failed one after the other. */
  get serves(): boolean {
    return this.#warm && !this.#faulty && this.#everReady;
  }

  /** A process that is ready, on the core with the least to do; it is the caller's from here on. */
  takeSpare(): RunProcess | undefined {
    const busy = this.#countByCore((process) => process.taken);
    let best: RunProcess | undefined;
    for (const process of this.#processes.values()) {
      if (!process.ready || process.taken) continue;
      if (best === undefined || busy[process.core]! < busy[best.core]!) best = process;
    }
    if (best !== undefined) best.taken = true;
    return best;
  }

  /** Forks what is missing of the spares. */
  refill(): void {
    if (!this.#warm || this.#retiring || this.#faulty || this.#retry !== undefined) return;
    let spares = 0;
    for (const process of this.#processes.values()) if (!process.taken) spares++;
    for (; spares < this.#options.spares; spares++) this.#fork();
  }

  retire(): void {
    this.#retiring = true;
    for (const process of this.#processes.values()) if (!process.taken) process.stop('cancel');
    this.#endWhenIdle();
  }

  #fork(): void {
    const use = this.#countByCore(() => true);
    const process = new RunProcess({
      sequence: ++this.#sequence,
      core: use.indexOf(Math.min(...use)),
      token: newToken(),
      zygote: this.zygote,
      onReady: () => {
        this.#failures = 0;
        this.#cannotForkSinceMs = null;
        this.#everReady = true;
        this.#options.onSpareReady();
      },
    });
    const { sequence, core, token } = process;
    this.#processes.set(sequence, process);
    this.#options.channels.expect(token, (kind, connection, early) =>
      process.attach(kind, connection, early),
    );
    this.zygote.send({ operation: 'fork', sequence, core, token });
  }

  #countByCore(counts: (process: RunProcess) => boolean): number[] {
    const use = new Array<number>(this.#cores).fill(0);
    for (const process of this.#processes.values()) if (counts(process)) use[process.core]!++;
    return use;
  }

  #receive(report: Report): void {
    if (report.operation === 'warm') {
      this.#warm = true;
      this.refill();
    } else if (report.operation === 'exited') {
      this.#exited(report);
    } else if (report.operation === 'forkFailed') {
      this.#processes.delete(report.sequence);
      this.#cannotForkSinceMs ??= performance.now();
      this.#spareFailed(`errno ${report.errno}`, 'the zygote cannot fork');
    }
  }

  #spareFailed(complaint: string, message: string): void {
    this.#options.logger.error({ complaint }, message);
    this.#lastComplaint = `${message}\n${complaint}`;
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.refill();
      this.#endWhenIdle();
    }, RETRY_MS);
  }

  get #faulty(): boolean {
    if (this.#failures >= FAILURES_MAX) return true;
    return (
      this.#cannotForkSinceMs !== null && performance.now() - this.#cannotForkSinceMs > CANNOT_FORK_MS_MAX
    );
  }

  #exited(report: Extract<Report, { operation: 'exited' }>): void {
    const process = this.#processes.get(report.sequence);
    if (process === undefined) return;
    this.#processes.delete(report.sequence);
    this.#options.channels.forget(process.token);
    process.exited(report, this.#wasKilledForMemory(report.waitStatus));
    if (!process.ready && !this.#retiring) {
      this.#failures++;
      // Its own words explain why it could not confine itself.
      this.#spareFailed(process.complaint, 'a spare process failed to start');
    } else {
      this.refill();
    }
    this.#endWhenIdle();
  }

  /** Only SIGKILL can be the kernel's doing, and only where its count has gone up. */
  #wasKilledForMemory(waitStatus: number): boolean {
    if (waitStatus !== constants.signals.SIGKILL) return false;
    const killed = this.#options.launcher.killedForMemory ?? 0;
    if (killed <= this.#killedForMemory) return false;
    this.#killedForMemory++;
    return true;
  }

  #endWhenIdle(): void {
    if (this.#retiring && this.#processes.size === 0) this.zygote.kill();
    if (this.#faulty && [...this.#processes.values()].every((process) => !process.taken)) this.zygote.kill();
  }

  #ended(complaint: string): void {
    clearTimeout(this.#retry);
    for (const process of this.#processes.values()) {
      this.#options.channels.forget(process.token);
      process.lost();
    }
    this.#processes.clear();
    this.#options.onEnd(this.#faulty ? complaint + this.#lastComplaint : complaint);
  }
}

/** 122 random bits. Node draws those of UUIDs from its source by the hundred, and single bytes call by call. */
function newToken(): Buffer {
  return Buffer.from(randomUUID().replaceAll('-', ''), 'hex');
}
