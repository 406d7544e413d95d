import type { Kysely, Selectable } from 'kysely';
import type { Key, KeyLimits, Role } from '../keys/key.ts';
import type { Database, KeysTable } from './schema.ts';

/** A key together with the secret of it that was presented. */
export interface FoundKey {
  key: Key;
  /** SHA-256 in hexadecimal, as stored. */
  secretHash: string;
  /** From this moment on this secret is refused, whatever its key says. */
  secretExpiresAt: Date | null;
}

/** Keys in the database. */
export class KeyStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** The key of a secret, in whatever state it is. */
  async findBySecretHash(hash: string): Promise<FoundKey | null> {
    const row = await this.#db
      .selectFrom('key_secrets')
      .innerJoin('keys', 'keys.id', 'key_secrets.key_id')
      .where('key_secrets.hash', '=', hash)
      .selectAll('keys')
      .select(['key_secrets.hash as secret_hash', 'key_secrets.expires_at as secret_expires_at'])
      .executeTakeFirst();
    if (row === undefined) return null;
    return { key: toKey(row), secretHash: row.secret_hash, secretExpiresAt: toDate(row.secret_expires_at) };
  }

  /** Stores a new key with its first secret, of which only the hash is kept. */
  async insert(key: Key, secretHash: string): Promise<void> {
    await this.#db.transaction().execute((transaction) => insertKey(transaction, key, secretHash));
  }

  /** As `insert`, unless any admin key exists, in whatever state. False when one does. */
  async insertFirstAdmin(key: Key, secretHash: string): Promise<boolean> {
    return this.#db.transaction().execute(async (transaction) => {
      const admin = await transaction
        .selectFrom('keys')
        .where('role', '=', 'admin')
        .select('id')
        .executeTakeFirst();
      if (admin !== undefined) return false;
      await insertKey(transaction, key, secretHash);
      return true;
    });
  }
}

async function insertKey(db: Kysely<Database>, key: Key, secretHash: string): Promise<void> {
  const createdAt = key.createdAt.getTime();
  await db
    .insertInto('keys')
    .values({
      id: key.id,
      name: key.name,
      team: key.team,
      role: key.role,
      limits: JSON.stringify(key.limits),
      created_at: createdAt,
      expires_at: key.expiresAt?.getTime() ?? null,
      revoked_at: key.revokedAt?.getTime() ?? null,
      last_used_at: key.lastUsedAt?.getTime() ?? null,
    })
    .execute();
  await db
    .insertInto('key_secrets')
    .values({ hash: secretHash, key_id: key.id, created_at: createdAt, expires_at: null })
    .execute();
}

function toKey(row: Selectable<KeysTable>): Key {
  return {
    id: row.id,
    name: row.name,
    team: row.team,
    role: row.role as Role,
    limits: JSON.parse(row.limits) as KeyLimits,
    createdAt: new Date(row.created_at),
    expiresAt: toDate(row.expires_at),
    revokedAt: toDate(row.revoked_at),
    lastUsedAt: toDate(row.last_used_at),
  };
}

function toDate(timeMs: number | null): Date | null {
  return timeMs === null ? null : new Date(timeMs);
}
