/** `POST /v1/keys`. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMIT_BOUNDS } from '../../src/keys/limit-bounds.ts';
import { expectInvalid, expectKey, KeysApi } from '../support/keys-api.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let keys: KeysApi;
beforeAll(async () => {
  service = await startTestService();
  keys = new KeysApi(service);
});
afterAll(() => service.stop());

const FUTURE = '2099-12-31T23:59:59Z';

describe('201', () => {
  it('answers the Key with its secret, and where it is', async () => {
    const before = Date.now();
    const answer = await keys.call('POST', '', { name: 'grader' });
    const key = expectKey(answer, 201);
    expect(Object.keys(key)).toEqual([
      'id',
      'name',
      'team',
      'role',
      'limits',
      'state',
      'created_at',
      'expires_at',
      'last_used_at',
      'secret',
    ]);
    expect(key).toMatchObject({
      name: 'grader',
      team: null,
      role: 'user',
      limits: {},
      state: 'active',
      expires_at: null,
      last_used_at: null,
    });
    expect(key.id).toMatch(/^key_[0-9a-f-]{36}$/);
    expect(key.secret).toMatch(/^ck_[0-9A-Za-z]{36}$/);
    expect(new Date(key.created_at).toISOString()).toBe(key.created_at);
    expect(Date.parse(key.created_at)).toBeGreaterThanOrEqual(before);
    expect(answer.headers.get('location')).toBe(`/v1/keys/${key.id}`);
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  it('makes a key that works at once, with everything that was said of it', async () => {
    const limits = {
      requests_per_minute: 600,
      burst: 100,
      concurrency: 3,
      cpu_seconds_per_day: 3600,
      max_timeout_ms: 1000,
      max_memory_mb: 64,
      max_queued_jobs: 0,
    };
    const fields = { name: 'Schüler 🎓', team: 'école', role: 'admin', limits, expires_at: FUTURE };
    const { secret, ...key } = await keys.create(fields);
    expect(key).toMatchObject({ ...fields, expires_at: '2099-12-31T23:59:59.000Z', state: 'active' });
    const run = await service.execute({ code: 'print(1)' }, { key: secret });
    expect(run).toMatchObject({ stdout: '1\n', limits: { timeout_ms: 1000, memory_mb: 64 } });
    expect((await keys.call('GET', '', undefined, secret)).status).toBe(200);
  });

  it('takes null for what is absent, and any offset of a time', async () => {
    const key = await keys.create({ team: null, expires_at: '2099-06-30t12:00:00.123456+02:00', limits: {} });
    expect(key).toMatchObject({ team: null, expires_at: '2099-06-30T10:00:00.123Z' });
    expect((await keys.create({ expires_at: null })).expires_at).toBeNull();
  });

  it('shows the secret this once, and stores a hash', async () => {
    const { id, secret } = await keys.create();
    expect((await keys.call('GET', `/${id}`)).text).not.toContain('secret');
    expect((await keys.call('GET')).text).not.toContain(secret);
    for (const name of ['codecell.db', 'codecell.db-wal']) {
      expect(await readFile(join(service.dataDir, name), 'latin1')).not.toContain(secret);
    }
    expect(JSON.stringify(service.log)).not.toContain(secret);
  });

  it('takes names and teams of 200 characters, counted as characters', async () => {
    const name = '🎓'.repeat(200);
    expect((await keys.create({ name, team: name })).name).toBe(name);
  });
});

describe('400', () => {
  it.each<[unknown, string]>([
    [{}, '/name'],
    [{ name: '' }, '/name'],
    [{ name: '   ' }, '/name'],
    [{ name: 'x'.repeat(201) }, '/name'],
    [{ name: 'a\nb' }, '/name'],
    [{ name: 'a\u0000b' }, '/name'],
    [{ name: '\u001b[31mred' }, '/name'],
    [{ name: 7 }, '/name'],
    [{ name: null }, '/name'],
    [{ name: 'x', team: '' }, '/team'],
    [{ name: 'x', team: 'x'.repeat(201) }, '/team'],
    [{ name: 'x', team: ['x'] }, '/team'],
    [{ name: 'x', role: 'root' }, '/role'],
    [{ name: 'x', role: null }, '/role'],
    [{ name: 'x', limits: null }, '/limits'],
    [{ name: 'x', limits: [] }, '/limits'],
    [{ name: 'x', limits: { burst: 5 } }, '/limits/burst'],
    [{ name: 'x', limits: { concurrency: null } }, '/limits/concurrency'],
    [{ name: 'x', limits: { concurrency: '3' } }, '/limits/concurrency'],
    [{ name: 'x', limits: { concurrency: 1.5 } }, '/limits/concurrency'],
    [{ name: 'x', limits: { concurency: 1 } }, '/limits/concurency'],
    [{ name: 'x', expires_at: '2020-01-01T00:00:00Z' }, '/expires_at'],
    [{ name: 'x', expires_at: '2099-01-01' }, '/expires_at'],
    [{ name: 'x', expires_at: '2099-02-30T00:00:00Z' }, '/expires_at'],
    [{ name: 'x', expires_at: '2099-01-01T00:00:00' }, '/expires_at'],
    [{ name: 'x', expires_at: '2099-01-01T24:00:00Z' }, '/expires_at'],
    [{ name: 'x', expires_at: 'tomorrow' }, '/expires_at'],
    [{ name: 'x', expires_at: '9999-12-31T23:59:59-01:00' }, '/expires_at'],
    [{ name: 'x', expires_at: 4_000_000_000 }, '/expires_at'],
    [{ name: 'x', secret: 'ck_mine' }, '/secret'],
    [{ name: 'x', id: 'key_1' }, '/id'],
    [{ name: 'x', state: 'active' }, '/state'],
    ['{"name": "x", "__proto__": {"role": "admin"}}', '/__proto__'],
    ['{"name": "\\ud800"}', '/name'],
    ['{"name": "x", "team": "\\udfff"}', '/team'],
    ['[]', ''],
    ['{"name": "x"', ''],
  ])('for %j names the place', async (body, path) => {
    expect(expectInvalid(await keys.call('POST', '', body)).map((error) => error.path)).toEqual([path]);
  });

  it.each(Object.entries(LIMIT_BOUNDS))('for a %s out of its bounds', async (limit, { min, max }) => {
    const withRate = limit === 'burst' ? { requests_per_minute: 1 } : {};
    for (const value of [min, max]) {
      const { limits } = await keys.create({ limits: { ...withRate, [limit]: value } });
      expect(limits[limit]).toBe(value);
    }
    for (const value of [min - 1, max + 1]) {
      const body = { name: 'x', limits: { ...withRate, [limit]: value } };
      const [error] = expectInvalid(await keys.call('POST', '', body));
      expect(error?.path).toBe(`/limits/${limit}`);
      expect(error?.message).toMatch(value < min ? `at least ${min}` : `at most ${max}`);
    }
  });

  it('names all that is wrong, and the remedy', async () => {
    const body = { name: 'a\nb', limits: { burst: 2 }, expires_at: '2020-01-01T00:00:00Z' };
    const errors = expectInvalid(await keys.call('POST', '', body));
    expect(errors).toEqual([
      { path: '/name', message: 'must not have line breaks or other control characters' },
      { path: '/limits/burst', message: 'needs requests_per_minute: set that too, or leave burst away' },
      { path: '/expires_at', message: 'must be in the future; to end a key now, revoke it' },
    ]);
    const misspelt = await keys.call('POST', '', { name: 'x', teem: 'y' });
    expect(problemOf(misspelt).detail).toContain('did you mean team?');
    const nested = await keys.call('POST', '', { name: 'x', limits: { concurency: 1 } });
    expect(problemOf(nested).detail).toContain(
      '/limits/concurency: is not a field of limits: did you mean concurrency?',
    );
  });

  it('of a field that is sent twice, takes the last', async () => {
    const answer = await keys.call('POST', '', '{"name": "first", "name": "last"}');
    expect(expectKey(answer, 201).name).toBe('last');
  });
});

describe('403', () => {
  it('for a key that is no admin, before anything is said of the body', async () => {
    const { secret } = await keys.create();
    const calls: [string, string, unknown?][] = [
      ['POST', '', '{'],
      ['POST', '', { name: 'mine', role: 'admin' }],
      ['GET', ''],
      ['GET', '/key_1'],
      ['PATCH', '/key_1', { role: 'admin' }],
      ['DELETE', '/key_1'],
      ['POST', '/key_1/rotate', { overlap_seconds: 0 }],
    ];
    for (const [method, path, body] of calls) {
      const answer = await keys.call(method, path, body, secret);
      expect([method, path, answer.status, problemOf(answer).code]).toEqual([method, path, 403, 'forbidden']);
    }
  });
});

describe('other refusals', () => {
  it('are those of every route: 401, 405, 413, 415', async () => {
    expect((await service.send('/v1/keys', { method: 'POST' })).status).toBe(401);
    const put = await keys.call('PUT', '', {});
    expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
    const large = await keys.call('POST', '', JSON.stringify({ name: 'x'.repeat(17 * 2 ** 20) }));
    expect(large.status).toBe(413);
    const text = await service.send('/v1/keys', {
      method: 'POST',
      headers: { 'X-API-Key': service.adminKey, 'Content-Type': 'text/plain' },
      body: '{"name": "x"}',
    });
    expect(text.status).toBe(415);
  });
});
