/**
 * A token bucket: it holds `burst` requests at most and gets `perMinute` of them back in a minute, evenly.
 *
 * It is exact: levels are whole numbers of 60,000ths of a request, so that a millisecond gives back exactly
 * `perMinute` of them, and nothing is ever rounded. A bucket of the largest burst is 6 × 10^10, far below 2^53.
 */

/** What one request takes. */
export const REQUEST = 60_000;

export interface Rate {
  perMinute: number;
  burst: number;
}

/** At `atMs`, whole milliseconds, this much was left. A level below 0 is paid back before a request is let in. */
export interface Bucket {
  level: number;
  atMs: number;
}

export function fullBucket({ burst }: Rate, nowMs: number): Bucket {
  return { level: burst * REQUEST, atMs: nowMs };
}

/** The bucket at a later moment. A moment before `atMs` changes nothing. */
export function refilled({ level, atMs }: Bucket, { perMinute, burst }: Rate, nowMs: number): Bucket {
  const full = burst * REQUEST;
  if (level >= full || nowMs <= atMs) return { level: Math.min(level, full), atMs: Math.max(atMs, nowMs) };
  // Compared before it is multiplied: years times a large rate would be beyond whole numbers.
  const untilFullMs = Math.ceil((full - level) / perMinute);
  const elapsedMs = nowMs - atMs;
  return { level: elapsedMs >= untilFullMs ? full : level + elapsedMs * perMinute, atMs: nowMs };
}

/** Milliseconds from `atMs` until a request is let in; 0 when one is at once. */
export function waitMs({ level }: Bucket, { perMinute }: Rate): number {
  return Math.max(0, Math.ceil((REQUEST - level) / perMinute));
}

/** Milliseconds from `atMs` until there is one whole request more than now; 0 when the bucket is full. */
export function untilNextMs({ level }: Bucket, { perMinute, burst }: Rate): number {
  const next = Math.min((wholeRequests({ level }) + 1) * REQUEST, burst * REQUEST);
  return Math.max(0, Math.ceil((next - level) / perMinute));
}

/** Requests that are let in at once. */
export function wholeRequests({ level }: Pick<Bucket, 'level'>): number {
  return Math.max(0, Math.floor(level / REQUEST));
}
