import type { CompiledQuery, Kysely, Selectable } from 'kysely';
import type { Key, KeyLimits, KeyState, Role } from './key-record.ts';
import type { Database, KeysTable } from './schema.ts';

/** A key together with the secret of it that was presented. */
export interface FoundKey {
  key: Key;
  /** SHA-256 in hexadecimal, as stored. */
  secretHash: string;
  /** From this moment on this secret is refused, whatever its key says. */
  secretExpiresAt: Date | null;
}

type FoundRow = Selectable<KeysTable> & { secret_hash: string; secret_expires_at: number | null };

/** Which keys are listed. */
export interface KeySelection {
  team?: string | undefined;
  state?: KeyState | undefined;
  /** Only keys that were made before the one of this id. */
  beforeId?: string | undefined;
  limit: number;
  /** The moment that decides which keys have expired. */
  nowMs: number;
}

/** Keys in the database. */
export class KeyStore {
  readonly #db: Kysely<Database>;
  readonly #bySecretHash: CompiledQuery<FoundRow>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
    this.#bySecretHash = db
      .selectFrom('key_secrets')
      .innerJoin('keys', 'keys.id', 'key_secrets.key_id')
      // With "=" SQLite takes the value into its plan of a join, and plans anew at every look-up: three times as long.
      .where('key_secrets.hash', 'in', [''])
      .selectAll('keys')
      .select(['key_secrets.hash as secret_hash', 'key_secrets.expires_at as secret_expires_at'])
      .compile();
  }

  /** The key of a secret, in whatever state it is. Every request asks for it: 0.02 ms, with ten thousand keys too. */
  async findBySecretHash(hash: string): Promise<FoundKey | null> {
    const { rows } = await this.#db.executeQuery<FoundRow>({ ...this.#bySecretHash, parameters: [hash] });
    const row = rows[0];
    if (row === undefined) return null;
    return { key: toKey(row), secretHash: row.secret_hash, secretExpiresAt: toDate(row.secret_expires_at) };
  }

  async find(id: string): Promise<Key | null> {
    return findKey(this.#db, id);
  }

  async findAll(ids: string[]): Promise<Key[]> {
    if (ids.length === 0) return [];
    return (await this.#db.selectFrom('keys').where('id', 'in', ids).selectAll().execute()).map(toKey);
  }

  /** Newest first: ids are sorted by the time they were made. */
  async list({ team, state, beforeId, limit, nowMs }: KeySelection): Promise<Key[]> {
    let query = this.#db.selectFrom('keys').selectAll().orderBy('id', 'desc').limit(limit);
    if (team !== undefined) query = query.where('team', '=', team);
    if (beforeId !== undefined) query = query.where('id', '<', beforeId);
    if (state === 'revoked') query = query.where('revoked_at', 'is not', null);
    if (state === 'expired') query = query.where('revoked_at', 'is', null).where('expires_at', '<=', nowMs);
    if (state === 'active') {
      query = query
        .where('revoked_at', 'is', null)
        .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', nowMs)]));
    }
    return (await query.execute()).map(toKey);
  }

  /** Which of these keys have been revoked. */
  async revokedAmong(ids: string[]): Promise<string[]> {
    const rows = await this.#db
      .selectFrom('keys')
      .where('id', 'in', ids)
      .where('revoked_at', 'is not', null)
      .select('id')
      .execute();
    return rows.map(({ id }) => id);
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

  /**
   * Changes a key in one transaction, so that two changes at once lose nothing. `change` gets the key and the number
   * of other admin keys that work for as long as it does; what it throws leaves everything as it was. Null when there
   * is no such key.
   */
  async change(
    id: string,
    nowMs: number,
    change: (key: Key, otherAdmins: number) => Key,
  ): Promise<Key | null> {
    return this.#db.transaction().execute(async (transaction) => {
      const key = await findKey(transaction, id);
      if (key === null) return null;
      const changed = change(key, await adminsThatOutlive(transaction, key, nowMs));
      const { id: _, created_at: __, last_used_at: ___, ...columns } = toRow(changed);
      await transaction.updateTable('keys').set(columns).where('id', '=', id).execute();
      return changed;
    });
  }

  /**
   * Gives a key a new secret. Its newest one works until `oldUntil`, and any older one no longer, so that at most two
   * work. `check` gets the key; what it throws leaves everything as it was. Null when there is no such key.
   */
  async rotate(
    id: string,
    secret: { hash: string; createdAt: Date; oldUntil: Date },
    check: (key: Key) => void,
  ): Promise<Key | null> {
    return this.#db.transaction().execute(async (transaction) => {
      const key = await findKey(transaction, id);
      if (key === null) return null;
      check(key);
      const createdAtMs = secret.createdAt.getTime();
      const oldUntilMs = secret.oldUntil.getTime();
      const secrets = transaction.deleteFrom('key_secrets').where('key_id', '=', id);
      await secrets.where('expires_at', 'is not', null).execute();
      if (oldUntilMs <= createdAtMs) await secrets.execute();
      await transaction
        .updateTable('key_secrets')
        .set({ expires_at: oldUntilMs })
        .where('key_id', '=', id)
        .execute();
      await transaction
        .insertInto('key_secrets')
        .values({ hash: secret.hash, key_id: id, created_at: createdAtMs, expires_at: null })
        .execute();
      return key;
    });
  }

  /** Writes down when keys were last used; a time that is older than the one stored changes nothing. */
  async markUsed(lastUsedMs: [id: string, timeMs: number][]): Promise<void> {
    await this.#db.transaction().execute(async (transaction) => {
      for (const [id, timeMs] of lastUsedMs) {
        await transaction
          .updateTable('keys')
          .set({ last_used_at: timeMs })
          .where('id', '=', id)
          .where((where) => where.or([where('last_used_at', 'is', null), where('last_used_at', '<', timeMs)]))
          .execute();
      }
    });
  }
}

async function findKey(db: Kysely<Database>, id: string): Promise<Key | null> {
  const row = await db.selectFrom('keys').selectAll().where('id', '=', id).executeTakeFirst();
  return row === undefined ? null : toKey(row);
}

/** Counts the other admin keys that work, and will for as long as this key would. */
async function adminsThatOutlive(
  db: Kysely<Database>,
  { id, expiresAt }: Key,
  nowMs: number,
): Promise<number> {
  const untilMs = expiresAt === null ? Number.MAX_SAFE_INTEGER : expiresAt.getTime();
  const { count } = await db
    .selectFrom('keys')
    .where('role', '=', 'admin')
    .where('id', '!=', id)
    .where('revoked_at', 'is', null)
    .where((where) =>
      where.or([where('expires_at', 'is', null), where('expires_at', '>=', Math.max(nowMs + 1, untilMs))]),
    )
    .select((select) => select.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

async function insertKey(db: Kysely<Database>, key: Key, secretHash: string): Promise<void> {
  await db.insertInto('keys').values(toRow(key)).execute();
  await db
    .insertInto('key_secrets')
    .values({ hash: secretHash, key_id: key.id, created_at: key.createdAt.getTime(), expires_at: null })
    .execute();
}

function toRow(key: Key): Selectable<KeysTable> {
  return {
    id: key.id,
    name: key.name,
    team: key.team,
    role: key.role,
    limits: JSON.stringify(key.limits),
    created_at: key.createdAt.getTime(),
    expires_at: key.expiresAt?.getTime() ?? null,
    revoked_at: key.revokedAt?.getTime() ?? null,
    last_used_at: key.lastUsedAt?.getTime() ?? null,
  };
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
