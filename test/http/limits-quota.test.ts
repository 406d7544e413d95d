/** `cpu_seconds_per_day`: 429 `quota_exceeded`. */

import { afterEach, describe, expect, it } from 'vitest';
import { TestClock } from '../support/clock.ts';
import { withFolder } from '../support/folder.ts';
import { JobsApi } from '../support/jobs-api.ts';
import { KeysApi } from '../support/keys-api.ts';
import { CodecellProcess } from '../support/process.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

const DAY_MS = 86_400_000;

/** Uses more than a second of processor time. */
const BUSY = 'import time\nwhile time.process_time() < 1.2: pass';

let service: TestService | undefined;
afterEach(() => service?.stop());

describe('429 quota_exceeded', () => {
  it('refuses once the time of today is used, until midnight UTC; a started run finishes', async () => {
    const clock = new TestClock();
    service = await startTestService({ clock });
    const { secret: key } = await new KeysApi(service).create({ limits: { cpu_seconds_per_day: 1 } });
    const first = await service.post({ code: BUSY }, { key });
    expect(first.status).toBe(200);
    expect(JSON.parse(first.text)).toMatchObject({ status: 'succeeded' });
    const midnightSeconds = Math.ceil((DAY_MS - (clock.now() % DAY_MS)) / 1000);
    expect(first.headers.get('ratelimit-policy')).toBe('"cpu";q=1;w=86400');
    expect(first.headers.get('ratelimit')).toBe(`"cpu";r=0;t=${midnightSeconds}`);

    const refused = await service.post({ code: '' }, { key });
    expect([refused.status, problemOf(refused).code]).toEqual([429, 'quota_exceeded']);
    expect(refused.headers.get('retry-after')).toBe(String(midnightSeconds));
    expect((await service.send('/v1/runtime', { headers: { 'X-API-Key': key } })).status).toBe(200);
    clock.advance((midnightSeconds - 1) * 1000);
    expect((await service.post({ code: '' }, { key })).status).toBe(429);
    clock.advance(1000);
    expect((await service.post({ code: '' }, { key })).status).toBe(200);
  });

  it('is looked at again when a request has waited for its slot', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '1' } });
    const { secret: key } = await new KeysApi(service).create({ limits: { cpu_seconds_per_day: 1 } });
    const answers = await Promise.all([1, 2, 3].map(() => service?.post({ code: BUSY }, { key })));
    expect(answers.map((answer) => answer?.status).sort()).toEqual([200, 429, 429]);
    const { text } = await service.send('/v1/usage', { headers: { 'X-API-Key': key } });
    const { runs, refused } = JSON.parse(text).totals;
    expect([runs.succeeded, refused.quota_exceeded]).toEqual([1, 2]);
  });

  it('is lifted by a higher limit at once', async () => {
    service = await startTestService();
    const keys = new KeysApi(service);
    const { id, secret: key } = await keys.create({ limits: { cpu_seconds_per_day: 1 } });
    await service.post({ code: BUSY }, { key });
    expect((await service.post({ code: '' }, { key })).status).toBe(429);
    await keys.change(id, { limits: { cpu_seconds_per_day: 100 } });
    expect((await service.post({ code: '' }, { key })).status).toBe(200);
  });

  it('keeps jobs that were accepted before waiting until midnight, or a higher limit; others pass them', async () => {
    const clock = new TestClock();
    service = await startTestService({ clock, settings: { CONCURRENCY: '1' } });
    const keys = new KeysApi(service);
    const { id, secret } = await keys.create({ limits: { cpu_seconds_per_day: 1 } });
    const jobs = new JobsApi(service.url, secret);
    const others = new JobsApi(service.url, await service.addKey());
    const [first, second, third] = [await jobs.submit(BUSY), await jobs.submit(BUSY), await jobs.submit('3')];
    expect((await jobs.ended(first)).status).toBe('succeeded');
    expect((await jobs.call('POST', '', { body: { code: '4' } })).status).toBe(429);
    expect((await others.ended(await others.submit('1'))).status).toBe('succeeded');
    expect((await jobs.show(second)).status).toBe('queued');

    await keys.change(id, { limits: { cpu_seconds_per_day: 2 } });
    expect((await jobs.ended(second)).status).toBe('succeeded');
    await others.ended(await others.submit('1'));
    expect((await jobs.show(third)).status).toBe('queued');
    clock.advance(DAY_MS - (clock.now() % DAY_MS));
    expect((await jobs.ended(third)).status).toBe('succeeded');
  });

  it('is still known after SIGKILL', () =>
    withFolder(async (dataDir) => {
      service = undefined;
      const environment = {
        CODECELL_PORT: '0',
        CODECELL_DATA_DIR: dataDir,
        CODECELL_ADMIN_KEY: 'an-admin-key-of-more-than-32-characters',
        CODECELL_LOG_LEVEL: 'error',
      };
      const post = (url: string, path: string, key: string, body: object) =>
        fetch(url + path, {
          method: 'POST',
          headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
          body: JSON.stringify(body),
        });
      const first = new CodecellProcess(['serve'], { environment });
      const body = { name: 'x', limits: { cpu_seconds_per_day: 1 } };
      const made = await post(await first.url(), '/v1/keys', environment.CODECELL_ADMIN_KEY, body);
      const { secret } = (await made.json()) as { secret: string };
      expect((await post(await first.url(), '/v1/execute', secret, { code: BUSY })).status).toBe(200);
      first.child.kill('SIGKILL');
      await first.ended();
      const second = new CodecellProcess(['serve'], { environment });
      const answer = await post(await second.url(), '/v1/execute', secret, { code: '' });
      second.child.kill('SIGTERM');
      await second.ended();
      expect(answer.status).toBe(429);
      expect(await answer.json()).toMatchObject({ code: 'quota_exceeded' });
    }));
});
