/** `GET /v1/me`. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestClock } from '../support/clock.ts';
import { ENDLESS, JobsApi } from '../support/jobs-api.ts';
import { KeysApi } from '../support/keys-api.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const ADMIN_KEY = 'an-admin-key-of-more-than-32-characters';
const clock = new TestClock();
let service: TestService;
let keys: KeysApi;
beforeAll(async () => {
  service = await startTestService({ clock, settings: { ADMIN_KEY } });
  keys = new KeysApi(service);
});
afterAll(() => service.stop());

async function me(key: string): Promise<Record<string, unknown>> {
  const answer = await service.send('/v1/me', { headers: { 'X-API-Key': key } });
  expect(answer.status).toBe(200);
  return JSON.parse(answer.text) as Record<string, unknown>;
}

/** Begins an execution of a key, and answers what ends it. */
async function startLongRun(key: string): Promise<() => void> {
  const caller = new AbortController();
  service.post({ code: ENDLESS }, { key, signal: caller.signal }).catch(() => 'hung up');
  await service.loaded(1, 0);
  return () => caller.abort();
}

describe('200', () => {
  it('answers the Key that asks, and null for what is unlimited', async () => {
    const { secret, ...key } = await keys.create({ team: 'blue' });
    expect(await me(secret)).toEqual({
      ...key,
      last_used_at: new Date(clock.now()).toISOString(),
      remaining: { requests: null, concurrency: null, cpu_seconds: null, queued_jobs: 1000 },
    });
  });

  it('answers what is left of each limit, and takes nothing', async () => {
    const limits = { requests_per_minute: 60, burst: 5, concurrency: 2, cpu_seconds_per_day: 100 };
    const { secret } = await keys.create({ limits });
    const whole = { requests: 5, concurrency: 2, cpu_seconds: 100 };
    expect(await me(secret)).toMatchObject({ limits, remaining: whole });
    expect(await me(secret)).toMatchObject({ remaining: whole });
    const { usage } = await service.execute({ code: '' }, { key: secret });
    expect(await me(secret)).toMatchObject({
      remaining: { requests: 4, concurrency: 2, cpu_seconds: 100 - usage.cpu_ms! / 1000 },
    });
    const hangUp = await startLongRun(secret);
    expect(await me(secret)).toMatchObject({ remaining: { requests: 3, concurrency: 1 } });
    hangUp();
    await service.loaded(0, 0);
    clock.advance(1000);
    expect(await me(secret)).toMatchObject({ remaining: { requests: 4, concurrency: 2 } });
  });

  it('answers how many jobs may be queued beside those that are', async () => {
    const { secret } = await keys.create({ limits: { concurrency: 1, max_queued_jobs: 2 } });
    const left = async () => ((await me(secret)).remaining as { queued_jobs: number }).queued_jobs;
    expect(await left()).toBe(2);
    const hangUp = await startLongRun(secret);
    await new JobsApi(service.url, secret).submit('1');
    expect(await left()).toBe(1);
    hangUp();
    await until(async () => (await left()) === 2);
    expect((await me(ADMIN_KEY)).remaining).toMatchObject({ queued_jobs: null });
  });

  it('is answered although the rate is used up', async () => {
    const { secret } = await keys.create({ limits: { requests_per_minute: 1, burst: 1 } });
    await service.post({ code: '' }, { key: secret });
    expect(await me(secret)).toMatchObject({ remaining: { requests: 0 } });
  });

  it('answers the key of CODECELL_ADMIN_KEY, which has no row', async () => {
    expect(await me(ADMIN_KEY)).toMatchObject({
      id: 'key_environment',
      name: 'CODECELL_ADMIN_KEY',
      role: 'admin',
      limits: {},
      state: 'active',
      expires_at: null,
    });
  });
});

describe('last_used_at', () => {
  it('is the moment of the last request that was let in', async () => {
    const { id, secret } = await keys.create();
    expect((await keys.get(id)).last_used_at).toBeNull();
    await me(secret);
    const used = new Date(clock.now()).toISOString();
    clock.advance(5000);
    expect((await keys.get(id)).last_used_at).toBe(used);
    await service.execute({ code: '' }, { key: secret });
    expect((await keys.get(id)).last_used_at).toBe(new Date(clock.now()).toISOString());
  });
});

describe('refusals', () => {
  it('are 401 without a key, 400 for a parameter, 405 for a POST', async () => {
    const headers = { 'X-API-Key': ADMIN_KEY };
    expect((await service.send('/v1/me')).status).toBe(401);
    expect((await service.send('/v1/me?x=1', { headers })).status).toBe(400);
    expect((await service.send('/v1/me', { method: 'POST', headers })).status).toBe(405);
  });
});
