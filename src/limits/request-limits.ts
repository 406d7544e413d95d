/**
 * The limits of a key on requests that run programs: how often, how many at once, and how much processor time a day.
 *
 * Refusals are exact. Where rate and quota both refuse, the one that lasts longer answers: a lone caller who waits as
 * long as it was told is let in. A request that is refused by rate or quota takes nothing, unless the quota was used up
 * while it waited for a slot; whatever else becomes of a request, it has taken one of the rate.
 */

import type { Key } from '../keys/key.ts';
import { type Clock, DAY_MS } from '../shared/clock.ts';
import { counted } from '../shared/counted.ts';
import { ServiceError } from '../shared/errors.ts';
import type { CpuUsage } from '../usage/cpu-usage.ts';
import { cpuLeftMs } from './cpu-quota.ts';
import type { KeyWork, Work } from './key-work.ts';
import type { RateLimiter } from './rate-limiter.ts';
import { type Rate, untilNextMs, wholeRequests } from './token-bucket.ts';

const DAY_SECONDS = 86_400;

/** What is left of each limit at a moment; null where the key has no such limit. */
export interface Remaining {
  requests: number | null;
  concurrency: number | null;
  cpu_seconds: number | null;
}

export class RequestLimits {
  readonly #rates: RateLimiter;
  readonly #work: KeyWork;
  readonly #cpuUsage: CpuUsage;
  readonly #clock: Clock;

  constructor(options: { rates: RateLimiter; work: KeyWork; cpuUsage: CpuUsage; clock: Clock }) {
    this.#rates = options.rates;
    this.#work = options.work;
    this.#cpuUsage = options.cpuUsage;
    this.#clock = options.clock;
  }

  /**
   * Lets a request in, and begins its work. The caller must wait for `saved` before the request goes on.
   * @throws ServiceError `rate_limited`, `quota_exceeded` or `concurrency_limited`.
   */
  admit(key: Key): Work {
    this.#admitWithoutWork(key);
    const { concurrency } = key.limits;
    if (concurrency !== undefined && this.#work.count(key.id) >= concurrency) {
      this.#work.refused(key.id, this.#clock.monotonicMs());
      throw concurrencyLimited(concurrency);
    }
    return this.#work.begin(key.id, 'request');
  }

  /**
   * As `admit`, for a job, which waits where the key has as many executions as it may. Accepting it is no work that
   * counts: what counts begins when it starts.
   * @throws ServiceError `rate_limited` or `quota_exceeded`.
   */
  admitJob(key: Key): Work {
    this.#admitWithoutWork(key);
    return { signal: new AbortController().signal, end: () => undefined };
  }

  /**
   * As `admit`, for a request that runs nothing, because it was sent before: it costs one of the rate alone.
   * @throws ServiceError `rate_limited`.
   */
  admitAgain(key: Key): void {
    const rate = rateOf(key);
    if (rate === null) return;
    const waitMs = this.#rates.waitMs(key.id, rate);
    if (waitMs > 0) throw rateLimited(rate, waitMs);
    this.#rates.take(key.id, rate);
  }

  /**
   * Looks again, right before a program starts: others of the key may have used its time since it was let in.
   * @throws ServiceError `quota_exceeded`.
   */
  checkQuota(key: Key): void {
    if (this.#cpuLeftMs(key) === 0) throw quotaExceeded(key, this.#untilMidnightMs());
  }

  /** Resolves once a restart would not forget what the key has taken. */
  async saved(key: Key): Promise<void> {
    await this.#rates.saved(key.id);
  }

  /** What is left to a key now. */
  remaining(key: Key): Remaining {
    const rate = rateOf(key);
    const leftMs = this.#cpuLeftMs(key);
    const { concurrency } = key.limits;
    return {
      requests: rate === null ? null : wholeRequests(this.#rates.left(key.id, rate)),
      concurrency: concurrency === undefined ? null : Math.max(0, concurrency - this.#work.count(key.id)),
      cpu_seconds: leftMs === null ? null : leftMs / 1000,
    };
  }

  /** The header fields that tell a caller of its limits (draft-ietf-httpapi-ratelimit-headers-11). */
  headers(key: Key): Record<string, string> {
    const policies: string[] = [];
    const states: string[] = [];
    const rate = rateOf(key);
    if (rate !== null) {
      const left = this.#rates.left(key.id, rate);
      const windowSeconds = Math.ceil((rate.burst * 60) / rate.perMinute);
      policies.push(`"requests";q=${rate.burst};w=${windowSeconds}`);
      states.push(`"requests";r=${wholeRequests(left)};t=${seconds(untilNextMs(left, rate))}`);
    }
    const leftMs = this.#cpuLeftMs(key);
    if (leftMs !== null) {
      policies.push(`"cpu";q=${key.limits.cpu_seconds_per_day};w=${DAY_SECONDS}`);
      states.push(`"cpu";r=${Math.ceil(leftMs / 1000)};t=${seconds(this.#untilMidnightMs())}`);
    }
    if (policies.length === 0) return {};
    return { 'RateLimit-Policy': policies.join(', '), RateLimit: states.join(', ') };
  }

  #admitWithoutWork(key: Key): void {
    const rate = rateOf(key);
    const rateWaitMs = rate === null ? 0 : this.#rates.waitMs(key.id, rate);
    const quotaWaitMs = this.#cpuLeftMs(key) === 0 ? this.#untilMidnightMs() : 0;
    if (rate !== null && rateWaitMs > 0 && rateWaitMs >= quotaWaitMs) throw rateLimited(rate, rateWaitMs);
    if (quotaWaitMs > 0) throw quotaExceeded(key, quotaWaitMs);
    if (rate !== null) this.#rates.take(key.id, rate);
  }

  #cpuLeftMs(key: Key): number | null {
    return cpuLeftMs(key, this.#cpuUsage.usedTodayMs(key.id));
  }

  #untilMidnightMs(): number {
    return DAY_MS - (this.#clock.now() % DAY_MS);
  }
}

function rateOf({ limits }: Key): Rate | null {
  const { requests_per_minute: perMinute, burst } = limits;
  return perMinute === undefined ? null : { perMinute, burst: burst ?? perMinute };
}

function rateLimited({ perMinute, burst }: Rate, waitMs: number): ServiceError {
  const retryAfterSeconds = seconds(waitMs);
  return new ServiceError(
    'rate_limited',
    `This key may send ${counted(perMinute, 'request')} a minute, ${burst} at once: the next one in ${retryAfterSeconds} s.`,
    { retryAfterSeconds },
  );
}

function quotaExceeded({ limits }: Key, waitMs: number): ServiceError {
  return new ServiceError(
    'quota_exceeded',
    `This key has used its ${limits.cpu_seconds_per_day} s of processor time of today, a day of UTC: more from midnight on.`,
    { retryAfterSeconds: seconds(waitMs) },
  );
}

function concurrencyLimited(concurrency: number): ServiceError {
  return new ServiceError(
    'concurrency_limited',
    `This key may have ${counted(concurrency, 'execution')} at the same time: send it again when one has ended.`,
  );
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
