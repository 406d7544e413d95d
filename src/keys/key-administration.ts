/** Makes, changes and ends keys, on behalf of whoever may: an admin key over HTTP, or the owner of the data folder. */

import type { Clock } from '../shared/clock.ts';
import { type FieldError, invalidRequest, ServiceError } from '../shared/errors.ts';
import type { KeySelection, KeyStore } from '../store/key-store.ts';
import { type Key, keyState, newKey } from './key.ts';
import { type KeyFields, withFields } from './key-fields.ts';
import { generateSecret, hashSecret } from './secret.ts';

/** The longest time in which the secret before a rotation goes on to work: a week. */
export const OVERLAP_SECONDS_MAX = 604_800;

export interface KeyAdministrationOptions {
  keys: KeyStore;
  clock: Clock;
  /** False where the last admin key must stay, because nobody could make another one by the same way. */
  lastAdminMayGo: boolean;
  /** Called when a key has been revoked: what works for it has to end. */
  onRevoked?: (keyId: string) => void;
}

/** A key with a secret that exists nowhere else. */
export interface IssuedKey {
  key: Key;
  secret: string;
}

export class KeyAdministration {
  readonly #options: KeyAdministrationOptions;

  constructor(options: KeyAdministrationOptions) {
    this.#options = options;
  }

  /**
   * Makes a key; a user key without limits where the fields do not say otherwise.
   * @throws ServiceError `invalid_request`.
   */
  async create(fields: KeyFields & { name: string }): Promise<IssuedKey> {
    const nowMs = this.#options.clock.now();
    const key = checked(newKey(fields.name, nowMs), fields, nowMs);
    const secret = generateSecret();
    await this.#options.keys.insert(key, hashSecret(secret));
    return { key, secret };
  }

  /** @throws ServiceError `not_found`. */
  async find(id: string): Promise<Key> {
    return existing(await this.#options.keys.find(id));
  }

  /** Keys, newest first. */
  async list(selection: Omit<KeySelection, 'nowMs'>): Promise<Key[]> {
    return this.#options.keys.list({ ...selection, nowMs: this.#options.clock.now() });
  }

  /**
   * Changes what the fields name. An expired key lives again with a later expiry; a revoked one does not.
   * @throws ServiceError `not_found`, `invalid_request`, or `forbidden` for the role and the expiry of the last admin key.
   */
  async change(id: string, fields: KeyFields): Promise<Key> {
    const nowMs = this.#options.clock.now();
    return existing(
      await this.#options.keys.change(id, nowMs, (key, otherAdmins) => {
        refuseRevoked(key);
        const changed = checked(key, fields, nowMs);
        if (changed.role !== 'admin' || endsSooner(changed, key)) this.#keepAnAdmin(key, otherAdmins, nowMs);
        return changed;
      }),
    );
  }

  /**
   * Ends a key for good. Ending it again changes nothing.
   * @throws ServiceError `not_found`, or `forbidden` for the last admin key.
   */
  async revoke(id: string): Promise<Key> {
    const nowMs = this.#options.clock.now();
    const revoked = existing(
      await this.#options.keys.change(id, nowMs, (key, otherAdmins) => {
        this.#keepAnAdmin(key, otherAdmins, nowMs);
        return { ...key, revokedAt: key.revokedAt ?? new Date(nowMs) };
      }),
    );
    this.#options.onRevoked?.(id);
    return revoked;
  }

  /**
   * Gives a key a new secret. The one before works for `overlapSeconds` more, and any older one no longer.
   * @throws ServiceError `not_found`, or `invalid_request` for a key that is refused anyway.
   */
  async rotate(id: string, overlapSeconds: number): Promise<IssuedKey> {
    if (overlapSeconds > OVERLAP_SECONDS_MAX) {
      throw invalidRequest([{ path: '/overlap_seconds', message: `must be at most ${OVERLAP_SECONDS_MAX}` }]);
    }
    const nowMs = this.#options.clock.now();
    const secret = generateSecret();
    const issued = {
      hash: hashSecret(secret),
      createdAt: new Date(nowMs),
      oldUntil: new Date(nowMs + overlapSeconds * 1000),
    };
    const key = await this.#options.keys.rotate(id, issued, (found) => {
      refuseRevoked(found);
      if (keyState(found, nowMs) === 'expired') {
        throw invalidRequest([
          { path: '', message: 'The key has expired: give it a later expires_at first.' },
        ]);
      }
    });
    return { key: existing(key), secret };
  }

  #keepAnAdmin(key: Key, otherAdmins: number, nowMs: number): void {
    const isAdmin = key.role === 'admin' && keyState(key, nowMs) === 'active';
    if (this.#options.lastAdminMayGo || !isAdmin || otherAdmins > 0) return;
    throw new ServiceError(
      'forbidden',
      'No other admin key works for as long as this one: make another one first.',
    );
  }
}

function endsSooner(changed: Key, key: Key): boolean {
  return changed.expiresAt !== null && (key.expiresAt === null || changed.expiresAt < key.expiresAt);
}

function checked(key: Key, fields: KeyFields, nowMs: number): Key {
  const errors: FieldError[] = [];
  const changed = withFields(key, fields, nowMs, errors);
  if (errors.length > 0) throw invalidRequest(errors);
  return changed;
}

function existing(key: Key | null): Key {
  if (key === null) throw new ServiceError('not_found', 'There is no key of this id.');
  return key;
}

function refuseRevoked(key: Key): void {
  if (key.revokedAt === null) return;
  throw invalidRequest([{ path: '', message: 'The key is revoked, which is for good: make another one.' }]);
}
