/**
 * Writes down usage before answers are sent, and knows what each key has used today.
 *
 * Algorithm: what is to be recorded is collected, and written in one transaction as soon as the one before has ended:
 * a lone run is written at once, and of a hundred that end together most share a commit. Refusals go along with runs;
 * without any they are written at most every `refusalPauseMs`, since nothing else bounds how many there are.
 *
 * Failure: a transaction that fails has charged nothing. Its runs are rejected and its refusals kept for the next one.
 * From then on `writable` is false and the database is tried every `probeMs`, until it takes a write again. While
 * another process holds the write lock, all that is asked for waits (see dialect.ts).
 */

import { type Clock, DAY_MS, HOUR_MS } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import { turnOfOthers } from '../shared/turn.ts';
import { hourOf, type Refusals, type RunCharge, type UsageStore } from '../store/usage-store.ts';
import type { CpuUsage } from './cpu-usage.ts';
import type { RefusalCode, RefusalRecorder } from './refusals.ts';

export interface UsageRecorderOptions {
  store: UsageStore;
  clock: Clock;
  logger: Logger;
  observer: UsageObserver;
  /** Least time between two transactions that hold refusals alone, in milliseconds. */
  refusalPauseMs?: number;
  /** Time between two attempts to write to a database that did not take a write, in milliseconds. */
  probeMs?: number;
  /** Time between two looks for what is too old to be kept, in milliseconds. */
  purgeMs?: number;
}

/** Who wants to know of what is recorded: the metrics. */
export interface UsageObserver {
  ran(charge: RunCharge, kind: RunKind): void;
  refused(code: RefusalCode): void;
  /** A transaction that ended well after this time. */
  stored(durationMs: number): void;
}

/** Whether a caller waited for the run, or it was a job. */
export type RunKind = 'request' | 'job';

interface PendingRun {
  charge: RunCharge;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/** A transaction that follows another within this time is one that others may want to join. */
const SHARED_MS = 2;

export class UsageRecorder implements CpuUsage, RefusalRecorder {
  readonly #options: Required<UsageRecorderOptions>;
  readonly #cpuMsToday = new Map<string, number>();
  #today: number;
  #runs: PendingRun[] = [];
  /** By key, hour and code. */
  #refusals = new Map<string, Refusals>();
  #isWriting = false;
  #writing: Promise<void> = Promise.resolve();
  /** The transaction that is on its way, or was last. */
  #batch: Promise<void> = Promise.resolve();
  #refusalTimer: NodeJS.Timeout | undefined;
  #writtenMs = Number.NEGATIVE_INFINITY;
  #onRefusalsWritten: (() => void)[] = [];
  #writable = true;
  #probe: NodeJS.Timeout | undefined;
  #probing: Promise<void> = Promise.resolve();
  #closed = false;
  #purging: Promise<void> = Promise.resolve();
  #purge: NodeJS.Timeout | undefined;

  private constructor(options: UsageRecorderOptions) {
    this.#options = { refusalPauseMs: 10, probeMs: 1000, purgeMs: HOUR_MS, ...options };
    this.#today = this.#dayNow();
  }

