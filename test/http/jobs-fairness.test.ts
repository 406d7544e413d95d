/** Who gets the next slot: keys take turns, and so do jobs and requests. */

import { afterEach, describe, expect, it } from 'vitest';
import type { Run } from '../../src/runs/run.ts';
import { ENDLESS, JobsApi } from '../support/jobs-api.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
afterEach(() => service.stop());

async function withKey(limits: object = {}) {
  const key = await service.addKey({ limits });
  return { key, jobs: new JobsApi(service.url, key) };
}

/** Takes the only slot by a job of another key until it is cancelled. */
async function occupySlot(): Promise<() => Promise<void>> {
  const { jobs } = await withKey();
  const id = await jobs.submit(ENDLESS);
  await jobs.running(id);
  return async () => void (await jobs.cancel(id));
}

/** How many of these had started before the other one. */
const startedBefore = (runs: Run[], other: Run) =>
  runs.filter(({ started_at }) => (started_at ?? '') < (other.started_at ?? '')).length;

describe('jobs', () => {
  it('of a class of 300 delay the job of another key by one run', { timeout: 120_000 }, async () => {
    service = await startTestService({ settings: { CONCURRENCY: '1' } });
    const [many, one] = [await withKey(), await withKey()];
    const release = await occupySlot();
    const ids = await Promise.all(Array.from({ length: 300 }, () => many.jobs.submit('print(1)')));
    const late = await one.jobs.submit('print(2)');
    await release();
    const run = await one.jobs.ended(late);
    const runs = await Promise.all(ids.map((id) => many.jobs.ended(id)));
    expect(startedBefore(runs, run)).toBeLessThanOrEqual(2);
    for (const { status } of runs) expect(status).toBe('succeeded');
  });

  it('let a request of their own key in that was refused because of them and comes back', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '2' } });
    const { key, jobs } = await withKey({ concurrency: 1 });
    const ids = await Promise.all(
      Array.from({ length: 12 }, () => jobs.submit('import time; time.sleep(0.7)')),
    );
    await until(async () => (await jobs.list('?status=running')).data.length > 0);
    const refusedAt = new Date().toISOString();
    let answer = await service.post({ code: '1' }, { key });
    expect(answer.status).toBe(429);
    while (answer.status === 429) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * Number(answer.headers.get('retry-after'))));
      answer = await service.post({ code: '1' }, { key });
    }
    const run = JSON.parse(answer.text) as Run;
    const runs = await Promise.all(ids.map((id) => jobs.ended(id)));
    const meanwhile = runs.filter(({ started_at }) => (started_at ?? '') > refusedAt);
    expect(startedBefore(meanwhile, run)).toBeLessThanOrEqual(1);
    expect(meanwhile.length).toBeGreaterThan(5);
  });

  it('of one key run in the order they were sent', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '1' } });
    const { jobs } = await withKey();
    const ids: string[] = [];
    for (let count = 0; count < 10; count++) ids.push(await jobs.submit('1'));
    const runs = await Promise.all(ids.map((id) => jobs.ended(id)));
    const starts = runs.map(({ started_at }) => started_at ?? '');
    expect(starts).toEqual(starts.toSorted());
  });

  it('wait beyond the concurrency of their key, and nobody waits for them', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '4' } });
    const [limited, other] = [await withKey({ concurrency: 1 }), await withKey()];
    const first = await limited.jobs.submit('import time; time.sleep(1)');
    await limited.jobs.running(first);
    const second = await limited.jobs.submit('1');
    expect((await other.jobs.ended(await other.jobs.submit('print(1)'))).status).toBe('succeeded');
    expect((await limited.jobs.show(second)).status).toBe('queued');
    const [before, after] = [await limited.jobs.ended(first), await limited.jobs.ended(second)];
    const waitMs = Date.parse(after.started_at ?? '') - Date.parse(before.finished_at ?? '');
    expect(waitMs).toBeGreaterThanOrEqual(0);
    // Well within the tick of a second, at which it would be found anyway.
    expect(waitMs).toBeLessThan(500);
  });

  it('count with requests for the concurrency of their key', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '4' } });
    const { key, jobs } = await withKey({ concurrency: 1 });
    const running = await jobs.submit(ENDLESS);
    await jobs.running(running);
    expect((await service.post({ code: '' }, { key })).status).toBe(429);
    await jobs.cancel(running);
    expect((await service.post({ code: '' }, { key })).status).toBe(200);
  });
});

describe('requests and jobs', () => {
  it('take turns at the only slot, however many of the other kind wait', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '1', QUEUE_WAIT_MS: '60000' } });
    const { jobs } = await withKey();
    const release = await occupySlot();
    const ids = await Promise.all(Array.from({ length: 100 }, () => jobs.submit('1')));
    const requests = Array.from({ length: 50 }, () => service.execute({ code: '1' }));
    await service.loaded(1, 50);
    await release();
    const answered = await Promise.all(requests);
    const ended = await Promise.all(ids.map((id) => jobs.ended(id)));
    const last = answered.reduce((one, other) =>
      (one.started_at ?? '') > (other.started_at ?? '') ? one : other,
    );
    // Of fifty and fifty by turns, each kind has had its half when the last request starts.
    expect(startedBefore(ended, last)).toBeGreaterThan(40);
    expect(startedBefore(ended, last)).toBeLessThan(60);
  });

  it('leave a slot to requests: jobs that hold all others for long delay none', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '2', QUEUE_WAIT_MS: '2000' } });
    const { jobs } = await withKey();
    await service.execute({ code: '1' });
    const ids = await Promise.all(Array.from({ length: 5 }, () => jobs.submit(ENDLESS)));
    await until(async () => (await jobs.list('?status=running')).data.length === 1);
    for (let count = 0; count < 10; count++) {
      expect((await service.execute({ code: '1' })).usage.queue_ms).toBeLessThan(1000);
    }
    expect((await jobs.list('?status=running')).data).toHaveLength(1);
    await Promise.all(ids.map((id) => jobs.cancel(id)));
  });

  it('leave every slot to jobs where no request comes', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '2' } });
    const { jobs } = await withKey();
    const ids = await Promise.all(Array.from({ length: 3 }, () => jobs.submit(ENDLESS)));
    await until(async () => (await jobs.list('?status=running')).data.length === 2);
    await Promise.all(ids.map((id) => jobs.cancel(id)));
  });
});
