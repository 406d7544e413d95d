import type { Key } from '../keys/key.ts';

/** Processor milliseconds that a key has left of a day of which it has used some; null where it has no such limit. */
export function cpuLeftMs({ limits }: Key, usedMs: number): number | null {
  if (limits.cpu_seconds_per_day === undefined) return null;
  return Math.max(0, limits.cpu_seconds_per_day * 1000 - usedMs);
}