  /** A recorder that knows what was used today before it was there. The caller must `close` it. */
  static async open(options: UsageRecorderOptions): Promise<UsageRecorder> {
    const recorder = new UsageRecorder(options);
    for (const [keyId, cpuMs] of await options.store.cpuMsSince(recorder.#today)) {
      recorder.#cpuMsToday.set(keyId, cpuMs);
    }
    recorder.#purge = setInterval(() => recorder.purge(), recorder.#options.purgeMs).unref();
    recorder.purge();
    return recorder;
  }

  /** False from the first write that fails until one succeeds. What would run then could not be charged. */
  get writable(): boolean {
    return this.#writable;
  }

  /**
   * Charges an ended run. Resolves once that is stored; when it rejects, nothing was charged. Meanwhile what it has used
   * counts already.
   */
  record(charge: RunCharge): Promise<void> {
    this.#addToday(charge, charge.cpu_ms);
    return new Promise((resolve, reject) => {
      this.#runs.push({ charge, resolve, reject });
      this.#write();
    });
  }

  /** Counts a job, whose charge was stored with its end. */
  charged(charge: RunCharge): void {
    this.#options.observer.ran(charge, 'job');
    this.#addToday(charge, charge.cpu_ms);
  }

  refused(keyId: string, code: RefusalCode): void {
    this.#options.observer.refused(code);
    this.#addRefusals({ key_id: keyId, hour: hourOf(this.#options.clock.now()), outcome: code, count: 1 });
    this.#writeRefusalsSoon();
  }

  /** Resolves once every refusal so far is stored, or cannot be for now. */
  async refusalsStored(): Promise<void> {
    if (!this.#writable) return;
    if (this.#refusals.size === 0) await this.#batch;
    else await new Promise<void>((resolve) => this.#onRefusalsWritten.push(resolve));
  }

  usedTodayMs(keyId: string): number {
    this.#turnDay();
    return this.#cpuMsToday.get(keyId) ?? 0;
  }

  /** Deletes what is too old to be kept. */
  purge(): void {
    const { store, clock, logger } = this.#options;
    this.#purging = this.#purging
      .then(() => store.purge(clock.now()))
      .catch((error: unknown) => logger.warn({ err: error }, 'old usage could not be deleted'));
  }

  /** Resolves once every run so far is charged, or was rejected. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** Writes what is left. Nothing may be recorded afterwards. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#purge);
    clearTimeout(this.#probe);
    clearTimeout(this.#refusalTimer);
    await Promise.all([this.#purging, this.#probing]);
    await this.#writing;
    if (this.#refusals.size > 0 && this.#writable) this.#write();
    await this.#writing;
  }

  #addRefusals(refusals: Refusals): void {
    const name = `${refusals.hour} ${refusals.key_id} ${refusals.outcome}`;
    const known = this.#refusals.get(name);
    if (known === undefined) this.#refusals.set(name, refusals);
    else known.count += refusals.count;
  }

  #writeRefusalsSoon(): void {
    if (this.#refusalTimer !== undefined || !this.#writable || this.#closed) return;
    const { clock, refusalPauseMs } = this.#options;
    const pauseMs = this.#writtenMs + refusalPauseMs - clock.monotonicMs();
    if (pauseMs <= 0) {
      this.#write();
      return;
    }
    this.#refusalTimer = setTimeout(() => {
      this.#refusalTimer = undefined;
      this.#write();
    }, pauseMs);
  }

  /** At any time one goes on; what comes up meanwhile is written by it. */
  #write(): void {
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#writing = this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    do {
      // Where one follows another, what ends in this turn of the event loop is written together. A lone run does not
      // wait for that turn, in which the connections of the next spare are taken.
      if (this.#options.clock.monotonicMs() - this.#writtenMs < SHARED_MS) await turnOfOthers();
      this.#batch = this.#writeBatch();
      await this.#batch;
    } while (this.#runs.length > 0);
    // In the same step as the look at what is left, so that nothing comes up in between.
    this.#isWriting = false;
  }

  async #writeBatch(): Promise<void> {
    const { store, clock, observer } = this.#options;
    const runs = this.#runs;
    const refusals = [...this.#refusals.values()];
    const onRefusalsWritten = this.#onRefusalsWritten;
    this.#runs = [];
    this.#refusals = new Map();
    this.#onRefusalsWritten = [];
    clearTimeout(this.#refusalTimer);
    this.#refusalTimer = undefined;
    const charges = runs.map(({ charge }) => charge);
    const startMs = clock.monotonicMs();
    try {
      await store.add(charges, refusals);
      observer.stored(clock.monotonicMs() - startMs);
      this.#writable = true;
      for (const charge of charges) observer.ran(charge, 'request');
      for (const { resolve } of runs) resolve();
    } catch (error) {
      for (const each of refusals) this.#addRefusals(each);
      this.#failed(error);
      for (const charge of charges) this.#addToday(charge, -charge.cpu_ms);
      for (const { reject } of runs) reject(error);
    }
    this.#writtenMs = clock.monotonicMs();
    for (const resolve of onRefusalsWritten) resolve();
    if (this.#refusals.size > 0) this.#writeRefusalsSoon();
  }

  #addToday({ key_id, ended_at }: RunCharge, cpuMs: number): void {
    this.#turnDay();
    if (ended_at < this.#today) return;
    this.#cpuMsToday.set(key_id, (this.#cpuMsToday.get(key_id) ?? 0) + cpuMs);
  }

  #failed(error: unknown): void {
    const { logger, probeMs } = this.#options;
    if (this.#writable) logger.error({ err: error }, 'usage cannot be stored: nothing is run until it can');
    this.#writable = false;
    if (this.#closed) return;
    this.#probe ??= setTimeout(() => {
      this.#probe = undefined;
      this.#probing = this.#tryAgain();
    }, probeMs);
  }

  async #tryAgain(): Promise<void> {
    try {
      await this.#options.store.probe();
    } catch (error) {
      this.#failed(error);
      return;
    }
    this.#writable = true;
    this.#options.logger.info({}, 'usage can be stored again');
    if (this.#refusals.size > 0) this.#writeRefusalsSoon();
  }

  #turnDay(): void {
    const today = this.#dayNow();
    // A clock that is set back over midnight does not make the day begin again.
    if (today === this.#today || today === this.#today - DAY_MS) return;
    this.#today = today;
    this.#cpuMsToday.clear();
  }

  #dayNow(): number {
    const nowMs = this.#options.clock.now();
    return nowMs - (nowMs % DAY_MS);
  }
}
