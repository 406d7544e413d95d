import type { Clock } from '../shared/clock.ts';
import type { KeyStore } from '../store/key-store.ts';
import { type Key, newKey } from './key.ts';
import { generateSecret, hashSecret } from './secret.ts';

/**
 * Makes the admin key of a first start, unless the store has any admin key already.
 * @returns its secret, which exists nowhere else; null when there was nothing to make.
 */
export async function createFirstAdminKey(keys: KeyStore, clock: Clock): Promise<string | null> {
  const secret = generateSecret();
  const key: Key = { ...newKey('admin', clock.now()), role: 'admin' };
  return (await keys.insertFirstAdmin(key, hashSecret(secret))) ? secret : null;
}
