/**
 * Who may run now. Slots are few and a run holds one from its start to its end; who finds none waits.
 *
 * Algorithm: waiting entries are kept in one list per key, and the keys in a ring. A freed slot goes to the
 * oldest entry of the key at the front of the ring, which then moves to the back: a thousand waiting entries
 * of one key delay another key's next run by one run at most.
 *
 * Jobs wait in the database and have one entry here, which stands for all of them. While both wait, slots go to a
 * request and to a job by turns, so that neither starves the other. Of two slots or more the last is not for jobs as
 * long as a request came within `quietMs`: a request waits for a job to end only if it is the first for a while.
 *
 * Bounds: the queue holds `queueMax` entries of `queueBytesMax` in all, for `queueWaitMs` each. An entry over a
 * bound pushes out the newest entry of the key that has most waiting, itself included, and the key that arrives
 * loses a tie: filling the queue hurts nobody but the one who fills it.
 *
 * Concurrency: everything here runs on one thread without awaiting in between, so no state is ever half changed.
 * Failure: a waiting entry ends in exactly one way (slot, refusal, abort, close), and `release` counts once.
 */

import { ServiceError } from '../shared/errors.ts';

export interface AdmissionOptions {
  /** Entries that hold a slot at the same time. */
  concurrency: number;
  /** Entries that may wait. */
  queueMax: number;
  /** Bytes that waiting entries may hold in memory together. */
  queueBytesMax: number;
  /** Longest wait of one entry, in milliseconds. */
  queueWaitMs: number;
  /** Time without requests after which jobs may take every slot, in milliseconds. */
  quietMs?: number;
}

const QUIET_MS = 60_000;

/** A right to run. Whoever holds it must call `release`, once the run's process is gone. */
export interface Slot {
  release(): void;
}

interface Entry {
  keyId: string;
  bytes: number;
  admit: (slot: Slot) => void;
  refuse: (error: unknown) => void;
}

/** The waiting entries of one key, oldest first. */
interface Line {
  entries: Entry[];
  bytes: number;
}

export class Admission {
  readonly #options: AdmissionOptions;
  /** In the order of turns: the first key is the next to be served. */
  readonly #lines = new Map<string, Line>();
  #waiting = 0;
  #waitingBytes = 0;
  #running = 0;
  #jobsRunning = 0;
  /** Gives a slot to the jobs, while they want one; null once there will be none. */
  #serveJobs: ((slot: Slot | null) => void) | null = null;
  #lastServed: 'request' | 'job' = 'job';
  #lastRequestMs = Number.NEGATIVE_INFINITY;
  #quiet: NodeJS.Timeout | undefined;
  #closed = false;
  #onIdle: (() => void)[] = [];

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Entries that hold a slot. */
  get running(): number {
    return this.#running;
  }

  /** Entries that wait for one. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Waits for a slot on behalf of a key. `bytes` is what the entry holds in memory while it waits.
   * @throws ServiceError `overloaded` when refused, `shutting_down` after `close`; the signal's reason when aborted.
   */
  async acquire(keyId: string, options: { bytes: number; signal: AbortSignal }): Promise<Slot> {
    options.signal.throwIfAborted();
    if (this.#closed) throw shuttingDown();
    this.#lastRequestMs = performance.now();
    if (this.#running < this.#options.concurrency) return this.#takeSlot('request');
    return this.#wait(keyId, options.bytes, options.signal);
  }

  /** Waits for a slot on behalf of the jobs, which ask for one at a time. Null after `close`. */
  acquireForJob(): Promise<Slot | null> {
    if (this.#closed) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#serveJobs = resolve;
      this.#serveWaiting();
    });
  }

  /** From now on nobody new is admitted and whoever waits is refused; running entries go on. */
  close(): void {
    this.#closed = true;
    for (const line of [...this.#lines.values()]) {
      for (const entry of [...line.entries]) this.#refuse(entry, shuttingDown());
    }
    clearTimeout(this.#quiet);
    this.#serveJobs?.(null);
    this.#serveJobs = null;
  }

  /** True until `close`. */
  get open(): boolean {
    return !this.#closed;
  }

  /** Resolves when no entry holds a slot. */
  idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  #takeSlot(kind: 'request' | 'job'): Slot {
    this.#running++;
    if (kind === 'job') this.#jobsRunning++;
    this.#lastServed = kind;
    let released = false;
    return {
      release: () => {
        if (released) return;
        released = true;
        this.#running--;
        if (kind === 'job') this.#jobsRunning--;
        else this.#lastRequestMs = performance.now();
        this.#serveWaiting();
        if (this.#running === 0) {
          for (const resolve of this.#onIdle.splice(0)) resolve();
        }
      },
    };
  }

  #wait(keyId: string, bytes: number, signal: AbortSignal): Promise<Slot> {
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#refuse(entry, signal.reason);
      const timer = setTimeout(
        () => this.#refuse(entry, overloaded('No slot became free in time.')),
        this.#options.queueWaitMs,
      );
      const settle = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      };
      const entry: Entry = {
        keyId,
        bytes,
        admit: (slot) => {
          settle();
          resolve(slot);
        },
        refuse: (error) => {
          settle();
          reject(error);
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#add(entry);
    });
  }

  #add(entry: Entry): void {
    const line = this.#lines.get(entry.keyId) ?? { entries: [], bytes: 0 };
    this.#lines.set(entry.keyId, line);
    line.entries.push(entry);
    line.bytes += entry.bytes;
    this.#waiting++;
    this.#waitingBytes += entry.bytes;
    while (this.#waiting > this.#options.queueMax) {
      this.#pushOut(entry.keyId, (candidate) => candidate.entries.length);
    }
    while (this.#waitingBytes > this.#options.queueBytesMax) {
      this.#pushOut(entry.keyId, (candidate) => candidate.bytes);
    }
  }

