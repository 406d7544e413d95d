/** `PATCH /v1/keys/{id}`. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectInvalid, KeysApi } from '../support/keys-api.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let keys: KeysApi;
beforeAll(async () => {
  service = await startTestService();
  keys = new KeysApi(service);
});
afterAll(() => service.stop());

describe('200', () => {
  it('changes what is named and leaves the rest', async () => {
    const { secret: _, ...key } = await keys.create({
      team: 'blue',
      limits: { requests_per_minute: 60, burst: 10, concurrency: 2 },
      expires_at: '2099-01-01T00:00:00Z',
    });
    expect(await keys.change(key.id, {})).toEqual(key);
    expect(await keys.change(key.id, { name: 'another' })).toEqual({ ...key, name: 'another' });
    expect(await keys.change(key.id, { team: null, expires_at: null })).toEqual({
      ...key,
      name: 'another',
      team: null,
      expires_at: null,
    });
    expect(await keys.get(key.id)).toMatchObject({ name: 'another', team: null, limits: key.limits });
  });

  it('merges limits, and null takes one away', async () => {
    const { id } = await keys.create({ limits: { requests_per_minute: 60, burst: 10, concurrency: 2 } });
    const changed = await keys.change(id, { limits: { concurrency: 3, max_memory_mb: 64 } });
    expect(changed.limits).toEqual({ requests_per_minute: 60, burst: 10, concurrency: 3, max_memory_mb: 64 });
    const fewer = await keys.change(id, { limits: { requests_per_minute: null, burst: null } });
    expect(fewer.limits).toEqual({ concurrency: 3, max_memory_mb: 64 });
    expect((await keys.change(id, { limits: { max_timeout_ms: null } })).limits).toEqual(fewer.limits);
  });

  it('holds from the next request on', async () => {
    const { id, secret } = await keys.create();
    const code = 'import time; time.sleep(0.05)';
    expect((await service.post({ code, timeout_ms: 2000 }, { key: secret })).status).toBe(200);
    await keys.change(id, { limits: { max_timeout_ms: 1000 } });
    const answer = await service.post({ code, timeout_ms: 2000 }, { key: secret });
    expect(expectInvalid(answer)[0]?.path).toBe('/timeout_ms');
    expect((await keys.call('GET', '', undefined, secret)).status).toBe(403);
    await keys.change(id, { role: 'admin' });
    expect((await keys.call('GET', '', undefined, secret)).status).toBe(200);
  });

  it('lets an expired key live again', async () => {
    const secret = await service.addKey({ id: 'key_expired', expiresAt: new Date(Date.now() - 1000) });
    expect(await keys.statusOf(secret)).toBe(401);
    const key = await keys.change('key_expired', { expires_at: '2099-01-01T00:00:00Z' });
    expect(key.state).toBe('active');
    expect(await keys.statusOf(secret)).toBe(200);
  });

  it('loses nothing when two change a key at once', async () => {
    const { id } = await keys.create();
    const names = [
      'concurrency',
      'max_timeout_ms',
      'max_memory_mb',
      'cpu_seconds_per_day',
      'max_queued_jobs',
    ];
    await Promise.all(names.map((name) => keys.change(id, { limits: { [name]: 100 } })));
    expect(Object.keys((await keys.get(id)).limits).sort()).toEqual(names.sort());
  });
});

describe('400', () => {
  it.each<[object, string]>([
    [{ name: null }, '/name'],
    [{ name: '' }, '/name'],
    [{ role: 'owner' }, '/role'],
    [{ limits: null }, '/limits'],
    [{ limits: { concurrency: 0 } }, '/limits/concurrency'],
    [{ limits: { requests_per_minute: null } }, '/limits/burst'],
    [{ limits: { colour: 1 } }, '/limits/colour'],
    [{ expires_at: '2001-01-01T00:00:00Z' }, '/expires_at'],
    [{ secret: 'x' }, '/secret'],
    [{ state: 'revoked' }, '/state'],
  ])('for %j, and changes nothing', async (changes, path) => {
    const { secret: _, ...key } = await keys.create({ limits: { requests_per_minute: 5, burst: 2 } });
    const answer = await keys.call('PATCH', `/${key.id}`, { team: 'changed', ...changes });
    expect(expectInvalid(answer).map((error) => error.path)).toEqual([path]);
    expect(await keys.get(key.id)).toEqual(key);
  });

  it('for a revoked key, which stays as it was', async () => {
    const { id } = await keys.create();
    await keys.revoke(id);
    const answer = await keys.call('PATCH', `/${id}`, { expires_at: '2099-01-01T00:00:00Z' });
    expect(expectInvalid(answer)).toEqual([
      { path: '', message: 'The key is revoked, which is for good: make another one.' },
    ]);
  });
});

describe('403', () => {
  it('for the role and the expiry of the last admin key that works', async () => {
    const me = await service.send('/v1/me', { headers: { 'X-API-Key': service.adminKey } });
    const { id } = JSON.parse(me.text) as { id: string };
    const only = (await keys.call('GET', '?state=active&limit=100')).text;
    for (const key of (JSON.parse(only) as { data: { id: string; role: string }[] }).data) {
      if (key.role === 'admin' && key.id !== id) await keys.revoke(key.id);
    }
    const answer = await keys.call('PATCH', `/${id}`, { role: 'user' });
    expect([answer.status, problemOf(answer).code]).toEqual([403, 'forbidden']);
    expect((await keys.get(id)).role).toBe('admin');
    expect((await keys.change(id, { name: 'renamed' })).name).toBe('renamed');
    // One that expires does not stand in for one that does not.
    await keys.create({ role: 'admin', expires_at: '2098-01-01T00:00:00Z' });
    for (const fields of [{ role: 'user' }, { expires_at: '2099-01-01T00:00:00Z' }]) {
      expect((await keys.call('PATCH', `/${id}`, fields)).status).toBe(403);
    }
    const other = await keys.create({ role: 'admin' });
    expect((await keys.change(id, { role: 'user' })).role).toBe('user');
    expect((await keys.call('GET', '')).status).toBe(403);
    expect((await keys.call('PATCH', `/${id}`, { role: 'admin' }, other.secret)).status).toBe(200);
  });
});
