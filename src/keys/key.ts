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
