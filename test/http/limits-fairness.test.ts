/** A key that floods the service, while another one works. */

import { afterEach, describe, expect, it } from 'vitest';
import type { Run } from '../../src/runs/run.ts';
import { KeysApi } from '../support/keys-api.ts';
import { type Answer, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
afterEach(() => service.stop());

const FLOOD = 1000;

/** A thousand requests of one key at once. */
function flood(key: string, code: string): Promise<Answer[]> {
  return Promise.all(Array.from({ length: FLOOD }, () => service.post({ code }, { key })));
}

const time = (moment: string | null) => Date.parse(moment ?? '');

describe('a thousand waiting requests of one key', () => {
  it("delay another key's next run by one run at most", async () => {
    service = await startTestService({
      settings: { CONCURRENCY: '1', QUEUE_MAX: '2000', QUEUE_WAIT_MS: '120000' },
    });
    const keys = new KeysApi(service);
    const [greedy, modest] = [await keys.create(), await keys.create()];
    const caller = new AbortController();
    const first = service.post({ code: 'import time; time.sleep(29)' }, { signal: caller.signal });
    first.catch(() => 'hung up');
    await service.loaded(1, 0);
    const flooding = flood(greedy.secret, '');
    await service.loaded(1, FLOOD);
    caller.abort();
    const runs: Run[] = [];
    for (let count = 0; count < 10; count++) {
      runs.push(await service.execute({ code: '' }, { key: modest.secret }));
    }
    const answers = await flooding;
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    const ends = answers.map(({ text }) => time((JSON.parse(text) as Run).finished_at));
    for (const run of runs) {
      const meanwhile = ends.filter((end) => end > time(run.created_at) && end < time(run.started_at));
      // The one that was running already, and one more.
      expect(meanwhile.length).toBeLessThanOrEqual(2);
    }
  });
});

describe('a thousand parallel requests on one key', () => {
  it.each([
    ['without limits', {}, 503],
    ['with a rate', { requests_per_minute: 60, burst: 10 }, 429],
    ['with a concurrency', { concurrency: 2 }, 429],
  ])('%s leave another key to work on', async (_, limits, refusal) => {
    service = await startTestService({ settings: { CONCURRENCY: '2' } });
    const keys = new KeysApi(service);
    const [greedy, modest] = [await keys.create({ limits }), await keys.create()];
    const flooding = flood(greedy.secret, 'import time; time.sleep(0.02)');
    for (let count = 0; count < 10; count++) {
      expect(await service.execute({ code: 'print(1)' }, { key: modest.secret })).toMatchObject({
        stdout: '1\n',
      });
    }
    const statuses = new Set((await flooding).map(({ status }) => status));
    expect([...statuses].sort()).toEqual([200, refusal]);
    expect((await service.send('/healthz')).status).toBe(200);
  });
});
