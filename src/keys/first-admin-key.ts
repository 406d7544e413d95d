import type { Clock } from '../shared/clock.ts';
import { newKeyId } from '../shared/ids.ts';
import type { KeyStore } from '../store/key-store.ts';
import type { Key } from './key.ts';
import { generateSecret, hashSecret } from './secret.ts';

/**
 * Makes the admin key of a first start, unless the store has any admin key already.
 * @returns its secret, which exists nowhere else; null when there was nothing to make.
 */
export async function createFirstAdminKey(keys: KeyStore, clock: Clock): Promise<string | null> {
  const secret = generateSecret();
  const made = await keys.insertFirstAdmin(newAdminKey('admin', clock), hashSecret(secret));
  return made ? secret : null;
}

/** Makes a further admin key and returns its secret, which exists nowhere else. */
export async function createAdminKey(keys: KeyStore, clock: Clock, name: string): Promise<string> {
  const secret = generateSecret();
  await keys.insert(newAdminKey(name, clock), hashSecret(secret));
  return secret;
}

function newAdminKey(name: string, clock: Clock): Key {
  return {
    id: newKeyId(),
    name,
    team: null,
    role: 'admin',
    limits: {},
    createdAt: new Date(clock.now()),
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
  };
}
