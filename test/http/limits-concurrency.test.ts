/** `concurrency`: 429 `concurrency_limited`. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KeysApi } from '../support/keys-api.ts';
import { RawConnection } from '../support/raw-http.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
let keys: KeysApi;
beforeAll(async () => {
  service = await startTestService({ settings: { CONCURRENCY: '2' } });
  keys = new KeysApi(service);
});
afterAll(() => service.stop());

const limitedTo = async (concurrency: number) => (await keys.create({ limits: { concurrency } })).secret;

async function concurrencyLeft(key: string): Promise<number | null> {
  const answer = await service.send('/v1/me', { headers: { 'X-API-Key': key } });
  return (JSON.parse(answer.text) as { remaining: { concurrency: number | null } }).remaining.concurrency;
}

describe('429 concurrency_limited', () => {
  it('refuses what is beyond, until a run has ended', async () => {
    const key = await limitedTo(1);
    const caller = new AbortController();
    const running = service.post({ code: 'import time; time.sleep(29)' }, { key, signal: caller.signal });
    running.catch(() => 'hung up');
    await service.loaded(1, 0);
    const refused = await service.post({ code: '' }, { key });
    expect([refused.status, problemOf(refused).code]).toEqual([429, 'concurrency_limited']);
    expect(refused.headers.get('retry-after')).toBe('1');
    caller.abort();
    await service.loaded(0, 0);
    expect((await service.post({ code: '' }, { key })).status).toBe(200);
  });

  it('counts requests that wait for a slot as well', async () => {
    const [greedy, key] = [await keys.create(), await limitedTo(2)];
    const caller = new AbortController();
    const occupied = [1, 2].map(() =>
      service
        .post({ code: 'import time; time.sleep(29)' }, { key: greedy.secret, signal: caller.signal })
        .catch(() => 'hung up'),
    );
    await service.loaded(2, 0);
    const waiting = [1, 2].map(() => service.post({ code: '' }, { key }));
    await service.loaded(2, 2);
    expect((await service.post({ code: '' }, { key })).status).toBe(429);
    caller.abort();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
    await Promise.all(occupied);
  });

  it('never refuses who sends one after the other', async () => {
    const key = await limitedTo(1);
    for (let count = 0; count < 50; count++) {
      expect((await service.post({ code: 'print(1)' }, { key })).status).toBe(200);
    }
  });

  it('gives the place back whatever became of the request', async () => {
    const key = await limitedTo(1);
    const json = { 'Content-Type': 'application/json' };
    expect((await service.post('{', { key })).status).toBe(400);
    expect((await service.post('x', { key, headers: { 'Content-Type': 'text/plain' } })).status).toBe(415);
    expect((await service.post('x'.repeat(17 * 2 ** 20), { key })).status).toBe(413);
    expect((await service.post({ code: 'raise ValueError' }, { key })).status).toBe(200);
    expect((await service.post({ code: 'while True: pass', timeout_ms: 50 }, { key })).status).toBe(200);
    expect((await service.post({ code: 'import os; os.abort()' }, { key, headers: json })).status).toBe(200);
    expect(await concurrencyLeft(key)).toBe(1);
  });

  it('gives the place back of a caller who is gone before the body was sent', async () => {
    const key = await limitedTo(1);
    const connection = new RawConnection(service.port);
    connection.write(
      `POST /v1/execute HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
    );
    await until(async () => (await concurrencyLeft(key)) === 0);
    connection.destroy();
    await until(async () => (await concurrencyLeft(key)) === 1);
    expect((await service.post({ code: '' }, { key })).status).toBe(200);
  });

  it('lets exactly as many in of a hundred at once', async () => {
    const key = await limitedTo(3);
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => service.post({ code: 'import time; time.sleep(2)' }, { key })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
  });
});
