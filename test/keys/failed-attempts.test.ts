import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FailedAttempts } from '../../src/keys/failed-attempts.ts';

class ManualClock {
  timeMs = 0;
  now = () => this.timeMs;
  monotonicMs = () => this.timeMs;
}

function attempts(clock: ManualClock, addressesMax = 100): FailedAttempts {
  return new FailedAttempts({ clock, max: 3, windowMs: 1000, addressesMax });
}

describe('FailedAttempts', () => {
  it('refuses beyond the limit and says exactly when one is allowed again', () => {
    const clock = new ManualClock();
    const failed = attempts(clock);
    for (const timeMs of [0, 100, 200]) {
      clock.timeMs = timeMs;
      expect(failed.record('a')).toBe(0);
    }
    clock.timeMs = 300;
    const waitMs = failed.record('a');
    expect(waitMs).toBe(700);
    clock.timeMs += waitMs - 1;
    expect(failed.record('a')).toBe(1);
    clock.timeMs += 1;
    expect(failed.record('a')).toBe(0);
    expect(failed.record('a')).toBe(100);
  });

  it('counts at most the limit in any window', async () => {
    await fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 600 }), { maxLength: 100 }), (pauses) => {
        const clock = new ManualClock();
        const failed = attempts(clock);
        const counted: number[] = [];
        for (const pause of pauses) {
          clock.timeMs += pause;
          if (failed.record('a') === 0) counted.push(clock.timeMs);
        }
        counted.forEach((time, index) => {
          expect(counted.slice(index).filter((later) => later < time + 1000).length).toBeLessThanOrEqual(3);
        });
      }),
    );
  });

  it.each([
    ['192.0.2.1', '::ffff:192.0.2.1', true],
    ['192.0.2.1', '192.0.2.2', false],
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', true],
    ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['2001:db8::1', '2001:db8:0:0:1::1', true],
    ['::1', '::2', true],
    ['fe80::1%eth0', 'fe80::2%eth0', true],
  ])('counts %s and %s together: %s', (one, other, together) => {
    const failed = attempts(new ManualClock());
    for (let count = 0; count < 3; count++) failed.record(one);
    expect(failed.record(other) > 0).toBe(together);
  });

  it('forgets the address seen longest ago when there are too many', () => {
    const failed = attempts(new ManualClock(), 2);
    for (let count = 0; count < 3; count++) failed.record('a');
    expect(failed.record('a')).toBeGreaterThan(0);
    failed.record('b');
    failed.record('c');
    expect(failed.record('a')).toBe(0);
  });
});
