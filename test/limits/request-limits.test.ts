import { describe, expect, it } from 'vitest';
import type { Key, KeyLimits } from '../../src/keys/key.ts';
import { KeyWork } from '../../src/limits/key-work.ts';
import { RateLimiter } from '../../src/limits/rate-limiter.ts';
import { RequestLimits } from '../../src/limits/request-limits.ts';
import { ServiceError } from '../../src/shared/errors.ts';
import type { RateBucketStore } from '../../src/store/rate-bucket-store.ts';
import { TestClock } from '../support/clock.ts';

const NOON = Date.UTC(2030, 0, 1, 12);

function keyWith(limits: KeyLimits): Key {
  const absent = { team: null, expiresAt: null, revokedAt: null, lastUsedAt: null };
  return { id: 'key_a', name: 'a', role: 'user', limits, createdAt: new Date(0), ...absent };
}

async function limitsAt(nowMs = NOON) {
  const clock = new TestClock(nowMs);
  const used = { ms: 0 };
  const store = { all: async () => new Map(), save: async () => undefined };
  const rates = await RateLimiter.open(store as unknown as RateBucketStore, clock);
  const work = new KeyWork();
  const cpuUsage = { usedTodayMs: () => used.ms };
  return { clock, used, work, limits: new RequestLimits({ rates, work, cpuUsage, clock }) };
}

/** What a request is refused with. */
function refusal(
  limits: RequestLimits,
  key: Key,
): { code: string; retryAfterSeconds: number | undefined } | null {
  try {
    limits.admit(key).end();
    return null;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { code: error.code, retryAfterSeconds: error.retryAfterSeconds };
  }
}

describe('a request', () => {
  it('of a key without limits is let in, and has no headers', async () => {
    const { limits } = await limitsAt();
    expect(refusal(limits, keyWith({}))).toBeNull();
    expect(limits.headers(keyWith({}))).toEqual({});
    expect(limits.remaining(keyWith({}))).toEqual({ requests: null, concurrency: null, cpu_seconds: null });
  });

  it.each([1, 7, 60, 61, 1000])(
    'at %i a minute is let in after exactly the time that it was told, and no second sooner',
    async (requests_per_minute) => {
      const { limits, clock } = await limitsAt();
      const key = keyWith({ requests_per_minute, burst: 1 });
      expect(refusal(limits, key)).toBeNull();
      const refused = refusal(limits, key);
      const seconds = Math.ceil(60 / requests_per_minute);
      expect(refused).toEqual({ code: 'rate_limited', retryAfterSeconds: seconds });
      clock.advance((seconds - 1) * 1000);
      if (seconds > 1) expect(refusal(limits, key)).toMatchObject({ retryAfterSeconds: 1 });
      clock.advance(1000);
      expect(refusal(limits, key)).toBeNull();
    },
  );

  it('takes nothing when it is refused', async () => {
    const { limits, clock } = await limitsAt();
    const key = keyWith({ requests_per_minute: 60, burst: 1 });
    expect(refusal(limits, key)).toBeNull();
    for (let count = 0; count < 100; count++) expect(refusal(limits, key)).not.toBeNull();
    clock.advance(1000);
    expect(refusal(limits, key)).toBeNull();
  });

  it('over the quota is let in at midnight UTC, and not a second before', async () => {
    const { limits, clock, used } = await limitsAt(NOON + 250);
    const key = keyWith({ cpu_seconds_per_day: 10 });
    used.ms = 9_999;
    expect(refusal(limits, key)).toBeNull();
    used.ms = 10_000;
    expect(refusal(limits, key)).toEqual({ code: 'quota_exceeded', retryAfterSeconds: 43_200 });
    clock.advance(43_199_000);
    expect(refusal(limits, key)).toEqual({ code: 'quota_exceeded', retryAfterSeconds: 1 });
  });

  it('that rate and quota refuse is told the longer time', async () => {
    const { limits, clock, used } = await limitsAt();
    const key = keyWith({ requests_per_minute: 1, burst: 1, cpu_seconds_per_day: 10 });
    expect(refusal(limits, key)).toBeNull();
    used.ms = 10_000;
    expect(refusal(limits, key)).toEqual({ code: 'quota_exceeded', retryAfterSeconds: 43_200 });
    clock.advance(43_200_000 - 10_000);
    used.ms = 0;
    expect(refusal(limits, key)).toBeNull();
    used.ms = 10_000;
    expect(refusal(limits, key)).toEqual({ code: 'rate_limited', retryAfterSeconds: 60 });
  });

  it('beyond the concurrency is refused until one has ended, whatever ends it twice', async () => {
    const { limits, work } = await limitsAt();
    const key = keyWith({ concurrency: 2 });
    const [one] = [limits.admit(key), limits.admit(key)];
    expect(refusal(limits, key)).toEqual({ code: 'concurrency_limited', retryAfterSeconds: undefined });
    expect(limits.remaining(key).concurrency).toBe(0);
    one.end();
    one.end();
    expect(limits.remaining(key).concurrency).toBe(1);
    expect(refusal(limits, key)).toBeNull();
    expect(work.count(key.id)).toBe(1);
  });

  it('that is cancelled with its key counts until it has ended', async () => {
    const { limits, work } = await limitsAt();
    const key = keyWith({ concurrency: 1 });
    const under = limits.admit(key);
    work.cancel(key.id);
    expect(under.signal.reason).toMatchObject({ code: 'unauthorized' });
    expect(refusal(limits, key)).toMatchObject({ code: 'concurrency_limited' });
    under.end();
    expect(work.keyIds()).toEqual([]);
  });
});

describe('the header fields', () => {
  it('say what the policy is and what is left, in structured fields', async () => {
    const { limits, clock, used } = await limitsAt(NOON + 250);
    const key = keyWith({ requests_per_minute: 90, burst: 10, cpu_seconds_per_day: 3600 });
    used.ms = 1_500;
    for (let count = 0; count < 4; count++) limits.admit(key);
    expect(limits.headers(key)).toEqual({
      'RateLimit-Policy': '"requests";q=10;w=7, "cpu";q=3600;w=86400',
      RateLimit: '"requests";r=6;t=1, "cpu";r=3599;t=43200',
    });
    clock.advance(60_000);
    expect(limits.headers(key).RateLimit).toBe('"requests";r=10;t=0, "cpu";r=3599;t=43140');
  });

  it('never promise less than nothing', async () => {
    const { limits, used } = await limitsAt();
    const key = keyWith({ cpu_seconds_per_day: 1 });
    used.ms = 5_000;
    expect(limits.headers(key).RateLimit).toBe('"cpu";r=0;t=43200');
    expect(limits.remaining(key).cpu_seconds).toBe(0);
  });
});

describe('requests_per_minute alone', () => {
  it('is the burst as well', async () => {
    const { limits } = await limitsAt();
    expect(limits.headers(keyWith({ requests_per_minute: 30 }))['RateLimit-Policy']).toBe(
      '"requests";q=30;w=60',
    );
  });
});
