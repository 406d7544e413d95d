/** What a key may be refused with before anything runs. Refusals are counted by key and hour, and never charged. */

export const REFUSAL_CODES = [
  'rate_limited',
  'concurrency_limited',
  'quota_exceeded',
  'overloaded',
  'shutting_down',
] as const;

export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** Counts refusals. Whoever decides on one says so, once, before it throws the error that the caller sees. */
export interface RefusalRecorder {
  refused(keyId: string, code: RefusalCode): void;
}
