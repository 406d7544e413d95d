import { type Kysely, sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import type { Database } from '../../src/store/schema.ts';
import { UsageStore } from '../../src/store/usage-store.ts';
import { UsageRecorder, type UsageRecorderOptions } from '../../src/usage/recorder.ts';
import { charge, NOON } from '../support/charge.ts';
import { withFolder } from '../support/folder.ts';
import { until } from '../support/until.ts';

const nothing = (): void => undefined;
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => silent };
const nobody = { ran: nothing, refused: nothing, stored: nothing };

interface Scene {
  db: Kysely<Database>;
  clock: { nowMs: number };
  open(options?: Partial<UsageRecorderOptions>): Promise<UsageRecorder>;
  counted(outcome: string): Promise<number>;
}

function withScene(body: (scene: Scene) => Promise<void>): Promise<void> {
  return withFolder(async (folder) => {
    const db = await openDatabase(folder);
    onTestFinished(() => db.destroy());
    const clock = { nowMs: NOON, now: () => clock.nowMs, monotonicMs: () => performance.now() };
    await body({
      db,
      clock,
      open: (options = {}) =>
        UsageRecorder.open({
          store: new UsageStore(db),
          clock,
          logger: silent,
          observer: nobody,
          probeMs: 5,
          ...options,
        }),
      counted: async (outcome) => {
        const rows = await db
          .selectFrom('usage_hours')
          .where('outcome', '=', outcome)
          .select('count')
          .execute();
        return rows.reduce((sum, { count }) => sum + count, 0);
      },
    });
  });
}

/** Leaves no room for another page, as a full disk does. */
async function fillDisk(db: Kysely<Database>): Promise<void> {
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(db);
  await sql`pragma max_page_count = ${sql.raw(String(rows[0]?.page_count))}`.execute(db);
}

async function emptyDisk(db: Kysely<Database>): Promise<void> {
  await sql`pragma max_page_count = 1000000`.execute(db);
}

describe('a run', () => {
  it('is stored when its promise resolves, however many end at once', () =>
    withScene(async ({ open, counted }) => {
      const batches: number[] = [];
      const recorder = await open({ observer: { ...nobody, stored: () => batches.push(1) } });
      await recorder.record(charge());
      expect(await counted('succeeded')).toBe(1);
      await Promise.all(Array.from({ length: 100 }, () => recorder.record(charge())));
      expect(await counted('succeeded')).toBe(101);
      expect(batches.length).toBeLessThanOrEqual(3);
      await recorder.close();
    }));

  it('is stored at whatever step after a transaction it ends', () =>
    withScene(async ({ open, counted }) => {
      const recorder = await open();
      for (let steps = 0; steps < 12; steps++) {
        await recorder.record(charge());
        for (let step = 0; step < steps; step++) await Promise.resolve();
        await recorder.record(charge());
      }
      expect(await counted('succeeded')).toBe(24);
      await recorder.close();
    }));
});

describe('processor time of today', () => {
  it('is not forgotten when the clock is set back over midnight', () =>
    withScene(async ({ open, clock }) => {
      clock.nowMs = NOON - (NOON % 86_400_000) + 60_000;
      const recorder = await open();
      await recorder.record(charge({ ended_at: clock.nowMs, cpu_ms: 5000 }));
      clock.nowMs -= 120_000;
      expect(recorder.usedTodayMs('key_1')).toBe(5000);
      clock.nowMs += 120_000;
      expect(recorder.usedTodayMs('key_1')).toBe(5000);
      await recorder.close();
    }));

  it('is known by key at once, again after a restart, and gone at midnight UTC', () =>
    withScene(async ({ open, clock }) => {
      const recorder = await open();
      await recorder.record(charge({ key_id: 'key_a', cpu_ms: 7 }));
      await recorder.record(charge({ key_id: 'key_a', cpu_ms: 5 }));
      await recorder.record(charge({ key_id: 'key_b', cpu_ms: 1, ended_at: NOON - 86_400_000 }));
      const today = (from: UsageRecorder) => ['key_a', 'key_b', 'key_c'].map((id) => from.usedTodayMs(id));
      expect(today(recorder)).toEqual([12, 0, 0]);
      await recorder.close();

      const again = await open();
      expect(today(again)).toEqual([12, 0, 0]);
      clock.nowMs = Date.parse('2026-01-31T23:59:59.999Z');
      expect(today(again)).toEqual([12, 0, 0]);
      clock.nowMs += 1;
      expect(today(again)).toEqual([0, 0, 0]);
      // A run of the last moment of yesterday, written down today.
      await again.record(charge({ key_id: 'key_a', cpu_ms: 3, ended_at: clock.nowMs - 1 }));
      await again.record(charge({ key_id: 'key_a', cpu_ms: 2, ended_at: clock.nowMs }));
      expect(today(again)).toEqual([2, 0, 0]);
      await again.close();
    }));
});

describe('a refusal', () => {
  it('is stored by the time that its caller may be answered, and few transactions are made of many', () =>
    withScene(async ({ open, counted }) => {
      let batches = 0;
      const recorder = await open({ observer: { ...nobody, stored: () => batches++ }, refusalPauseMs: 20 });
      for (let round = 1; round <= 3; round++) {
        const answers = Array.from({ length: 50 }, async () => {
          recorder.refused('key_a', 'rate_limited');
          await recorder.refusalsStored();
        });
        await Promise.all(answers);
        expect(await counted('rate_limited')).toBe(50 * round);
      }
      expect(batches).toBeLessThanOrEqual(4);
      await recorder.refusalsStored();
      await recorder.close();
    }));

  it('is written at the latest when the service ends', () =>
    withScene(async ({ open, counted }) => {
      const recorder = await open({ refusalPauseMs: 60_000 });
      recorder.refused('key_a', 'overloaded');
      await recorder.refusalsStored();
      recorder.refused('key_a', 'overloaded');
      await recorder.close();
      expect(await counted('overloaded')).toBe(2);
    }));
});

describe('a disk that is full', () => {
  it('charges nothing, loses nothing that was acknowledged, and recovers by itself', () =>
    withScene(async ({ db, open, counted }) => {
      const recorder = await open();
      await recorder.record(charge({ cpu_ms: 5 }));
      await fillDisk(db);
      const attempts = await Promise.allSettled(
        Array.from({ length: 200 }, () => recorder.record(charge({ cpu_ms: 1 }))),
      );
      expect(new Set(attempts.map(({ status }) => status))).toEqual(new Set(['rejected']));
      expect(recorder.writable).toBe(false);
      expect(recorder.usedTodayMs('key_1')).toBe(5);
      expect(await counted('succeeded')).toBe(1);
      // Refusals are not held up, and not forgotten.
      recorder.refused('key_1', 'quota_exceeded');
      await recorder.refusalsStored();

      await emptyDisk(db);
      await until(() => recorder.writable);
      await recorder.refusalsStored();
      expect(await counted('quota_exceeded')).toBe(1);
      await recorder.record(charge({ cpu_ms: 2 }));
      expect([await counted('succeeded'), recorder.usedTodayMs('key_1')]).toEqual([2, 7]);
      expect(await counted('probe')).toBe(0);
      await recorder.close();
    }));
});
