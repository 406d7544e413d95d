import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KeysApi } from '../support/keys-api.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ settings: { CONCURRENCY: '2' } });
});
afterAll(() => service.stop());

function post(idempotencyKey: string, body: unknown, key: string, signal?: AbortSignal) {
  const headers = { 'Idempotency-Key': idempotencyKey };
  return service.post(body, { key, headers, ...(signal === undefined ? {} : { signal }) });
}

async function runsOf(key: string): Promise<Record<string, number>> {
  const answer = await service.send('/v1/usage', { headers: { 'X-API-Key': key } });
  return JSON.parse(answer.text).totals.runs;
}

describe('a replay', () => {
  it('costs a rate token and no usage', async () => {
    const key = await service.addKey({ limits: { requests_per_minute: 1, burst: 3 } });
    const left = async () => {
      const answer = await post('rate', { code: '' }, key);
      return /r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1];
    };
    expect([await left(), await left(), await left()]).toEqual(['2', '1', '0']);
    const refused = await post('rate', { code: '' }, key);
    expect([refused.status, problemOf(refused).code]).toEqual([429, 'rate_limited']);
    expect(await runsOf(key)).toMatchObject({ succeeded: 1 });
  });

  it('is not refused by a quota that is used up', async () => {
    const key = await service.addKey({ limits: { cpu_seconds_per_day: 0.001 } });
    const body = { code: 'sum(range(1_000_000))' };
    const first = await post('quota', body, key);
    expect(first.status).toBe(200);
    expect((await post('another', body, key)).status).toBe(429);
    const again = await post('quota', body, key);
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect((await post('quota', { code: '' }, key)).status).toBe(422);
  });

  it.each([
    ['execute', { timeout_ms: 5000 }, { max_timeout_ms: 1000 }],
    ['jobs', { memory_mb: 256 }, { max_memory_mb: 64 }],
  ])('of /v1/%s is not refused by a maximum that was lowered since', async (route, asked, limits) => {
    const keys = new KeysApi(service);
    const { id, secret } = await keys.create();
    const send = (name: string) =>
      service.send(`/v1/${route}`, {
        method: 'POST',
        headers: { 'X-API-Key': secret, 'Content-Type': 'application/json', 'Idempotency-Key': name },
        body: JSON.stringify({ code: '1', ...asked }),
      });
    const first = await send('lowered');
    await keys.change(id, { limits });
    const again = await send('lowered');
    expect([again.status, again.text]).toEqual([first.status, first.text]);
    expect((await send('new')).status).toBe(400);
  });

  it("is not refused by the key's concurrency, nor is the conflict", async () => {
    const key = await service.addKey({ limits: { concurrency: 1 } });
    const first = await post('concurrency', { code: '' }, key);
    const caller = new AbortController();
    const running = post('running', { code: 'import time; time.sleep(25)' }, key, caller.signal);
    await service.loaded(1, 0);
    expect((await post('new', { code: '' }, key)).status).toBe(429);
    expect((await post('concurrency', { code: '' }, key)).text).toBe(first.text);
    expect((await post('running', { code: 'import time; time.sleep(25)' }, key)).status).toBe(409);
    caller.abort();
    await expect(running).rejects.toThrow();
    await service.loaded(0, 0);
  });
});
