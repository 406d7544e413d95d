import { timingSafeEqual } from 'node:crypto';
import type { Clock } from '../shared/clock.ts';
import type { FoundKey } from '../store/key-store.ts';
import { ENVIRONMENT_KEY, type Key, keyState, newKey } from './key.ts';
import { hashSecret, isWellFormedSecret } from './secret.ts';

/** Where keys are looked up; the key store. */
export interface KeyLookup {
  findBySecretHash(hash: string): Promise<FoundKey | null>;
}

/** Finds the key that a presented secret belongs to. */
export class Authenticator {
  readonly #keys: KeyLookup;
  readonly #clock: Clock;
  readonly #environmentAdmin: { key: Key; hash: string } | null;

  /** @param environmentAdminKey The secret of CODECELL_ADMIN_KEY, an admin key as long as it is set. */
  constructor(options: { keys: KeyLookup; clock: Clock; environmentAdminKey: string | undefined }) {
    this.#keys = options.keys;
    this.#clock = options.clock;
    const secret = options.environmentAdminKey;
    this.#environmentAdmin =
      secret === undefined ? null : { key: environmentAdmin(this.#clock.now()), hash: hashSecret(secret) };
  }

  /**
   * The active key of a secret; null for one that is unknown, revoked or expired, which callers must not tell apart.
   * The look-up goes by hash, so its time says nothing of a secret; hashes are compared in constant time all the same.
   */
  async authenticate(secret: string): Promise<Key | null> {
    const hash = hashSecret(secret);
    const admin = this.#environmentAdmin;
    if (admin !== null && sameHash(hash, admin.hash)) return admin.key;
    if (!isWellFormedSecret(secret)) return null;
    const found = await this.#keys.findBySecretHash(hash);
    if (found === null || !sameHash(hash, found.secretHash)) return null;
    const nowMs = this.#clock.now();
    const secretExpired = found.secretExpiresAt !== null && found.secretExpiresAt.getTime() <= nowMs;
    return !secretExpired && keyState(found.key, nowMs) === 'active' ? found.key : null;
  }
}

function environmentAdmin(nowMs: number): Key {
  return { ...newKey(ENVIRONMENT_KEY.name, nowMs), id: ENVIRONMENT_KEY.id, role: 'admin' };
}

function sameHash(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}
