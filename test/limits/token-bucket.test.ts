import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Bucket,
  fullBucket,
  type Rate,
  REQUEST,
  refilled,
  untilNextMs,
  waitMs,
  wholeRequests,
} from '../../src/limits/token-bucket.ts';

/** The simplest bucket there is: fractions of whole numbers without bound, and one millisecond after the other. */
class ModelBucket {
  readonly #rate: Rate;
  /** In 60,000ths. */
  level: bigint;

  constructor(rate: Rate) {
    this.#rate = rate;
    this.level = BigInt(rate.burst) * 60_000n;
  }

  pass(ms: number): void {
    for (let passed = 0; passed < ms; passed++) {
      const more = this.level + BigInt(this.#rate.perMinute);
      const full = BigInt(this.#rate.burst) * 60_000n;
      this.level = more > full ? full : more;
    }
  }

  take(): boolean {
    if (this.level < 60_000n) return false;
    this.level -= 60_000n;
    return true;
  }
}

function take(bucket: Bucket, rate: Rate): Bucket | null {
  return waitMs(bucket, rate) > 0 ? null : { ...bucket, level: bucket.level - REQUEST };
}

const rates = fc.record({
  perMinute: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 1_000_000 })),
  burst: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 1_000_000 })),
});

const steps = fc.oneof(
  fc.record({ kind: fc.constant('pass' as const), ms: fc.nat({ max: 3000 }) }),
  fc.record({ kind: fc.constant('take' as const), times: fc.integer({ min: 1, max: 8 }) }),
);

describe('a token bucket', () => {
  it('does what the simplest model does, to the last fraction', () =>
    fc.assert(
      fc.property(rates, fc.array(steps, { maxLength: 15 }), (rate, actions) => {
        const model = new ModelBucket(rate);
        let nowMs = 1_700_000_000_000;
        let bucket = fullBucket(rate, nowMs);
        for (const action of actions) {
          if (action.kind === 'pass') {
            nowMs += action.ms;
            model.pass(action.ms);
            bucket = refilled(bucket, rate, nowMs);
          } else {
            for (let time = 0; time < action.times; time++) {
              const taken = take(bucket, rate);
              expect(taken !== null).toBe(model.take());
              bucket = taken ?? bucket;
            }
          }
          expect(BigInt(bucket.level)).toBe(model.level);
        }
      }),
      { numRuns: 300 },
    ));

  it('says to the millisecond when a request is let in', () =>
    fc.assert(
      fc.property(rates, fc.integer({ min: -600_000, max: 59_999 }), (rate, level) => {
        const bucket = { level, atMs: 5000 };
        const wait = waitMs(bucket, rate);
        expect(wait).toBeGreaterThan(0);
        expect(waitMs(refilled(bucket, rate, 5000 + wait), rate)).toBe(0);
        expect(waitMs(refilled(bucket, rate, 5000 + wait - 1), rate)).toBe(1);
      }),
    ));

  it('says to the millisecond when there is one more', () =>
    fc.assert(
      fc.property(rates, fc.nat(), (rate, seed) => {
        const bucket = { level: seed % (rate.burst * REQUEST), atMs: 5000 };
        const until = untilNextMs(bucket, rate);
        const whole = (ms: number) => wholeRequests(refilled(bucket, rate, 5000 + ms));
        expect(whole(until)).toBeGreaterThan(whole(0));
        if (until > 0) expect(whole(until - 1)).toBe(whole(0));
      }),
    ));

  it('is full after years, however large the rate', () => {
    const rate = { perMinute: 1_000_000, burst: 1_000_000 };
    const century = 100 * 365 * 86_400_000;
    expect(refilled({ level: -5, atMs: 0 }, rate, century)).toEqual(fullBucket(rate, century));
  });

  it('gets nothing back by a clock that goes backwards', () => {
    const rate = { perMinute: 60, burst: 2 };
    expect(refilled({ level: 7, atMs: 5000 }, rate, 1000)).toEqual({ level: 7, atMs: 5000 });
  });

  it('holds no more than a burst that has been made smaller', () => {
    const bucket = fullBucket({ perMinute: 60, burst: 10 }, 0);
    expect(wholeRequests(refilled(bucket, { perMinute: 60, burst: 3 }, 0))).toBe(3);
  });
});
