/** Fills a data folder as years of many teams would. */

import { type Kysely, sql } from 'kysely';
import { generateSecret, hashSecret } from '../src/keys/secret.ts';
import { HOUR_MS } from '../src/shared/clock.ts';
import { newKeyId } from '../src/shared/ids.ts';
import { openDatabase } from '../src/store/database.ts';
import { KeyStore } from '../src/store/key-store.ts';
import type { Database } from '../src/store/schema.ts';
import { hourOf } from '../src/store/usage-store.ts';

/** Makes one key that is held to limits it never reaches, and answers its secret. */
export async function addLimitedKey(dataDir: string): Promise<string> {
  const db = await openDatabase(dataDir);
  const secret = generateSecret();
  const limits = {
    requests_per_minute: 1_000_000,
    burst: 1_000_000,
    concurrency: 100,
    cpu_seconds_per_day: 1_000_000,
  };
  const times = { createdAt: new Date(), expiresAt: null, revokedAt: null, lastUsedAt: null };
  const key = { id: newKeyId(), name: 'bench', team: 'bench', role: 'user' as const, limits, ...times };
  await new KeyStore(db).insert(key, hashSecret(secret));
  await db.destroy();
  return secret;
}

/** 10,000 keys; a million hours of usage, over 100 days; a million runs of the last day. */
export async function addYears(dataDir: string): Promise<void> {
  const db = await openDatabase(dataDir);
  const hour = sql.lit(hourOf(Date.now()));
  await insertSeries(
    db,
    10_000,
    sql`insert into keys (id, name, team, role, limits, created_at)
    select printf('key_%05d', n), 'key ' || n, 'team ' || n % 100, 'user', '{}', ${hour} from series`,
  );
  await insertSeries(
    db,
    10_000,
    sql`insert into key_secrets (hash, key_id, created_at)
    select printf('%064d', n), printf('key_%05d', n), ${hour} from series`,
  );
  await insertSeries(
    db,
    1_000_000,
    sql`insert into usage_hours
      (hour, key_id, outcome, count, queue_ms, wall_ms, cpu_ms, memory_mb_ms, bytes_in, bytes_out, images)
    select ${hour} - (n / 10000) * ${sql.lit(24 * HOUR_MS)}, printf('key_%05d', n % 10000), 'succeeded',
      n % 1000, n, n, n, n, n, n, n % 3 from series`,
  );
  await insertSeries(
    db,
    1_000_000,
    sql`insert into usage_runs
      (id, key_id, status, ended_at, queue_ms, wall_ms, cpu_ms, memory_mb_ms, bytes_in, bytes_out, images)
    select printf('run_%s-%s-7000-8000-%012d', substr(printf('%012x', ${hour}), 1, 8),
      substr(printf('%012x', ${hour}), 9), n), printf('key_%05d', n % 10000), 'succeeded', ${hour},
      0, 5, 4, 2560, 20, 2, 0 from series`,
  );
  await db.destroy();
}

async function insertSeries(
  db: Kysely<Database>,
  count: number,
  insert: ReturnType<typeof sql>,
): Promise<void> {
  // The series stands before the SELECT that reads it, which SQLite allows within an INSERT.
  const series = sql`with recursive series (n) as (select 0 union all select n + 1 from series where n < ${sql.lit(count - 1)})`;
  await sql`${series} ${insert}`.execute(db);
}
