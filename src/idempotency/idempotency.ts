/**
 * One run for requests that are sent again: the first request with an Idempotency-Key does the work and records its
 * answer; whoever sends the same again within a day gets that answer.
 *
 * Use: `begin` gives either a `Replay` or a `Reservation`. Who holds a reservation does the work and then calls
 * `record`, or `recordWithin` with the transaction that makes the work durable, so that a crash leaves both or neither;
 * and in every case, in a `finally` and after the commit, `release`. A reservation that is released without a record
 * has freed its key: the next request does the work anew.
 *
 *     const begun = await idempotency.begin(request);
 *     if (begun.kind === 'replay') return send(begun);
 *     try {
 *       await db.transaction().execute(async (transaction) => {
 *         await insertJob(transaction, job);
 *         await begun.recordWithin(transaction, { status: 202, location, body });
 *       });
 *     } finally {
 *       begun.release();
 *     }
 *
 * Concurrency: reservations are in memory, and taken before anything is awaited. Requests of the same name stand in
 * line while one of them looks for a recorded answer; then the first that finds none has the reservation, and the
 * others are refused until it is released. So of any number that arrive at once, one works.
 *
 * Failure: a crash forgets every reservation and no record, which is what the contract asks for. An answer that
 * cannot be recorded is the caller's loss at a repetition alone; see `src/http/routes/execute.ts`. Two processes on one
 * database would not see each other's reservations; a database for several keeps them in a table, with a lease.
 */

import type { Transaction } from 'kysely';
import type { Clock } from '../shared/clock.ts';
import { ServiceError } from '../shared/errors.ts';
import {
  type AnswerName,
  type IdempotencyStore,
  type NewAnswer,
  PART_BYTES,
  type StoredAnswer,
  storedBytes,
} from '../store/idempotency-store.ts';
import type { Database } from '../store/schema.ts';
import { Retention, type RetentionOptions } from './retention.ts';

/** A request that may be one sent again. */
export interface IdempotentRequest extends AnswerName {
  /** SHA-256 of the body as it was sent, in hexadecimal. */
  requestHash: string;
  requestId: string;
}

/** An answer that is given again. */
export interface FirstAnswer {
  status: 200 | 202;
  location: string | null;
  /** The bytes as they are sent. */
  body: Buffer;
}

/** The right to do the work of a request, and to say what came of it. */
export interface Reservation {
  kind: 'reservation';
  /** Records the answer. Once that has resolved, it survives the death of the process. */
  record(answer: FirstAnswer): Promise<void>;
  /** Records the answer in a transaction of the caller's, together with what the transaction does. */
  recordWithin(transaction: Transaction<Database>, answer: FirstAnswer): Promise<void>;
  /** Lets others with the same key go on, to what was recorded or to the work. To be called in every case. */
  release(): void;
}

/** An answer that was recorded before. */
export interface Replay {
  kind: 'replay';
  status: number;
  location: string | null;
  bodyBytes: number;
  /** How many parts the body has; at least one. */
  parts: number;
  /** A part of the body, counted from 0. Throws when the answer has been deleted meanwhile. */
  part(position: number): Promise<Uint8Array>;
}

/** A request that holds its name. */
interface Holder {
  requestHash: string;
  /** While it looks for a recorded answer; null once it works. */
  lookingUp: Promise<unknown> | null;
}

export class Idempotency {
  readonly #store: IdempotencyStore;
  readonly #retention: Retention;
  readonly #clock: Clock;
  readonly #holders = new Map<string, Holder>();

  private constructor({ store, clock }: RetentionOptions, retention: Retention) {
    this.#store = store;
    this.#retention = retention;
    this.#clock = clock;
  }

  /** On a store that nobody uses yet. The caller must `close` what it gets. */
  static async open(options: RetentionOptions): Promise<Idempotency> {
    return new Idempotency(options, await Retention.open(options));
  }

