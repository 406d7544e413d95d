import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RateLimiter } from '../../src/limits/rate-limiter.ts';
import { REQUEST, wholeRequests } from '../../src/limits/token-bucket.ts';
import { openDatabase } from '../../src/store/database.ts';
import { RateBucketStore, type StoredBucket } from '../../src/store/rate-bucket-store.ts';
import { TestClock } from '../support/clock.ts';
import { withFolder } from '../support/folder.ts';

const RATE = { perMinute: 60, burst: 5 };

/** A database of one table, that counts its transactions and can fail. */
class TestStore {
  saved = new Map<string, StoredBucket>();
  saves = 0;
  failing = false;

  async all() {
    return new Map(this.saved);
  }

  async save(buckets: [string, StoredBucket][]) {
    await Promise.resolve();
    if (this.failing) throw new Error('the disk is full');
    this.saves++;
    for (const [keyId, bucket] of buckets) this.saved.set(keyId, bucket);
  }
}

function open(store: TestStore, clock: TestClock): Promise<RateLimiter> {
  return RateLimiter.open(store as unknown as RateBucketStore, clock);
}

async function take(limiter: RateLimiter, keyId = 'key_a', rate = RATE): Promise<boolean> {
  if (limiter.waitMs(keyId, rate) > 0) return false;
  limiter.take(keyId, rate);
  await limiter.saved(keyId);
  return true;
}

const left = (limiter: RateLimiter, rate = RATE) => wholeRequests(limiter.left('key_a', rate));

describe('the rate of a key', () => {
  it('is of its own: one that is used up leaves the others alone', async () => {
    const limiter = await open(new TestStore(), new TestClock());
    for (let count = 0; count < 5; count++) expect(await take(limiter)).toBe(true);
    expect(await take(limiter)).toBe(false);
    expect(await take(limiter, 'key_b')).toBe(true);
  });

  it('runs evenly when somebody sets the clock', async () => {
    const clock = new TestClock();
    const limiter = await open(new TestStore(), clock);
    for (let count = 0; count < 5; count++) await take(limiter);
    clock.setWallClock(clock.now() + 3_600_000);
    expect(left(limiter)).toBe(0);
    clock.setWallClock(clock.now() - 7_200_000);
    clock.advance(1000);
    expect(left(limiter)).toBe(1);
  });

  it('may change, and what is left stays', async () => {
    const limiter = await open(new TestStore(), new TestClock());
    for (let count = 0; count < 3; count++) await take(limiter);
    expect(left(limiter, { perMinute: 60, burst: 100 })).toBe(2);
    expect(left(limiter, { perMinute: 60, burst: 1 })).toBe(1);
  });
});

describe('after a shutdown', () => {
  it('goes on exactly where it was, with the time in between', () =>
    withFolder(async (folder) => {
      const clock = new TestClock();
      const db = await openDatabase(folder);
      const store = new RateBucketStore(db);
      const rate = { perMinute: 60, burst: 100 };
      const before = await RateLimiter.open(store, clock);
      for (let count = 0; count < 42; count++) await take(before, 'key_a', rate);
      clock.advance(333);
      await take(before, 'key_a', rate);
      await before.close();
      clock.advance(10_000);
      const after = await RateLimiter.open(store, clock);
      expect(after.left('key_a', rate).level).toBe(before.left('key_a', rate).level);
      await db.destroy();
    }));

  it('takes a moment of the future for the start', async () => {
    const clock = new TestClock();
    const store = new TestStore();
    const before = await open(store, clock);
    for (let count = 0; count < 5; count++) await take(before);
    await before.close();
    const after = await open(store, new TestClock(clock.now() - 86_400_000));
    expect(after.waitMs('key_a', RATE)).toBe(1000);
  });
});

describe('after a crash', () => {
  it('never has more than was left, and at most a tenth of the burst less', () =>
    fc.assert(
      fc.asyncProperty(
        fc.record({ perMinute: fc.integer({ min: 1, max: 6000 }), burst: fc.integer({ min: 1, max: 60 }) }),
        fc.array(fc.record({ ms: fc.nat({ max: 5000 }), takes: fc.nat({ max: 8 }), crash: fc.boolean() }), {
          maxLength: 30,
        }),
        async (rate, steps) => {
          const store = new TestStore();
          const clock = new TestClock();
          let limiter = await open(store, clock);
          for (const { ms, takes, crash } of steps) {
            clock.advance(ms);
            for (let count = 0; count < takes; count++) await take(limiter, 'key_a', rate);
            if (!crash) continue;
            const before = limiter.left('key_a', rate).level;
            limiter = await open(store, clock);
            const after = limiter.left('key_a', rate).level;
            expect(after).toBeLessThanOrEqual(before);
            expect(after).toBeGreaterThanOrEqual(before - Math.floor(rate.burst / 10) * REQUEST);
          }
        },
      ),
      { numRuns: 300 },
    ));
});

describe('writing', () => {
  it('happens once in a tenth of a large burst', async () => {
    const store = new TestStore();
    const limiter = await open(store, new TestClock());
    for (let count = 0; count < 1000; count++) await take(limiter, 'key_a', { perMinute: 60, burst: 1000 });
    expect(store.saves).toBeLessThanOrEqual(10);
  });

  it('takes along what comes up meanwhile', async () => {
    const store = new TestStore();
    const limiter = await open(store, new TestClock());
    await Promise.all(Array.from({ length: 100 }, (_, index) => take(limiter, `key_${index}`)));
    expect(store.saves).toBeLessThanOrEqual(2);
    expect(store.saved.size).toBe(100);
  });

  it('that fails is told to who waits for it, and tried again with the next request', async () => {
    const store = new TestStore();
    const limiter = await open(store, new TestClock());
    store.failing = true;
    await expect(take(limiter)).rejects.toThrow('the disk is full');
    store.failing = false;
    expect(await take(limiter)).toBe(true);
    expect(store.saved.get('key_a')?.level).toBe(3 * REQUEST);
  });
});