  /** Refuses the newest entry of the key that has most waiting; of several, the arriving key. */
  #pushOut(arrivingKeyId: string, measure: (line: Line) => number): void {
    let largest = this.#lines.get(arrivingKeyId);
    for (const line of this.#lines.values()) {
      if (largest === undefined || measure(line) > measure(largest)) largest = line;
    }
    const newest = largest?.entries.at(-1);
    if (newest !== undefined) this.#refuse(newest, overloaded('The queue of waiting runs is full.'));
  }

  #refuse(entry: Entry, error: unknown): void {
    if (this.#remove(entry)) entry.refuse(error);
  }

  #serveWaiting(): void {
    while (this.#running < this.#options.concurrency) {
      const jobs = this.#jobMayStart() ? this.#serveJobs : null;
      if (jobs !== null && (this.#waiting === 0 || this.#lastServed === 'request')) {
        this.#serveJobs = null;
        jobs(this.#takeSlot('job'));
      } else if (this.#waiting > 0) {
        this.#serveNextRequest();
      } else {
        return;
      }
    }
  }

  #serveNextRequest(): void {
    for (const [keyId, line] of this.#lines) {
      const entry = line.entries[0];
      if (entry === undefined) return;
      this.#remove(entry);
      if (this.#lines.delete(keyId)) this.#lines.set(keyId, line);
      entry.admit(this.#takeSlot('request'));
      return;
    }
  }

  /** Whether jobs may have one more of the slots. When only time is missing, they are asked again. */
  #jobMayStart(): boolean {
    const { concurrency, quietMs = QUIET_MS } = this.#options;
    if (this.#serveJobs === null) return false;
    if (concurrency === 1 || this.#jobsRunning < concurrency - 1) return true;
    const waitMs = this.#lastRequestMs + quietMs - performance.now();
    clearTimeout(this.#quiet);
    if (waitMs > 0) this.#quiet = setTimeout(() => this.#serveWaiting(), waitMs).unref();
    return waitMs <= 0;
  }

  /** False when the entry no longer waits. */
  #remove(entry: Entry): boolean {
    const line = this.#lines.get(entry.keyId);
    const index = line?.entries.indexOf(entry) ?? -1;
    if (line === undefined || index === -1) return false;
    line.entries.splice(index, 1);
    line.bytes -= entry.bytes;
    this.#waiting--;
    this.#waitingBytes -= entry.bytes;
    if (line.entries.length === 0) this.#lines.delete(entry.keyId);
    return true;
  }
}

function overloaded(reason: string): ServiceError {
  return new ServiceError('overloaded', `${reason} ${SEND_AGAIN}`);
}

function shuttingDown(): ServiceError {
  return new ServiceError('shutting_down', `The service is shutting down. ${SEND_AGAIN}`);
}

const SEND_AGAIN = 'Nothing ran and nothing was charged: send the request again.';
