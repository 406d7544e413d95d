/**
 * How long recorded answers are kept: a day, and no more than `bytesMax` of them. Over that bound, the oldest answers of
 * the key that has most go first, as in the queue: filling the store hurts nobody but the one who fills it.
 *
 * The bytes of each key are counted here, since adding up a million rows for each request would cost more than the
 * request. They are read from the database at a start; an answer whose transaction is undone counts until then. The
 * bound is kept after an answer has been given, so that no caller waits for it: what is recorded meanwhile exceeds it.
 */

import { type Clock, DAY_MS } from '../shared/clock.ts';
import { every } from '../shared/every.ts';
import type { Logger } from '../shared/logger.ts';
import { type IdempotencyStore, type StoredAnswer, storedBytes } from '../store/idempotency-store.ts';

/** A repetition within this time is given the first answer. */
const KEPT_MS = DAY_MS;

/** Bytes that all answers may count together. */
const BYTES_MAX = 2 ** 30;

/** Answers that are looked at together. */
const BATCH = 100;

export interface RetentionOptions {
  store: IdempotencyStore;
  clock: Clock;
  logger: Pick<Logger, 'warn'>;
  bytesMax?: number;
  /** Time between two looks for what is too old, in milliseconds. */
  purgeMs?: number;
}

export class Retention {
  readonly #options: Required<RetentionOptions>;
  readonly #bytesByKey: Map<string, number>;
  #bytes: number;
  #making: Promise<void> | null = null;
  readonly #stopPurging: () => Promise<void>;

  private constructor(options: RetentionOptions, bytesByKey: Map<string, number>) {
    this.#options = { bytesMax: BYTES_MAX, purgeMs: 60_000, ...options };
    this.#bytesByKey = bytesByKey;
    this.#bytes = [...bytesByKey.values()].reduce((sum, bytes) => sum + bytes, 0);
    this.#stopPurging = every(
      this.#options.purgeMs,
      () => this.purge(),
      (error) => options.logger.warn({ err: error }, 'old answers could not be deleted'),
    );
  }

  /** For the answers in a store that nobody uses yet. The caller must `close` what it gets. */
  static async open(options: RetentionOptions): Promise<Retention> {
    await options.store.deleteOrphans();
    const retention = new Retention(options, await options.store.bytesByKey());
    retention.makeRoom();
    return retention;
  }

  /** Whether an answer may still be given. */
  isKept({ createdAtMs }: Pick<StoredAnswer, 'createdAtMs'>): boolean {
    return this.#options.clock.now() < createdAtMs + KEPT_MS;
  }

  /** Counts an answer that is about to be recorded. */
  added(keyId: string, bytes: number): void {
    this.#bytes += bytes;
    this.#bytesByKey.set(keyId, (this.#bytesByKey.get(keyId) ?? 0) + bytes);
  }

  /** Takes back what `added` has counted. */
  removed(keyId: string, bytes: number): void {
    const before = this.#bytesByKey.get(keyId) ?? 0;
    const left = Math.max(0, before - bytes);
    this.#bytes -= before - left;
    if (left === 0) this.#bytesByKey.delete(keyId);
    else this.#bytesByKey.set(keyId, left);
  }

  /** Deletes answers. Who else deletes one of them at the same time does not count it again. */
  async delete(ids: string[]): Promise<void> {
    for (const { keyId, bodyBytes } of await this.#options.store.delete(ids)) {
      this.removed(keyId, storedBytes(bodyBytes));
    }
  }

  /** Deletes answers, in the background, until the rest is within the bound. */
  makeRoom(): void {
    if (this.#bytes <= this.#options.bytesMax) return;
    this.#making ??= this.#deleteExcess()
      .catch((error: unknown) =>
        this.#options.logger.warn({ err: error }, 'answers over the bound could not be deleted'),
      )
      .finally(() => {
        this.#making = null;
      });
  }

  /** Deletes what is too old. Ids sort by time, but for the length of a run. */
  async purge(): Promise<void> {
    for (;;) {
      const oldest = await this.#options.store.oldest(BATCH);
      const expired = oldest.filter((answer) => !this.isKept(answer));
      await this.delete(expired.map(({ id }) => id));
      if (expired.length === 0) return;
    }
  }

  async close(): Promise<void> {
    await this.#stopPurging();
    await this.#making;
  }

  async #deleteExcess(): Promise<void> {
    while (this.#bytes > this.#options.bytesMax) {
      const keyId = this.#largest();
      const oldest = await this.#options.store.oldest(BATCH, keyId);
      // None is left of what was counted: its transaction was undone.
      if (oldest.length === 0) this.removed(keyId, Number.POSITIVE_INFINITY);
      let excess = this.#bytes - this.#options.bytesMax;
      const victims: string[] = [];
      for (const answer of oldest) {
        if (excess <= 0) break;
        victims.push(answer.id);
        excess -= storedBytes(answer.bodyBytes);
      }
      await this.delete(victims);
    }
  }

  /** The key that has most. */
  #largest(): string {
    let largest = { keyId: '', bytes: -1 };
    for (const [keyId, bytes] of this.#bytesByKey) {
      if (bytes > largest.bytes) largest = { keyId, bytes };
    }
    return largest.keyId;
  }
}
