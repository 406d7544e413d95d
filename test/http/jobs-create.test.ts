/** `POST /v1/jobs`: what is accepted, and what is refused. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runSchema } from '../../src/http/run-schema.ts';
import { ENDLESS, JobsApi, runOf } from '../support/jobs-api.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let jobs: JobsApi;
beforeAll(async () => {
  service = await startTestService({ settings: { CONCURRENCY: '1' } });
  jobs = new JobsApi(service.url, service.adminKey);
});
afterAll(() => service.stop());

describe('202', () => {
  it('answers the queued Run with every field, and where to fetch it', async () => {
    const answer = await jobs.call('POST', '', { body: { code: 'print(6 * 7)', timeout_ms: 5000 } });
    const run = runOf(answer, 202);
    expect(Object.keys(run)).toEqual(Object.keys(runSchema.properties));
    expect(run).toMatchObject({
      status: 'queued',
      exit_code: null,
      stdout: '',
      value: null,
      images: [],
      error: null,
      usage: { queue_ms: null, wall_ms: null, cpu_ms: null, peak_memory_mb: null },
      limits: { timeout_ms: 5000, memory_mb: 512 },
      started_at: null,
      finished_at: null,
    });
    expect(answer.headers.get('location')).toBe(`/v1/jobs/${run.id}`);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const ended = await jobs.ended(run.id);
    expect(Object.keys(ended)).toEqual(Object.keys(runSchema.properties));
    expect(ended).toMatchObject({ id: run.id, status: 'succeeded', stdout: '42\n', exit_code: 0 });
    expect(ended.created_at).toBe(run.created_at);
  });

  it('runs the same as /v1/execute: inputs, stdin, value, images, errors', async () => {
    const code =
      'import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\nprint(input(), inputs["x"])\n{"a": inputs["x"]}';
    const id = await jobs.submit(code, { stdin: 'é\n', inputs: { x: 1.5 } });
    const run = await jobs.ended(id);
    expect(run).toMatchObject({ status: 'succeeded', stdout: 'é 1.5\n', value: { json: { a: 1.5 } } });
    expect(run.images).toHaveLength(1);
    const failed = await jobs.ended(await jobs.submit('print("kept")\n1/0'));
    expect(failed).toMatchObject({
      status: 'failed',
      exit_code: 1,
      stdout: 'kept\n',
      error: { type: 'ZeroDivisionError', line: 2 },
    });
    const late = await jobs.ended(await jobs.submit('while True: pass', { timeout_ms: 100 }));
    expect(late).toMatchObject({ status: 'timed_out', error: { type: 'TimedOut' } });
  });

  it('takes programs and gives results of many megabytes, byte by byte', async () => {
    const inputs = { text: `${'x€'.repeat(500_000)}end` };
    const code =
      'import sys, base64\nsys.stdout.write(inputs["text"][:300000]); sys.stderr.write("é" * 600000)\n"😀" * 10';
    const run = await jobs.ended(await jobs.submit(code, { inputs, stdin: 'y'.repeat(4 * 2 ** 20) }));
    expect(run.stdout === inputs.text.slice(0, 300_000)).toBe(true);
    expect(run.truncated).toEqual({ stdout: false, stderr: true, value: false, images: false });
    expect(run.value?.text).toBe(`'${'😀'.repeat(10)}'`);
  });

  it('measures the wait, which does not count as running time', async () => {
    const first = await jobs.submit('import time; time.sleep(0.4)');
    const second = await jobs.submit('print(1)', { timeout_ms: 300 });
    const run = await jobs.ended(second);
    expect(run).toMatchObject({ status: 'succeeded' });
    expect(run.usage.queue_ms).toBeGreaterThan(350);
    await jobs.ended(first);
  });

  it('charges each job once', async () => {
    const secret = await service.addKey();
    const own = new JobsApi(service.url, secret);
    const ids = await Promise.all(Array.from({ length: 5 }, () => own.submit('sum(range(10**6))')));
    const runs = await Promise.all(ids.map((id) => own.ended(id)));
    const answer = await service.send('/v1/usage', { headers: { 'X-API-Key': secret } });
    const { totals } = JSON.parse(answer.text);
    expect(totals.runs).toMatchObject({ succeeded: 5, failed: 0 });
    expect(totals.cpu_ms).toBe(runs.reduce((sum, run) => sum + (run.usage.cpu_ms ?? 0), 0));
    expect(totals.queue_ms).toBe(runs.reduce((sum, run) => sum + (run.usage.queue_ms ?? 0), 0));
  });

  it('is the same job again under an Idempotency-Key, also when fifty are sent at once', async () => {
    const own = new JobsApi(service.url, await service.addKey());
    const headers = { 'Idempotency-Key': 'the-same' };
    const send = () => own.call('POST', '', { body: { code: 'print(1)' }, headers });
    const answers = await Promise.all(Array.from({ length: 50 }, send));
    const last = await send();
    const accepted = [...answers, last].filter(({ status }) => status === 202);
    expect(new Set(accepted.map(({ text }) => text)).size).toBe(1);
    expect(last.headers.get('idempotent-replay')).toBe('true');
    expect(last.headers.get('location')).toBe(`/v1/jobs/${runOf(last, 202).id}`);
    for (const { status } of answers) expect([202, 409]).toContain(status);
    expect((await own.list()).data).toHaveLength(1);
  });
});

describe('400', () => {
  it('names what is wrong with a field, as /v1/execute does', async () => {
    const answer = await jobs.call('POST', '', { body: { code: 1, timeout_ms: 0, memory: 2 } });
    expect(answer.status).toBe(400);
    expect(
      problemOf(answer)
        .errors?.map(({ path }) => path)
        .sort(),
    ).toEqual(['/code', '/memory', '/timeout_ms']);
  });
});

describe('429', () => {
  it('refuses a key that has max_queued_jobs waiting, and counts only those that wait', async () => {
    const own = new JobsApi(service.url, await service.addKey({ limits: { max_queued_jobs: 2 } }));
    const running = await own.submit(ENDLESS);
    await own.running(running);
    const waiting = [await own.submit('1'), await own.submit('2')];
    const refused = await own.call('POST', '', { body: { code: '3' } });
    expect([refused.status, problemOf(refused).code]).toEqual([429, 'concurrency_limited']);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(problemOf(refused).detail).toContain('max_queued_jobs');
    await own.cancel(waiting[0]!);
    const next = await own.submit('3');
    await own.cancel(running);
    for (const id of [waiting[1]!, next]) expect((await own.ended(id)).status).toBe('succeeded');
  });

  it('is one for whom none may wait', async () => {
    const own = new JobsApi(service.url, await service.addKey({ limits: { max_queued_jobs: 0 } }));
    expect((await own.call('POST', '', { body: { code: '' } })).status).toBe(429);
  });

  it('takes one of the rate with each job', async () => {
    const limits = { requests_per_minute: 1, burst: 2 };
    const own = new JobsApi(service.url, await service.addKey({ limits }));
    await own.submit('1');
    await own.submit('2');
    const refused = await own.call('POST', '', { body: { code: '3' } });
    expect([refused.status, problemOf(refused).code]).toEqual([429, 'rate_limited']);
  });
});

describe('503', () => {
  it('refuses when as many jobs wait as are kept, and removes ended ones before that', async () => {
    const small = await startTestService({ settings: { CONCURRENCY: '1', JOBS_MAX: '3' } });
    try {
      const api = new JobsApi(small.url, small.adminKey);
      const first = await api.submit('1');
      await api.ended(first);
      const running = await api.submit(ENDLESS);
      await api.running(running);
      const waiting = [await api.submit('2'), await api.submit('3')];
      expect((await api.call('GET', `/${first}`)).status).toBe(404);
      const refused = await api.call('POST', '', { body: { code: '4' } });
      expect([refused.status, problemOf(refused).code]).toEqual([503, 'overloaded']);
      expect(refused.headers.get('retry-after')).toBe('1');
      await api.cancel(running);
      await api.submit('4');
      for (const id of waiting) await api.ended(id);
    } finally {
      await small.stop();
    }
  });
});
