import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/shared/clock.ts';
import { openDatabase } from '../../src/store/database.ts';
import { type Answer, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;

let service: TestService;
afterEach(() => service.stop());

class MovedClock implements Clock {
  movedMs = 0;
  now = () => systemClock.now() + this.movedMs;
  monotonicMs = () => systemClock.monotonicMs() + this.movedMs;
}

function post(idempotencyKey: string, body: unknown, key = service.adminKey): Promise<Answer> {
  return service.post(body, { key, headers: { 'Idempotency-Key': idempotencyKey } });
}

const isReplay = ({ status, headers }: Answer) =>
  status === 200 && headers.get('idempotent-replay') === 'true';

/** What is in the database: answers, and further parts of them. */
async function stored(): Promise<{ answers: string[]; parts: number }> {
  const db = await openDatabase(service.dataDir);
  const answers = await db
    .selectFrom('idempotency_answers')
    .select('idempotency_key')
    .orderBy('id')
    .execute();
  const parts = await db.selectFrom('idempotency_parts').select('position').execute();
  await db.destroy();
  return { answers: answers.map((row) => row.idempotency_key), parts: parts.length };
}

describe('a recorded answer', () => {
  it('is given for 24 hours, and then its key is free for any body', async () => {
    const clock = new MovedClock();
    service = await startTestService({ clock });
    await post('day', { code: '1' });
    clock.movedMs = 24 * HOUR_MS - 60_000;
    expect(isReplay(await post('day', { code: '1' }))).toBe(true);
    clock.movedMs = 24 * HOUR_MS + 1;
    const anew = await post('day', { code: '2' });
    expect([anew.status, isReplay(anew)]).toEqual([200, false]);
    expect(isReplay(await post('day', { code: '2' }))).toBe(true);
  });

  it('is deleted after that, with its parts', async () => {
    const clock = new MovedClock();
    service = await startTestService({ clock, answers: { purgeMs: 20 } });
    await post('small', { code: '1' });
    await post('large', { code: "print('x' * 1_000_000)" });
    expect(await stored()).toEqual({ answers: ['small', 'large'], parts: 3 });
    clock.movedMs = 24 * HOUR_MS + 1;
    await until(async () => (await stored()).answers.length === 0);
    await until(async () => (await stored()).parts === 0);
  });

  it('goes before its time when a key fills the store: the oldest of that key, and of no other', async () => {
    service = await startTestService({ answers: { bytesMax: 3_000_000 } });
    const [modest, greedy] = [await service.addKey(), await service.addKey()];
    const megabyte = { code: "print('x' * 1_000_000)" };
    await post('modest', { code: '1' }, modest);
    for (const name of ['one', 'two', 'three', 'four']) await post(name, megabyte, greedy);
    await until(async () => (await stored()).parts === 6);
    expect((await stored()).answers).toEqual(['modest', 'three', 'four']);
    expect(isReplay(await post('modest', { code: '1' }, modest))).toBe(true);
    expect(isReplay(await post('four', megabyte, greedy))).toBe(true);
    expect(isReplay(await post('one', megabyte, greedy))).toBe(false);
  });

  it('that cannot be recorded is given all the same, and runs again when it is sent again', async () => {
    service = await startTestService();
    const db = await openDatabase(service.dataDir);
    await db.schema.dropTable('idempotency_parts').execute();
    await db.destroy();
    const large = { code: "print('x' * 1_000_000)" };
    for (const answer of [await post('large', large), await post('large', large)]) {
      expect([answer.status, isReplay(answer)]).toEqual([200, false]);
    }
    const errors = service.log.filter(({ level }) => level === 'error').map(({ message }) => message);
    expect(errors).toEqual(Array(2).fill(expect.stringContaining('could not be recorded')));
  });

  it('that was half written by a service that was killed is deleted at the next start', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'codecell-test-'));
    onTestFinished(() => rm(dataDir, { recursive: true }));
    const db = await openDatabase(dataDir);
    const parts = Array.from({ length: 40 }, (_, index) => ({
      answer_id: 'req_half',
      position: index + 1,
      bytes: Buffer.alloc(10),
    }));
    await db.insertInto('idempotency_parts').values(parts).execute();
    await db.destroy();
    service = await startTestService({ dataDir });
    expect((await stored()).parts).toBe(0);
  });
});
