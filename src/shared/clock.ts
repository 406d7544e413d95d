export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** Time, injected so that tests can move it. */
export interface Clock {
  /** Wall-clock time in milliseconds since 1970, UTC. */
  now(): number;
  /** Time in milliseconds that never goes backwards, for measuring durations. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
};
