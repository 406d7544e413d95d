/** A key of the API as it is stored. Its secret is not part of it: only a hash of that is ever stored. */

export const ROLES = ['admin', 'user'] as const;

export type Role = (typeof ROLES)[number];

export interface Key {
  id: string;
  name: string;
  team: string | null;
  /** An admin key may call everything; a user key what runs programs and shows its own. */
  role: Role;
  limits: KeyLimits;
  createdAt: Date;
  /** From this moment on the key is refused. */
  expiresAt: Date | null;
  /** Since this moment the key is refused for good. */
  revokedAt: Date | null;
  lastUsedAt: Date | null;
}

/** The contract's limits of a key, by their names there. An absent limit is unlimited. */
export interface KeyLimits {
  requests_per_minute?: number;
  burst?: number;
  concurrency?: number;
  cpu_seconds_per_day?: number;
  max_timeout_ms?: number;
  max_memory_mb?: number;
  max_queued_jobs?: number;
}

/** Derived from the times, so that a key expires without anybody writing it down. */
export const KEY_STATES = ['active', 'expired', 'revoked'] as const;

export type KeyState = (typeof KEY_STATES)[number];
