/** What a key may be refused with before anything runs. Refusals are counted by key and hour, and never charged. */

export const REFUSAL_CODES = [
  'rate_limited',
  'concurrency_limited',
  'quota_exceeded',
  'overloaded',
  'shutting_down',
] as const;

export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** Whether an error is one of the refusals that usage counts. */
export function isRefusalCode(code: string): code is RefusalCode {
  return (REFUSAL_CODES as readonly string[]).includes(code);
}

/** Counts refusals: told of each once, before its caller is answered. */
export interface RefusalRecorder {
  refused(keyId: string, code: RefusalCode): void;
}
