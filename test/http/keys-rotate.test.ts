/** `POST /v1/keys/{id}/rotate`. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestClock } from '../support/clock.ts';
import { expectInvalid, KeysApi } from '../support/keys-api.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let keys: KeysApi;
const clock = new TestClock();
beforeAll(async () => {
  service = await startTestService({ clock });
  keys = new KeysApi(service);
});
afterAll(() => service.stop());

describe('200', () => {
  it('answers the same Key with a new secret; the old one works until the overlap ends', async () => {
    const { secret: old, ...key } = await keys.create({ limits: { concurrency: 2 } });
    const { secret, ...rotated } = await keys.rotate(key.id, 60);
    expect(rotated).toEqual(key);
    expect(secret).not.toBe(old);
    expect([await keys.statusOf(old), await keys.statusOf(secret)]).toEqual([200, 200]);
    clock.advance(59_999);
    expect(await keys.statusOf(old)).toBe(200);
    clock.advance(1);
    expect([await keys.statusOf(old), await keys.statusOf(secret)]).toEqual([401, 200]);
  });

  it('ends the old secret at once without an overlap', async () => {
    const { id, secret: old } = await keys.create();
    const { secret } = await keys.rotate(id, 0);
    expect([await keys.statusOf(old), await keys.statusOf(secret)]).toEqual([401, 200]);
  });

  it('leaves at most two secrets valid', async () => {
    const { id, secret: first } = await keys.create();
    const { secret: second } = await keys.rotate(id, 604_800);
    const { secret: third } = await keys.rotate(id, 604_800);
    const statuses = await Promise.all([first, second, third].map((secret) => keys.statusOf(secret)));
    expect(statuses).toEqual([401, 200, 200]);
    await keys.rotate(id, 0);
    expect(await Promise.all([second, third].map((secret) => keys.statusOf(secret)))).toEqual([401, 401]);
  });

  it('leaves one current secret when many rotate at once', async () => {
    const { id } = await keys.create();
    const rotated = await Promise.all(Array.from({ length: 10 }, () => keys.rotate(id, 60)));
    const statuses = await Promise.all(rotated.map(({ secret }) => keys.statusOf(secret)));
    expect(statuses.filter((status) => status === 200)).toHaveLength(2);
    clock.advance(60_000);
    const later = await Promise.all(rotated.map(({ secret }) => keys.statusOf(secret)));
    expect(later.filter((status) => status === 200)).toHaveLength(1);
  });

  it('counts both secrets for the same limits', async () => {
    const { id, secret: old } = await keys.create({ limits: { requests_per_minute: 60, burst: 2 } });
    const { secret } = await keys.rotate(id, 60);
    const statuses = [old, secret, old].map(
      async (key) => (await service.post({ code: '' }, { key })).status,
    );
    expect((await Promise.all(statuses)).sort()).toEqual([200, 200, 429]);
  });

  it('is what an admin key may do to itself', async () => {
    const { id, secret: old } = await keys.create({ role: 'admin' });
    const answer = await keys.call('POST', `/${id}/rotate`, { overlap_seconds: 0 }, old);
    expect(answer.status).toBe(200);
    expect(await keys.statusOf(old)).toBe(401);
  });
});

describe('400', () => {
  it.each<[unknown, string]>([
    [{}, '/overlap_seconds'],
    [{ overlap_seconds: -1 }, '/overlap_seconds'],
    [{ overlap_seconds: 604_801 }, '/overlap_seconds'],
    [{ overlap_seconds: 1.5 }, '/overlap_seconds'],
    [{ overlap_seconds: '60' }, '/overlap_seconds'],
    [{ overlap_seconds: null }, '/overlap_seconds'],
    [{ overlap_seconds: 0, secret: 'mine' }, '/secret'],
    ['', ''],
  ])('for %j, and the secret stays', async (body, path) => {
    const { id, secret } = await keys.create();
    const answer = await keys.call('POST', `/${id}/rotate`, body);
    expect(expectInvalid(answer).map((error) => error.path)).toEqual([path]);
    expect(await keys.statusOf(secret)).toBe(200);
  });

  it('for a key that is revoked or has expired', async () => {
    const { id } = await keys.create();
    await keys.revoke(id);
    await service.addKey({ id: 'key_expired', expiresAt: new Date(clock.now() - 1) });
    for (const each of [id, 'key_expired']) {
      const [error] = expectInvalid(await keys.call('POST', `/${each}/rotate`, { overlap_seconds: 0 }));
      expect(error?.path).toBe('');
    }
  });
});
