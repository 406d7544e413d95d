/**
 * Counts failed authentications by address, so that guessing is slow and floods are cheap to answer.
 *
 * At most `max` count in any `windowMs`: the times of the last `max` are kept, and a further one is refused until
 * the oldest of them is out of the window. That makes the time to wait exact. A refused attempt is not counted,
 * else a caller who keeps trying would never come back. IPv6 addresses are counted by /64, which is what one
 * customer of a network has. Memory is bounded: beyond `addressesMax` the address seen longest ago is forgotten.
 */

import { isIPv6 } from 'node:net';
import type { Clock } from '../shared/clock.ts';

export interface FailedAttemptsOptions {
  clock: Clock;
  /** Failures per address that are answered as such. */
  max: number;
  /** Milliseconds. */
  windowMs: number;
  addressesMax: number;
}

export class FailedAttempts {
  readonly #options: FailedAttemptsOptions;
  /** Times of failures in milliseconds, oldest first, by address; the address seen longest ago comes first. */
  readonly #failures = new Map<string, number[]>();

  constructor(options: FailedAttemptsOptions) {
    this.#options = options;
  }

  /** Counts a failure. Returns 0 when it is within the limit, else the milliseconds until one is again. */
  record(address: string): number {
    const { clock, max, windowMs, addressesMax } = this.#options;
    const nowMs = clock.monotonicMs();
    const name = addressBlock(address);
    const times = (this.#failures.get(name) ?? []).filter((time) => time > nowMs - windowMs);
    this.#failures.delete(name);
    this.#failures.set(name, times);
    const oldest = times[0];
    if (oldest !== undefined && times.length >= max) return oldest + windowMs - nowMs;
    times.push(nowMs);
    if (this.#failures.size > addressesMax) {
      const forgotten = this.#failures.keys().next();
      if (!forgotten.done) this.#failures.delete(forgotten.value);
    }
    return 0;
  }
}

/** An IPv4 address as it is, also when written as `::ffff:192.0.2.1`; of an IPv6 address its /64. */
function addressBlock(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped?.[1] !== undefined) return mapped[1];
  if (!isIPv6(address)) return address;
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length;
  return [...front, ...Array<string>(Math.max(zeros, 0)).fill('0'), ...back].slice(0, 4).join(':');
}
