import { newKeyId } from '../shared/ids.ts';
import type { Key, KeyState } from '../store/key-record.ts';

export {
  KEY_STATES,
  type Key,
  type KeyLimits,
  type KeyState,
  ROLES,
  type Role,
} from '../store/key-record.ts';

/** Whether a key is let in at this moment; revoked stays revoked. */
export function keyState(key: Pick<Key, 'expiresAt' | 'revokedAt'>, nowMs: number): KeyState {
  if (key.revokedAt !== null) return 'revoked';
  return key.expiresAt !== null && key.expiresAt.getTime() <= nowMs ? 'expired' : 'active';
}

/** The key of CODECELL_ADMIN_KEY, which is in no table. */
export const ENVIRONMENT_KEY = { id: 'key_environment', name: 'CODECELL_ADMIN_KEY' };

/** A user key without team, limits and expiry, which is not stored yet. */
export function newKey(name: string, nowMs: number): Key {
  return {
    id: newKeyId(),
    name,
    team: null,
    role: 'user',
    limits: {},
    createdAt: new Date(nowMs),
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
  };
}
