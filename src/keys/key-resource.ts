import { type Key, type KeyLimits, type KeyState, keyState, type Role } from './key.ts';

/** The Key of the HTTP contract, as answers and the command line show it. Times are UTC. */
export interface KeyResource {
  id: string;
  name: string;
  team: string | null;
  role: Role;
  limits: KeyLimits;
  state: KeyState;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
}

/** A key as the contract shows it, at this moment. */
export function keyResource(key: Key, nowMs: number): KeyResource {
  return {
    id: key.id,
    name: key.name,
    team: key.team,
    role: key.role,
    limits: key.limits,
    state: keyState(key, nowMs),
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}
