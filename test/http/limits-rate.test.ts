/** `requests_per_minute` and `burst`: 429 `rate_limited`, and the RateLimit header fields. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestClock } from '../support/clock.ts';
import { withFolder } from '../support/folder.ts';
import { KeysApi } from '../support/keys-api.ts';
import { CodecellProcess } from '../support/process.ts';
import { RawConnection } from '../support/raw-http.ts';
import { type Answer, problemOf, startTestService, type TestService } from '../support/service.ts';

const clock = new TestClock();
let service: TestService;
let keys: KeysApi;
beforeAll(async () => {
  service = await startTestService({ clock });
  keys = new KeysApi(service);
});
afterAll(() => service.stop());

const limited = async (requests_per_minute: number, burst: number) =>
  (await keys.create({ limits: { requests_per_minute, burst } })).secret;

const fields = ({ headers }: Answer) => [headers.get('ratelimit-policy'), headers.get('ratelimit')];

describe('the header fields', () => {
  it('are on every answer to the POST of a key with the limit', async () => {
    const key = await limited(60, 10);
    const policy = '"requests";q=10;w=10';
    const ok = await service.post({ code: '' }, { key });
    expect([ok.status, ...fields(ok)]).toEqual([200, policy, '"requests";r=9;t=1']);
    const invalid = await service.post({ code: 1 }, { key });
    expect([invalid.status, ...fields(invalid)]).toEqual([400, policy, '"requests";r=8;t=1']);
    const unsupported = await service.post('x', { key, headers: { 'Content-Type': 'text/plain' } });
    expect([unsupported.status, ...fields(unsupported)]).toEqual([415, policy, '"requests";r=7;t=1']);
    const large = await service.post('x'.repeat(17 * 2 ** 20), { key });
    expect([large.status, ...fields(large)]).toEqual([413, policy, '"requests";r=6;t=1']);
  });

  it('are on no other answer', async () => {
    const key = await limited(60, 10);
    const headers = { 'X-API-Key': key };
    for (const answer of [
      await service.post({ code: '' }),
      await service.send('/v1/runtime', { headers }),
      await service.send('/v1/me', { headers }),
      await service.send('/v1/execute', { headers }),
      await service.post({ code: '' }, { key: 'wrong' }),
    ]) {
      expect([answer.status, ...fields(answer)]).toEqual([answer.status, null, null]);
    }
  });
});

describe('429 rate_limited', () => {
  it('says when the next request is let in, and lets it in then and no second before', async () => {
    const key = await limited(20, 2);
    const statuses = [1, 2].map(async () => (await service.post({ code: '' }, { key })).status);
    expect(await Promise.all(statuses)).toEqual([200, 200]);
    const refused = await service.post({ code: '' }, { key });
    expect([refused.status, problemOf(refused).code]).toEqual([429, 'rate_limited']);
    expect(refused.headers.get('retry-after')).toBe('3');
    expect(fields(refused)).toEqual(['"requests";q=2;w=6', '"requests";r=0;t=3']);
    expect(problemOf(refused).detail).toBe(
      'This key may send 20 requests a minute, 2 at once: the next one in 3 s.',
    );
    clock.advance(2000);
    const early = await service.post({ code: '' }, { key });
    expect([early.status, early.headers.get('retry-after')]).toEqual([429, '1']);
    clock.advance(1000);
    expect((await service.post({ code: '' }, { key })).status).toBe(200);
  });

  it('comes before the body is read and before its type is looked at, and after the key', async () => {
    const key = await limited(1, 1);
    await service.post({ code: '' }, { key });
    expect((await service.post('{', { key })).status).toBe(429);
    expect((await service.post('x', { key, headers: { 'Content-Type': 'text/plain' } })).status).toBe(429);
    const connection = new RawConnection(service.port);
    connection.write(
      `POST /v1/execute HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n`,
    );
    const [answer] = await connection.answers(1);
    connection.destroy();
    expect(answer?.status).toBe(429);
    expect((await service.post('{', { key: 'wrong' })).status).toBe(401);
  });

  it('costs nothing, and a 400 costs its token', async () => {
    const key = await limited(1, 3);
    const bodies = ['{', { code: 1 }, { code: '' }, { code: '' }, { code: '' }];
    const statuses: number[] = [];
    for (const body of bodies) statuses.push((await service.post(body, { key })).status);
    expect(statuses).toEqual([400, 400, 200, 429, 429]);
    clock.advance(60_000);
    expect((await service.post({ code: '' }, { key })).status).toBe(200);
  });

  it('is not charged, and counted as a refusal', async () => {
    const { id, secret: key } = await keys.create({ limits: { requests_per_minute: 1, burst: 1 } });
    for (let count = 0; count < 4; count++) await service.post({ code: '' }, { key });
    const usage = await service.send(`/v1/usage?key_id=${id}`, {
      headers: { 'X-API-Key': service.adminKey },
    });
    const { totals } = JSON.parse(usage.text) as {
      totals: { runs: Record<string, number>; refused: Record<string, number> };
    };
    expect(totals).toMatchObject({ runs: { succeeded: 1 }, refused: { rate_limited: 3 } });
  });

  it('lets exactly the burst in of a hundred at once', async () => {
    const key = await limited(1, 7);
    const answers = await Promise.all(Array.from({ length: 100 }, () => service.post({ code: '' }, { key })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(7);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(93);
  });

  it('follows a change of the limit at once', async () => {
    const { id, secret: key } = await keys.create({ limits: { requests_per_minute: 1, burst: 1 } });
    expect((await service.post({ code: '' }, { key })).status).toBe(200);
    expect((await service.post({ code: '' }, { key })).status).toBe(429);
    await keys.change(id, { limits: { requests_per_minute: null, burst: null } });
    const free = await service.post({ code: '' }, { key });
    expect([free.status, ...fields(free)]).toEqual([200, null, null]);
  });
});

describe('with real time', () => {
  it('a lone caller who waits as long as it was told is let in', async () => {
    const real = await startTestService();
    const key = await real.addKey({ limits: { requests_per_minute: 45, burst: 1 } });
    expect((await real.post({ code: '' }, { key })).status).toBe(200);
    const refused = await real.post({ code: '' }, { key });
    expect(refused.status).toBe(429);
    await sleep(Number(refused.headers.get('retry-after')) * 1000);
    expect((await real.post({ code: '' }, { key })).status).toBe(200);
    await real.stop();
  });
});

describe('a restart', () => {
  const ADMIN_KEY = 'an-admin-key-of-more-than-32-characters';

  it('gives nothing away, and the time that it took counts', () =>
    withFolder(async (dataDir) => {
      const moved = new TestClock();
      const start = () => startTestService({ dataDir, clock: moved, settings: { ADMIN_KEY } });
      const first = await start();
      const key = await first.addKey({ limits: { requests_per_minute: 6, burst: 20 } });
      for (let count = 0; count < 20; count++) await first.post({ code: '' }, { key });
      await first.stop();
      moved.advance(25_000);
      const second = await start();
      const statuses: number[] = [];
      for (let count = 0; count < 3; count++)
        statuses.push((await second.post({ code: '' }, { key })).status);
      const refused = await second.post({ code: '' }, { key });
      await second.stop();
      expect(statuses).toEqual([200, 200, 429]);
      expect(refused.headers.get('retry-after')).toBe('5');
    }));

  it('after SIGKILL gives nothing away either', () =>
    withFolder(async (dataDir) => {
      const environment = {
        CODECELL_PORT: '0',
        CODECELL_DATA_DIR: dataDir,
        CODECELL_ADMIN_KEY: ADMIN_KEY,
        CODECELL_LOG_LEVEL: 'error',
      };
      const call = async (url: string, path: string, key: string, body: object) => {
        const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' };
        return fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
      };
      const first = new CodecellProcess(['serve'], { environment });
      const limits = { requests_per_minute: 1, burst: 5 };
      const made = await call(await first.url(), '/v1/keys', ADMIN_KEY, { name: 'x', limits });
      const { secret } = (await made.json()) as { secret: string };
      for (let count = 0; count < 3; count++) {
        expect((await call(await first.url(), '/v1/execute', secret, { code: '' })).status).toBe(200);
      }
      first.child.kill('SIGKILL');
      await first.ended();
      const second = new CodecellProcess(['serve'], { environment });
      const url = await second.url();
      const statuses: number[] = [];
      for (let count = 0; count < 4; count++) {
        statuses.push((await call(url, '/v1/execute', secret, { code: '' })).status);
      }
      second.child.kill('SIGTERM');
      await second.ended();
      expect(statuses).toEqual([200, 200, 429, 429]);
    }));
});
