/** What the queue in SQLite does besides the life of a job, which test/store/job-queue.test.ts is about. */

import { DatabaseSync } from 'node:sqlite';
import type { Kysely } from 'kysely';
import { describe, expect, it } from 'vitest';
import { endWithoutRun } from '../../src/runs/jobs/job-end.ts';
import { newRunId } from '../../src/shared/ids.ts';
import { openDatabase } from '../../src/store/database.ts';
import { PIECE_BYTES } from '../../src/store/job-pieces.ts';
import { JobStore, type JobStoreOptions } from '../../src/store/job-store.ts';
import type { Database } from '../../src/store/schema.ts';
import { UsageStore } from '../../src/store/usage-store.ts';
import { NOON } from '../support/charge.ts';
import { withFolder } from '../support/folder.ts';

const LEASE_MS = 5000;

interface Scene {
  db: Kysely<Database>;
  file: string;
  clock: { nowMs: number };
  store: JobStore;
  enqueue(keyId?: string, stdin?: string, queuedMax?: number | null): Promise<{ id: string; answer: string }>;
}

function storeOf(
  db: Kysely<Database>,
  bounds: Partial<JobStoreOptions['bounds']>,
  clock = { nowMs: NOON },
): JobStore {
  return new JobStore({
    db,
    usage: new UsageStore(db),
    clock: { now: () => clock.nowMs, monotonicMs: () => clock.nowMs },
    worker: 'this',
    leaseMs: LEASE_MS,
    bounds: { jobs: 1000, bytes: 2 ** 30, retentionMs: 3_600_000, ...bounds },
    endWithoutRun: (job, status) => endWithoutRun(job, status, clock.nowMs),
  });
}

function withScene(bounds: Partial<JobStoreOptions['bounds']>, body: (scene: Scene) => Promise<void>) {
  return withFolder(async (folder) => {
    const db = await openDatabase(folder);
    const clock = { nowMs: NOON };
    const store = storeOf(db, bounds, clock);
    const enqueue: Scene['enqueue'] = async (keyId = 'key_a', stdin = '', queuedMax = null) => {
      const id = newRunId();
      const program = { code: Buffer.from('1'), stdin: Buffer.from(stdin), inputsJson: Buffer.from('{}') };
      const job = { id, keyId, timeoutMs: 1000, memoryMb: 64, createdAtMs: clock.nowMs, program };
      return { id, answer: await store.enqueue(job, queuedMax) };
    };
    await body({ db, file: `${folder}/codecell.db`, clock, store, enqueue });
    await db.destroy();
  });
}

async function ids(db: Kysely<Database>): Promise<string[]> {
  return (await db.selectFrom('jobs').select('id').orderBy('id').execute()).map(({ id }) => id);
}

/** The jobs that there are pieces of. */
async function piecesOf(db: Kysely<Database>): Promise<string[]> {
  const rows = await db.selectFrom('job_pieces').select('job_id').distinct().orderBy('job_id').execute();
  return rows.map(({ job_id }) => job_id);
}

/** What is written down, and what there is. */
async function totals(db: Kysely<Database>) {
  const written = await db.selectFrom('job_totals').select(['jobs', 'bytes']).executeTakeFirstOrThrow();
  const rows = await db.selectFrom('jobs').selectAll().execute();
  const bytes = rows.map((row) =>
    row.finished_at === null ? row.code_bytes + row.stdin_bytes + row.inputs_bytes : row.result_bytes,
  );
  const kept = await db.selectFrom('jobs_kept').selectAll().where('jobs', '>', 0).orderBy('key_id').execute();
  const ended = Map.groupBy(
    rows.filter((row) => row.finished_at !== null),
    (row) => row.key_id,
  );
  const sum = (numbers: number[]) => numbers.reduce((all, each) => all + each, 0);
  const reallyKept = [...ended].map(([key_id, its]) => ({
    ...{ key_id, jobs: its.length },
    bytes: sum(its.map((row) => row.result_bytes)),
  }));
  return {
    written: { ...written, kept },
    real: {
      ...{ jobs: rows.length, bytes: sum(bytes) },
      kept: reallyKept.sort((one, other) => (one.key_id < other.key_id ? -1 : 1)),
    },
  };
}