  /**
   * The answer to a request that was sent before, or the reservation for one that was not.
   * @throws ServiceError `idempotency_conflict` while the first is being worked on, `idempotency_mismatch` when it had
   * another body.
   */
  async begin(request: IdempotentRequest): Promise<Reservation | Replay> {
    const name = nameOf(request);
    for (;;) {
      const holder = this.#holders.get(name);
      if (holder === undefined) break;
      if (holder.lookingUp === null)
        throw holder.requestHash === request.requestHash ? conflict() : mismatch();
      // Its failure is its own caller's.
      await holder.lookingUp.catch(() => undefined);
    }
    const lookingUp = this.#find(request);
    const holder: Holder = { requestHash: request.requestHash, lookingUp };
    this.#holders.set(name, holder);
    const free = () => void this.#holders.delete(name);
    let stored: StoredAnswer | null;
    try {
      stored = await lookingUp;
    } catch (error) {
      free();
      throw error;
    }
    if (stored === null) {
      holder.lookingUp = null;
      return this.#reservation(request, free);
    }
    free();
    if (stored.requestHash !== request.requestHash) throw mismatch();
    return this.#replay(stored);
  }

  /** Whether a request of this name is being worked on, or was answered. */
  async knows(name: AnswerName): Promise<boolean> {
    if (this.#holders.has(nameOf(name))) return true;
    const stored = await this.#store.find(name);
    return stored !== null && this.#retention.isKept(stored);
  }

  /** Ends what goes on in the background. */
  close(): Promise<void> {
    return this.#retention.close();
  }

  /** The recorded answer, if it may still be given. */
  async #find(request: IdempotentRequest): Promise<StoredAnswer | null> {
    const stored = await this.#store.find(request);
    if (stored === null || this.#retention.isKept(stored)) return stored;
    // Deleted now, because the next one takes its name.
    await this.#retention.delete([stored.id]);
    return null;
  }

  #reservation(request: IdempotentRequest, free: () => void): Reservation {
    const { keyId, route, idempotencyKey, requestHash, requestId: id } = request;
    let released = false;
    const count = async (answer: FirstAnswer, insert: (counted: NewAnswer) => Promise<void>) => {
      if (released) throw new Error('An answer cannot be recorded once its reservation is released.');
      const bytes = storedBytes(answer.body.length);
      this.#retention.added(keyId, bytes);
      try {
        const createdAtMs = this.#clock.now();
        await insert({ id, keyId, route, idempotencyKey, requestHash, createdAtMs, ...answer });
      } catch (error) {
        this.#retention.removed(keyId, bytes);
        throw error;
      }
    };
    return {
      kind: 'reservation',
      record: (answer) => count(answer, (counted) => this.#store.insert(counted)),
      recordWithin: (transaction, answer) =>
        count(answer, (counted) => this.#store.insertWithin(transaction, counted)),
      release: () => {
        if (released) return;
        released = true;
        free();
        this.#retention.makeRoom();
      },
    };
  }

  #replay({ id, status, location, bodyBytes }: StoredAnswer): Replay {
    return {
      kind: 'replay',
      status,
      location,
      bodyBytes,
      parts: Math.max(1, Math.ceil(bodyBytes / PART_BYTES)),
      part: async (position) => {
        const part = await this.#store.part(id, position);
        if (part === null) throw new Error(`The recorded answer ${id} was deleted while it was sent.`);
        return part;
      },
    };
  }
}

function nameOf({ keyId, route, idempotencyKey }: AnswerName): string {
  return JSON.stringify([keyId, route, idempotencyKey]);
}

/** Refuses a request whose first is not answered yet. */
export function conflict(): ServiceError {
  return new ServiceError(
    'idempotency_conflict',
    'The first request with this Idempotency-Key is still being worked on: send this one again for its answer.',
    { retryAfterSeconds: 1 },
  );
}

function mismatch(): ServiceError {
  return new ServiceError(
    'idempotency_mismatch',
    'This Idempotency-Key was sent with another body before: a key stands for one request, so take a new one.',
  );
}
