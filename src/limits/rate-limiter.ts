/**
 * The requests per minute of every key, across restarts.
 *
 * Buckets live in memory; the database holds, for each, a level that it has at least: what is really left, less a
 * tenth of the burst. As long as that is so nothing is written, so a key writes once in a tenth of its burst, and a
 * burst below ten with every request, which takes 0.1 ms. A request waits for the write that covers it.
 *
 * Failure: after a crash a bucket goes on from what the database says, at most a tenth of its burst less than was
 * left and never more. A shutdown writes what is really left. When the database takes no write the request fails.
 *
 * Time is the wall clock's at the start and runs evenly from there: setting the clock neither fills a bucket nor
 * empties it, and a stored moment of the future counts as the start.
 */

import type { Clock } from '../shared/clock.ts';
import type { RateBucketStore } from '../store/rate-bucket-store.ts';
import { type Bucket, fullBucket, type Rate, REQUEST, refilled, waitMs } from './token-bucket.ts';

interface KnownBucket {
  bucket: Bucket;
  /** What the database says, or will once `saving` has ended; null when it does not know the key. */
  stored: Bucket | null;
  saving: Promise<void> | null;
}

export class RateLimiter {
  readonly #store: Pick<RateBucketStore, 'save'>;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #buckets = new Map<string, KnownBucket>();
  #unsaved = new Map<string, Bucket>();
  #lastSave: Promise<void> = Promise.resolve();
  #nextSave: Promise<void> | null = null;

  private constructor(store: Pick<RateBucketStore, 'save'>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#startMs = clock.now() - clock.monotonicMs();
  }

  /** A limiter that goes on where the one before has ended. */
  static async open(store: RateBucketStore, clock: Clock): Promise<RateLimiter> {
    const limiter = new RateLimiter(store, clock);
    const nowMs = limiter.#nowMs();
    for (const [keyId, { level, atMs }] of await store.all()) {
      const stored = { level, atMs: Math.min(atMs, nowMs) };
      limiter.#buckets.set(keyId, { bucket: stored, stored, saving: null });
    }
    return limiter;
  }

  /** What is left to a key now. */
  left(keyId: string, rate: Rate): Bucket {
    const nowMs = this.#nowMs();
    const known = this.#buckets.get(keyId);
    return known === undefined ? fullBucket(rate, nowMs) : refilled(known.bucket, rate, nowMs);
  }

  /** Milliseconds until a request of the key is let in; 0 when one is now. */
  waitMs(keyId: string, rate: Rate): number {
    return waitMs(this.left(keyId, rate), rate);
  }

  /** Takes one request. `waitMs` was 0 at this moment. The caller must wait for `saved` before the request goes on. */
  take(keyId: string, rate: Rate): void {
    const left = this.left(keyId, rate);
    const bucket = { level: left.level - REQUEST, atMs: left.atMs };
    const known = this.#buckets.get(keyId) ?? { bucket, stored: null, saving: null };
    this.#buckets.set(keyId, known);
    known.bucket = bucket;
    if (known.stored !== null && bucket.level >= refilled(known.stored, rate, bucket.atMs).level) return;
    const ahead = Math.floor(rate.burst / 10) * REQUEST;
    this.#save(keyId, known, { level: bucket.level - ahead, atMs: bucket.atMs });
  }

  /** Resolves once the database covers what the key has taken. */
  async saved(keyId: string): Promise<void> {
    await this.#buckets.get(keyId)?.saving;
  }

  /** Writes what is really left. */
  async close(): Promise<void> {
    for (const [keyId, known] of this.#buckets) {
      if (known.stored?.level !== known.bucket.level || known.stored.atMs !== known.bucket.atMs) {
        this.#save(keyId, known, known.bucket);
      }
    }
    await this.#lastSave;
  }

  #save(keyId: string, known: KnownBucket, stored: Bucket): void {
    known.stored = stored;
    this.#unsaved.set(keyId, stored);
    const saving = this.#saveSoon();
    known.saving = saving;
    saving.then(
      () => {
        if (known.saving === saving) known.saving = null;
      },
      () => {
        // Whoever waits is told; the next request tries again.
        if (known.saving !== saving) return;
        known.saving = null;
        known.stored = null;
      },
    );
  }

  /** One transaction at a time takes all that has come up since the one before. */
  #saveSoon(): Promise<void> {
    this.#nextSave ??= this.#lastSave
      .catch(() => undefined)
      .then(async () => {
        const batch = [...this.#unsaved];
        this.#unsaved = new Map();
        this.#nextSave = null;
        await this.#store.save(batch);
      });
    this.#lastSave = this.#nextSave;
    return this.#nextSave;
  }

  #nowMs(): number {
    return Math.floor(this.#startMs + this.#clock.monotonicMs());
  }
}