describe('room', () => {
  it('is made of what the key that keeps most has kept, the oldest first, and there is none where nothing has ended', () =>
    withScene({ jobs: 6 }, async ({ db, store, enqueue }) => {
      const ended = async (keyId: string) => {
        const { id } = await enqueue(keyId);
        await store.cancel(id, undefined);
        return id;
      };
      const large = [await ended('key_large'), await ended('key_large')];
      const small = await ended('key_small');
      for (let count = 0; count < 3; count++) large.push(await ended('key_large'));
      // Whoever comes to a full store takes from who has most, not from itself.
      const newcomers = [await ended('key_new'), await ended('key_new')];
      expect(await ids(db)).toEqual([small, ...large.slice(2), ...newcomers].sort());
      // Of as many, the key that needs the room loses.
      await ended('key_large');
      newcomers.push(await ended('key_new'));
      expect(await ids(db)).toHaveLength(6);
      expect(await ids(db)).toContain(small);
      for (let count = 0; count < 6; count++) expect((await enqueue('key_last')).answer).toBe('queued');
      expect((await enqueue('key_last')).answer).toBe('full');
      const { written, real } = await totals(db);
      expect(written).toEqual(real);
    }));

  it('is made of the largest results where bytes are short', () =>
    withScene({ bytes: 3 * 2 ** 20 }, async ({ db, store, enqueue }) => {
      const small = await enqueue('key_small');
      await store.cancel(small.id, undefined);
      const large = await enqueue('key_large');
      const job = await store.claim({ afterKeyId: 'key_large', except: ['key_small'] });
      const result = Buffer.alloc(2 * 2 ** 20, 'x');
      await store.complete(job!, {
        ...{ status: 'succeeded', startedAtMs: NOON, finishedAtMs: NOON, summary: '{}', charge: null },
        result: () => [result],
      });
      expect((await enqueue('key_small', 'x'.repeat(2 ** 20))).answer).toBe('queued');
      const left = await ids(db);
      expect(left).toContain(small.id);
      expect(left).not.toContain(large.id);
      const { written, real } = await totals(db);
      expect(written).toEqual(real);
    }));

  it('is made at a start whose bounds are lower than those before', () =>
    withScene({}, async ({ db, store, enqueue }) => {
      const all: string[] = [];
      for (let count = 0; count < 250; count++) all.push((await enqueue(`key_${count % 2}`)).id);
      for (const id of all) await store.cancel(id, undefined);
      await storeOf(db, { jobs: 20 }).clear();
      expect(await ids(db)).toHaveLength(20);
      expect(await db.selectFrom('jobs_kept').select('jobs').execute()).toEqual([{ jobs: 10 }, { jobs: 10 }]);
      expect(await piecesOf(db)).toEqual(await ids(db));
    }));

  it('is counted once, though old jobs are removed while it is made', () =>
    withScene({ jobs: 20 }, async ({ db, file, clock, store, enqueue }) => {
      for (let count = 0; count < 20; count++) await store.cancel((await enqueue()).id, undefined);
      clock.nowMs += 3_600_001;
      const other = new DatabaseSync(file);
      other.exec('BEGIN IMMEDIATE');
      const done = [enqueue(), enqueue(), enqueue(), store.purge()];
      // Each time the connection is had, all of them have had it.
      for (let time = 0; time < 10; time++) await ids(db);
      other.exec('COMMIT');
      other.close();
      await Promise.all(done);
      const { written, real } = await totals(db);
      expect(written).toEqual(real);
      expect(real.jobs).toBe(3);
    }));

  it('is counted anew at a start', () =>
    withScene({}, async ({ db, store, enqueue }) => {
      await enqueue('key_a', 'x'.repeat(100));
      await db.updateTable('job_totals').set({ jobs: -3, bytes: 7 }).execute();
      await db.insertInto('jobs_kept').values({ key_id: 'key_b', jobs: 5, bytes: 9 }).execute();
      await store.clear();
      const { written, real } = await totals(db);
      expect(written).toEqual(real);
    }));
});

describe('a program', () => {
  it('is written in pieces of a MiB, and comes back whole', () =>
    withScene({}, async ({ db, store, enqueue }) => {
      const stdin = 'é'.repeat(2 * PIECE_BYTES);
      await enqueue('key_a', stdin);
      const pieces = await db.selectFrom('job_pieces').select('content').execute();
      expect(pieces.map(({ content }) => content.byteLength <= PIECE_BYTES)).toEqual(Array(5).fill(true));
      const job = await store.claim({ afterKeyId: '', except: [] });
      const program = await store.program(job!);
      expect([program.code.toString(), program.inputsJson.toString()]).toEqual(['1', '{}']);
      expect(program.stdin.toString() === stdin).toBe(true);
    }));

  it('that was not accepted leaves nothing, also when what removes it fails at first', () =>
    withScene({}, async ({ db, file, store, enqueue }) => {
      const other = new DatabaseSync(file);
      other.exec("CREATE TRIGGER full BEFORE INSERT ON jobs BEGIN SELECT raise(abort, 'no space'); END");
      await expect(enqueue('key_a', 'x'.repeat(3 * PIECE_BYTES))).rejects.toThrow('no space');
      expect(await piecesOf(db)).toHaveLength(1);
      other.exec("CREATE TRIGGER stuck BEFORE DELETE ON job_pieces BEGIN SELECT raise(abort, 'stuck'); END");
      await expect(store.purge()).rejects.toThrow('stuck');
      other.exec('DROP TRIGGER stuck');
      other.close();
      await store.purge();
      expect(await piecesOf(db)).toEqual([]);
    }));

  it('of a key that may queue no more is not written', () =>
    withScene({}, async ({ db, enqueue }) => {
      expect((await enqueue('key_a', 'x'.repeat(3 * PIECE_BYTES), 0)).answer).toBe('key full');
      expect(await db.selectFrom('job_pieces').select('part').execute()).toEqual([]);
    }));
});

describe('a running job whose lease has run out', () => {
  it('is still stopped by the process that runs it, and ended by any other', () =>
    withScene({}, async ({ db, clock, store, enqueue }) => {
      const { id } = await enqueue();
      await store.claim({ afterKeyId: '', except: [] });
      clock.nowMs += LEASE_MS + 1;
      expect(await store.cancel(id, undefined)).toBe('requested');
      await db.updateTable('jobs').set({ worker: 'another' }).execute();
      expect(await store.cancel(id, undefined)).toBe('ended');
    }));

  it('is taken over at the next start, however long the lease is', () =>
    withScene({}, async ({ db, store, enqueue }) => {
      const { id } = await enqueue();
      await store.claim({ afterKeyId: '', except: [] });
      await db.updateTable('jobs').set({ worker: 'the one before' }).execute();
      expect(await store.takeOver()).toBe(0);
      await store.endLeases();
      expect(await store.takeOver()).toBe(1);
      const row = await db.selectFrom('jobs').where('id', '=', id).selectAll().executeTakeFirstOrThrow();
      expect([row.status, row.losses]).toEqual(['queued', 1]);
    }));
});
