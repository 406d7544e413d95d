import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../src/shared/clock.ts';
import { openDatabase } from '../../src/store/database.ts';
import type { Database } from '../../src/store/schema.ts';
import { UsageStore } from '../../src/store/usage-store.ts';
import { charge, NOON } from '../support/charge.ts';
import { withFolder } from '../support/folder.ts';

function withStore(body: (store: UsageStore, db: Kysely<Database>) => Promise<void>): Promise<void> {
  return withFolder(async (folder) => {
    const db = await openDatabase(folder);
    try {
      await body(new UsageStore(db), db);
    } finally {
      await db.destroy();
    }
  });
}

const hours = (db: Kysely<Database>) =>
  db.selectFrom('usage_hours').selectAll().orderBy('hour').orderBy('key_id').orderBy('outcome').execute();

const runIds = async (db: Kysely<Database>) =>
  (await db.selectFrom('usage_runs').select('id').execute()).map(({ id }) => id);

describe('usage in the store', () => {
  it('adds up by key, hour and outcome what it keeps run by run', () =>
    withStore(async (store, db) => {
      const next = NOON + HOUR_MS;
      await store.add(
        [
          charge({ key_id: 'key_a', ended_at: NOON, cpu_ms: 3, memory_mb_ms: 512 }),
          charge({ key_id: 'key_a', ended_at: next - 1, cpu_ms: 4, images: 2 }),
          charge({ key_id: 'key_a', ended_at: next - 1, status: 'failed' }),
          charge({ key_id: 'key_b', ended_at: next }),
        ],
        [{ key_id: 'key_a', hour: NOON, outcome: 'rate_limited', count: 7 }],
      );
      await store.add([charge({ key_id: 'key_a', ended_at: NOON, cpu_ms: 5, bytes_out: 9 })], []);
      expect(await hours(db)).toMatchObject([
        { hour: NOON, key_id: 'key_a', outcome: 'failed', count: 1 },
        { hour: NOON, key_id: 'key_a', outcome: 'rate_limited', count: 7, wall_ms: 0 },
        {
          hour: NOON,
          key_id: 'key_a',
          outcome: 'succeeded',
          count: 3,
          cpu_ms: 12,
          images: 2,
          memory_mb_ms: 512,
          bytes_out: 9,
        },
        { hour: next, key_id: 'key_b', outcome: 'succeeded', count: 1 },
      ]);
      expect(await runIds(db)).toHaveLength(5);
      expect(await store.cpuMsSince(NOON)).toEqual(new Map([['key_a', 12]]));
      expect(await store.cpuMsSince(next)).toEqual(new Map());
    }));

  it('is all of a batch or nothing', () =>
    withStore(async (store, db) => {
      const twice = charge();
      await expect(store.add([charge(), twice, twice], [])).rejects.toThrow('UNIQUE');
      expect([await hours(db), await runIds(db)]).toEqual([[], []]);
    }));

  it('is not lost to the shorter commit: the next one waits for the disk again', () =>
    withStore(async (store, db) => {
      const levels: unknown[] = [];
      const level = async (from: Kysely<Database>) =>
        levels.push(Object.values((await sql<object>`pragma synchronous`.execute(from)).rows[0] ?? {})[0]);
      await store.add([charge()], []);
      await level(db);
      await expect(store.add([charge({ id: 'one' }), charge({ id: 'one' })], [])).rejects.toThrow();
      await level(db);
      expect(levels).toEqual([2, 2]);
    }));

  it('is kept 400 days by hour and a day by run', () =>
    withStore(async (store, db) => {
      const DAY_MS = 24 * HOUR_MS;
      const old = NOON - 400 * DAY_MS;
      await store.add(
        [
          charge({ ended_at: old - 1 }, old),
          charge({ ended_at: old }, old),
          charge({ ended_at: NOON }, NOON),
        ],
        [],
      );
      await store.add(
        Array.from({ length: 2500 }, () => charge({ ended_at: old }, old)),
        [],
      );
      const kept = charge({ ended_at: NOON - DAY_MS + 1 }, NOON - DAY_MS + 1);
      await store.add([kept], []);
      await store.purge(NOON);
      expect((await hours(db)).map(({ hour, count }) => [hour, count])).toEqual([
        [old, 2501],
        [NOON - DAY_MS, 1],
        [NOON, 1],
      ]);
      expect(await runIds(db)).toHaveLength(2);
      expect(await runIds(db)).toContain(kept.id);
    }));
});
