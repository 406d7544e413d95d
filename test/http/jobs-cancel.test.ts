/** `DELETE /v1/jobs/{id}`: whichever ending came first stands. And the revocation of a key, which cancels its jobs. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDLESS, JobsApi } from '../support/jobs-api.ts';
import { KeysApi } from '../support/keys-api.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
let jobs: JobsApi;
beforeAll(async () => {
  service = await startTestService({ settings: { CONCURRENCY: '1' } });
  jobs = new JobsApi(service.url, service.adminKey);
});
afterAll(() => service.stop());

describe('200', () => {
  it('stops a running job, keeps what it printed, and has freed its slot', async () => {
    const id = await jobs.submit(`print("kept", flush=True)\n${ENDLESS}`);
    await jobs.running(id);
    const run = await jobs.cancel(id);
    expect(run).toMatchObject({ status: 'cancelled', exit_code: null, error: { type: 'Cancelled' } });
    expect(await jobs.show(id)).toEqual(run);
    await service.loaded(0, 0);
  });

  it('keeps a queued job from running', async () => {
    const running = await jobs.submit(ENDLESS);
    await jobs.running(running);
    const queued = await jobs.submit('print("never")');
    const run = await jobs.cancel(queued);
    expect(run).toMatchObject({
      status: 'cancelled',
      stdout: '',
      started_at: null,
      usage: { wall_ms: 0, cpu_ms: 0 },
      error: { type: 'Cancelled' },
    });
    expect(run.finished_at).not.toBeNull();
    await jobs.cancel(running);
    expect(await jobs.show(queued)).toEqual(run);
  });

  it('is answered once the process is gone, also while the service shuts down', async () => {
    const other = await startTestService({ settings: { CONCURRENCY: '1' } });
    const its = new JobsApi(other.url, other.adminKey);
    const id = await its.submit(ENDLESS);
    await its.running(id);
    const stopped = other.stop();
    expect((await its.cancel(id)).status).toBe('cancelled');
    await stopped;
  });

  it('leaves a job that has ended as it is, however often it is cancelled', async () => {
    const id = await jobs.submit('print(1)');
    const run = await jobs.ended(id);
    expect(await jobs.cancel(id)).toEqual(run);
    const stopped = await jobs.submit(ENDLESS);
    const answers = await Promise.all([1, 2, 3].map(() => jobs.cancel(stopped)));
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  });

  it('agrees with everybody on which ending came first', async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, () => jobs.submit('print(1)')));
    const answers = await Promise.all(ids.map((id) => jobs.cancel(id)));
    for (const [index, id] of ids.entries()) expect(await jobs.show(id)).toEqual(answers[index]);
    for (const { status } of answers) expect(['succeeded', 'cancelled']).toContain(status);
  });
});

describe('a key that is revoked', () => {
  it('has its queued and running jobs cancelled', async () => {
    const keys = new KeysApi(service);
    const key = await keys.create();
    const own = new JobsApi(service.url, key.secret);
    const running = await own.submit(ENDLESS);
    await own.running(running);
    for (let count = 0; count < 120; count++) await own.submit('print("never")');
    await keys.revoke(key.id);
    await service.loaded(0, 0);
    const cancelled = async () => {
      const answer = await service.send(`/v1/usage?key_id=${key.id}`, {
        headers: { 'X-API-Key': service.adminKey },
      });
      return JSON.parse(answer.text).totals.runs.cancelled;
    };
    await until(async () => (await cancelled()) === 121);
    expect(await jobs.ended(await jobs.submit('print("another key")'))).toMatchObject({
      status: 'succeeded',
    });
  });

  it('keeps nobody else out while its jobs are cancelled, however many wait', async () => {
    const keys = new KeysApi(service);
    const key = await keys.create();
    const own = new JobsApi(service.url, key.secret);
    await own.running(await own.submit(ENDLESS));
    for (let count = 0; count < 45; count++) {
      await Promise.all(Array.from({ length: 20 }, () => own.submit('print("never")')));
    }
    const queued = async (): Promise<number> => {
      const { text } = await service.send('/metrics', { headers: { 'X-API-Key': service.adminKey } });
      return Number(/^codecell_jobs_queued (\d+)$/m.exec(text)?.[1]);
    };
    expect(await queued()).toBe(900);
    await keys.revoke(key.id);
    let answers = 0;
    for (; (await queued()) > 0; answers++) expect((await service.send('/healthz')).status).toBe(200);
    expect(answers).toBeGreaterThan(1);
  });
});
