/** `GET /v1/keys` and `GET /v1/keys/{id}`. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Key } from '../../src/keys/key.ts';
import { openDatabase } from '../../src/store/database.ts';
import { expectInvalid, type KeyAnswer, KeysApi } from '../support/keys-api.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let keys: KeysApi;
beforeAll(async () => {
  service = await startTestService();
  keys = new KeysApi(service);
});
afterAll(() => service.stop());

interface Page {
  data: KeyAnswer[];
  next_cursor: string | null;
}

async function list(query = ''): Promise<Page> {
  const answer = await keys.call('GET', query);
  expect(answer.status).toBe(200);
  return JSON.parse(answer.text) as Page;
}

/** Every page of a list. */
async function pages(query: string): Promise<Page[]> {
  const all: Page[] = [await list(`?${query}`)];
  for (let cursor = all[0]!.next_cursor; cursor !== null; cursor = all.at(-1)!.next_cursor) {
    all.push(await list(`?${query}&cursor=${cursor}`));
  }
  return all;
}

const ids = (page: Page) => page.data.map(({ id }) => id);

describe('the list', () => {
  it('is newest first, in pages of 20 unless another limit is asked for', async () => {
    const made: string[] = [];
    for (let count = 0; count < 45; count++) made.push((await keys.create({ team: 'pages' })).id);
    made.reverse();
    const byDefault = await pages('team=pages');
    expect(byDefault.map(({ data }) => data.length)).toEqual([20, 20, 5]);
    expect(byDefault.flatMap(ids)).toEqual(made);
    const byFifteen = await pages('team=pages&limit=15');
    expect(byFifteen.map(({ data }) => data.length)).toEqual([15, 15, 15]);
    expect(byFifteen.flatMap(ids)).toEqual(made);
  });

  it('goes on where it was, whatever is made meanwhile', async () => {
    for (let count = 0; count < 4; count++) await keys.create({ team: 'growing' });
    const first = await list('?team=growing&limit=2');
    await keys.create({ team: 'growing' });
    const second = await list(`?team=growing&limit=2&cursor=${first.next_cursor}`);
    expect(new Set([...ids(first), ...ids(second)]).size).toBe(4);
    expect(second.next_cursor).toBeNull();
  });

  it('holds exactly what a key shows of itself', async () => {
    const { secret: _, ...made } = await keys.create({ team: 'whole', limits: { concurrency: 2 } });
    expect((await list('?team=whole')).data).toEqual([made]);
    expect(await keys.get(made.id)).toEqual(made);
  });

  it('is of one team or one state alone when asked', async () => {
    const past = new Date(Date.now() - 1000);
    const active = await keys.create({ team: 'states', expires_at: '2099-01-01T00:00:00Z' });
    const revoked = await keys.create({ team: 'states' });
    await keys.revoke(revoked.id);
    await service.addKey({ id: 'key_expired', team: 'states', expiresAt: past });
    await service.addKey({ id: 'key_both', team: 'states', expiresAt: past, revokedAt: past });
    const inState = async (state: string) => ids(await list(`?team=states&state=${state}`)).sort();
    expect(await inState('active')).toEqual([active.id]);
    expect(await inState('expired')).toEqual(['key_expired']);
    expect(await inState('revoked')).toEqual([revoked.id, 'key_both'].sort());
    expect((await list('?team=states')).data.map(({ state }) => state).sort()).toEqual([
      'active',
      'expired',
      'revoked',
      'revoked',
    ]);
    expect(await list('?team=nobody')).toEqual({ data: [], next_cursor: null });
  });

  it('does not hold the key of CODECELL_ADMIN_KEY', async () => {
    expect((await pages('limit=100')).flatMap(ids)).not.toContain('key_environment');
    expect((await keys.call('GET', '/key_environment')).status).toBe(404);
  });
});

describe('10,000 keys', () => {
  it('are listed quickly, also the last page, a rare state and a small team', async () => {
    const db = await openDatabase(service.dataDir);
    await db.transaction().execute(async (transaction) => {
      for (let start = 0; start < 10_000; start += 500) {
        const rows = Array.from({ length: 500 }, (_, offset) => ({
          id: `key_many-${String(start + offset).padStart(5, '0')}`,
          name: 'one of many',
          team: `team ${(start + offset) % 100}`,
          role: 'user' satisfies Key['role'],
          limits: '{}',
          created_at: 1,
          expires_at: null,
          revoked_at: null,
          last_used_at: null,
        }));
        await transaction.insertInto('keys').values(rows).execute();
      }
    });
    await db.destroy();
    const durations: Record<string, number> = {};
    for (const query of ['limit=100', 'state=revoked&limit=100', 'team=team%207&limit=100']) {
      await list(`?${query}`);
      const startMs = performance.now();
      await list(`?${query}`);
      durations[query] = performance.now() - startMs;
    }
    const cursor = Buffer.from('key_many-00050').toString('base64url');
    const startMs = performance.now();
    const last = ids(await list(`?limit=100&cursor=${cursor}`));
    durations.last = performance.now() - startMs;
    expect(last.filter((id) => id.startsWith('key_many-'))).toHaveLength(50);
    // A page takes a few milliseconds; the bound is for a machine that does much else.
    for (const [query, durationMs] of Object.entries(durations)) {
      expect([query, durationMs < 200 ? 'quick' : durationMs]).toEqual([query, 'quick']);
    }
    const all = await pages('limit=100&state=active');
    expect(all.flatMap(ids).filter((id) => id.startsWith('key_many-'))).toHaveLength(10_000);
  });
});

describe('400', () => {
  it.each([
    ['?limit=0', '/limit'],
    ['?limit=101', '/limit'],
    ['?limit=ten', '/limit'],
    ['?limit=1.5', '/limit'],
    ['?limit=', '/limit'],
    ['?limit=-1', '/limit'],
    ['?limit=1&limit=2', '/limit'],
    ['?state=gone', '/state'],
    ['?state=active&state=revoked', '/state'],
    ['?team=a&team=b', '/team'],
    ['?cursor=', '/cursor'],
    ['?cursor=nonsense', '/cursor'],
    [`?cursor=${Buffer.from('run_1').toString('base64url')}`, '/cursor'],
    [`?cursor=${Buffer.from("key_' or 1=1").toString('base64url')}`, '/cursor'],
    [`?cursor=${'A'.repeat(300)}`, '/cursor'],
    ['?page=2', '/page'],
    ['/key_1?limit=1', '/limit'],
  ])('for %s', async (query, path) => {
    expect(expectInvalid(await keys.call('GET', query)).map((error) => error.path)).toEqual([path]);
  });

  it('says what is allowed', async () => {
    const messages = expectInvalid(await keys.call('GET', '?limit=500&state=gone')).map(
      ({ message }) => message,
    );
    expect(messages.sort()).toEqual(['must be at most 100', 'must be one of active, expired, revoked']);
  });
});

describe('404', () => {
  it.each(['/key_unknown', '/ck_secret', `/${'x'.repeat(90)}`, '/key_1%00'])(
    'for %s, by every method',
    async (path) => {
      for (const [method, body] of [['GET'], ['PATCH', {}], ['DELETE']] as const) {
        const answer = await keys.call(method, path, body);
        expect([method, answer.status, problemOf(answer).code]).toEqual([method, 404, 'not_found']);
      }
      const rotation = await keys.call('POST', `${path}/rotate`, { overlap_seconds: 0 });
      expect(rotation.status).toBe(404);
    },
  );
});
