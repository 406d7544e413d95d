/** `GET /v1/jobs/{id}`: the Run, at once or as soon as it ends. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDLESS, JobsApi, runOf } from '../support/jobs-api.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let jobs: JobsApi;
beforeAll(async () => {
  service = await startTestService({ settings: { CONCURRENCY: '1' } });
  jobs = new JobsApi(service.url, service.adminKey);
});
afterAll(() => service.stop());

describe('200', () => {
  it('shows a job that waits, runs, and has ended', async () => {
    const running = await jobs.submit(ENDLESS);
    const shown = await jobs.running(running);
    expect(shown).toMatchObject({
      status: 'running',
      stdout: '',
      finished_at: null,
      usage: { wall_ms: null },
    });
    expect(shown.started_at).not.toBeNull();
    const waiting = await jobs.submit('print(1)');
    expect(await jobs.show(waiting)).toMatchObject({ status: 'queued', started_at: null });
    await jobs.cancel(running);
    expect(await jobs.ended(waiting)).toMatchObject({ status: 'succeeded', stdout: '1\n' });
  });

  it('answers a wait at the moment of the end', async () => {
    const id = await jobs.submit('import time; time.sleep(0.5)');
    const run = await jobs.show(id, 30);
    expect(run.status).toBe('succeeded');
    // And not when the wait is over.
    expect(Date.now() - Date.parse(run.finished_at ?? '')).toBeLessThan(5000);
  });

  it('answers a wait that is over with what the job is then, and fifty waits of one job', async () => {
    const id = await jobs.submit(ENDLESS);
    await jobs.running(id);
    const startMs = performance.now();
    expect((await jobs.show(id, 1)).status).toBe('running');
    expect(performance.now() - startMs).toBeGreaterThan(950);
    const waits = Array.from({ length: 50 }, () => jobs.show(id, 30));
    await jobs.cancel(id);
    for (const run of await Promise.all(waits)) expect(run.status).toBe('cancelled');
  });

  it('answers HEAD without a body', async () => {
    const id = await jobs.submit('print(1)');
    await jobs.ended(id);
    const answer = await jobs.call('HEAD', `/${id}`);
    expect([answer.status, answer.text]).toEqual([200, '']);
  });

  it('leaves nothing behind when the caller hangs up', async () => {
    const id = await jobs.submit(ENDLESS);
    const caller = new AbortController();
    const wait = jobs.call('GET', `/${id}?wait=30`, { signal: caller.signal });
    await jobs.running(id);
    caller.abort();
    await expect(wait).rejects.toThrow();
    expect((await jobs.cancel(id)).status).toBe('cancelled');
  });
});

describe('400', () => {
  it.each(['31', '-1', '1.5', 'x', ''])('refuses to wait for "%s" seconds', async (wait) => {
    const answer = await jobs.call('GET', `/run_x?wait=${wait}`);
    expect([answer.status, problemOf(answer).errors?.[0]?.path]).toEqual([400, '/wait']);
  });
});

describe('404', () => {
  it("is the same for a job of another key, a synchronous run's id, and what is none", async () => {
    const id = await jobs.submit('print(1)');
    await jobs.ended(id);
    const run = await service.execute({ code: '' });
    const [user, admin] = [await service.addKey(), await service.addKey({ role: 'admin' })];
    const bodies = new Set<string>();
    for (const [key, asked] of [
      [user, id],
      [admin, id],
      [service.adminKey, run.id],
      [service.adminKey, 'run_01a22d76-afa2-708d-be55-d3d168f21301'],
      [service.adminKey, "x' or 1=1 --"],
    ] as const) {
      for (const method of ['GET', 'DELETE']) {
        const answer = await new JobsApi(service.url, key).call(method, `/${encodeURIComponent(asked)}`);
        expect([answer.status, problemOf(answer).code]).toEqual([404, 'not_found']);
        bodies.add(JSON.stringify({ ...problemOf(answer), request_id: '' }));
      }
    }
    expect(bodies.size).toBe(1);
    expect(runOf(await jobs.call('GET', `/${id}`)).status).toBe('succeeded');
  });
});
