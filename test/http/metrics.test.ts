import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RUN_STATUSES } from '../../src/runs/run.ts';
import { ENDLESS, JobsApi } from '../support/jobs-api.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ settings: { CONCURRENCY: '1', QUEUE_MAX: '1' } });
});
afterAll(() => service.stop());

interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

async function samples(): Promise<Sample[]> {
  const answer = await service.send('/metrics', { headers: { Authorization: `Bearer ${service.adminKey}` } });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ]);
  return answer.text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value = ''] =
        /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      expect(name, line).not.toBe('');
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', text = '']) => [
        label,
        text,
      ]);
      return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
    });
}

/** The value of the one sample that has these labels, if not others. */
async function value(name: string, labels: Record<string, string> = {}): Promise<number> {
  const found = (await samples()).filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, text]) => sample.labels[label] === text),
  );
  expect([name, found.length]).toEqual([name, 1]);
  return found[0]?.value ?? Number.NaN;
}

describe('GET /metrics', () => {
  it('counts runs by status, with running time, waiting time and processor time', async () => {
    const before = await value('codecell_runs_total', { status: 'succeeded' });
    const cpuBefore = await value('codecell_run_cpu_seconds_total');
    const run = await service.execute({ code: 'print(1)' });
    await service.execute({ code: '1/0' });
    expect(await value('codecell_runs_total', { status: 'succeeded' })).toBe(before + 1);
    expect(await value('codecell_runs_total', { status: 'failed' })).toBe(1);
    expect(await value('codecell_run_seconds_count')).toBe(before + 2);
    expect(await value('codecell_queue_wait_seconds_count', { kind: 'request' })).toBe(before + 2);
    expect(await value('codecell_run_seconds_sum')).toBeGreaterThanOrEqual((run.usage.wall_ms ?? 0) / 1000);
    expect(await value('codecell_run_cpu_seconds_total')).toBeGreaterThan(cpuBefore);
  });

  it('has every status and reason from the start, so that a first one is seen as a change', async () => {
    const all = await samples();
    const labels = (name: string, label: string) =>
      all.filter((sample) => sample.name === name).map((sample) => sample.labels[label]);
    const charged = RUN_STATUSES.filter((status) => !['queued', 'running', 'lost'].includes(status));
    expect(labels('codecell_runs_total', 'status').sort()).toEqual([...charged].sort());
    expect(labels('codecell_refusals_total', 'reason')).toContain('quota_exceeded');
  });

  it('shows what runs and waits at this moment', async () => {
    const long = { code: 'import time; time.sleep(20)' };
    const caller = new AbortController();
    const gone = [service.post(long, caller), service.post(long, caller)].map((answer) =>
      answer.catch(() => null),
    );
    await service.loaded(1, 1);
    expect([await value('codecell_runs_running'), await value('codecell_runs_waiting')]).toEqual([1, 1]);
    caller.abort();
    await Promise.all(gone);
    await service.loaded(0, 0);
    expect([await value('codecell_runs_running'), await value('codecell_runs_waiting')]).toEqual([0, 0]);
    expect(await value('codecell_slots')).toBe(1);
  });

  it('shows the jobs, whose waits are not those of requests', async () => {
    const jobs = new JobsApi(service.url, service.adminKey);
    const runsBefore = await value('codecell_runs_total', { status: 'succeeded' });
    const cancelledBefore = await value('codecell_runs_total', { status: 'cancelled' });
    const waits = (kind: string) => value('codecell_queue_wait_seconds_count', { kind });
    const before = [await waits('request'), await waits('job')];
    expect(await value('codecell_jobs_oldest_queued_seconds')).toBe(0);
    const running = await jobs.submit(ENDLESS);
    const queued = await jobs.submit('1');
    await until(async () => (await value('codecell_jobs_running')) === 1);
    expect(await value('codecell_jobs_queued')).toBe(1);
    await until(async () => (await value('codecell_jobs_oldest_queued_seconds')) > 0);
    expect((await jobs.cancel(await jobs.submit('2'))).status).toBe('cancelled');
    await jobs.cancel(running);
    await jobs.ended(queued);
    expect([await value('codecell_jobs_running'), await value('codecell_jobs_queued')]).toEqual([0, 0]);
    expect(await value('codecell_runs_total', { status: 'succeeded' })).toBe(runsBefore + 1);
    // One that was cancelled while it waited is a run that was charged, and has waited for nothing that it got.
    expect(await value('codecell_runs_total', { status: 'cancelled' })).toBe(cancelledBefore + 2);
    expect([await waits('request'), await waits('job')]).toEqual([before[0], before[1]! + 2]);
  });

  it('shows the sandbox, the store and the process', async () => {
    expect(await value('codecell_spares_ready')).toBeGreaterThan(0);
    expect(await value('codecell_zygote_restarts_total')).toBe(0);
    expect(await value('codecell_runs_lost_total')).toBe(0);
    expect(await value('codecell_usage_writable')).toBe(1);
    expect(await value('codecell_usage_store_seconds_count')).toBeGreaterThan(0);
    expect(await value('codecell_build_info')).toBe(1);
    expect(await value('process_resident_memory_bytes')).toBeGreaterThan(2 ** 20);
    expect(await value('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0);
  });

  it('times requests by route as it is written in the code, method and class of status', async () => {
    await service.send('/v1/nothing/here?secret=1');
    await service.send('/v1/runtime');
    const route = (name: string, status: string) =>
      value('codecell_http_request_seconds_count', { route: name, status });
    const before = await route('none', '4xx');
    // What no hook of the server sees: a path that cannot be decoded, and one that is too long.
    await service.send('/v1/jobs/%zz');
    await service.send(`/v1/jobs/${'x'.repeat(150)}`);
    expect(await route('none', '4xx')).toBe(before + 2);
    expect(await route('none', '4xx')).toBeGreaterThan(0);
    expect(await route('/v1/runtime', '4xx')).toBeGreaterThan(0);
    expect(await route('/v1/execute', '2xx')).toBeGreaterThan(0);
    expect(await route('/metrics', '2xx')).toBeGreaterThan(0);
  });

  it('holds no key, name or path that somebody asked for, and labels of few values', async () => {
    const key = await service.addKey({
      id: 'key_that_is_secret',
      name: 'name-that-is-secret',
      team: 'team-x',
    });
    await service.execute({ code: 'print(1)' }, { key });
    for (let index = 0; index < 50; index++) await service.send(`/v1/path-${index}`, { method: 'PUT' });
    const { text } = await service.send('/metrics', { headers: { 'X-API-Key': service.adminKey } });
    for (const hidden of ['key_', 'ck_', 'name-that', 'team-x', 'path-', 'PUT', service.adminKey]) {
      expect(text).not.toContain(hidden);
    }
    const seen = new Map<string, Set<string>>();
    for (const { labels } of await samples()) {
      for (const [label, text] of Object.entries(labels)) {
        seen.set(label, (seen.get(label) ?? new Set()).add(text));
      }
    }
    for (const [label, texts] of seen) expect([label, texts.size <= 30]).toEqual([label, true]);
  });
});

describe('GET /metrics without an admin key', () => {
  it('is 401 without a key and 403 with a user key', async () => {
    expect((await service.send('/metrics')).status).toBe(401);
    const key = await service.addKey();
    const answer = await service.send('/metrics', { headers: { 'X-API-Key': key } });
    expect([answer.status, problemOf(answer).code]).toEqual([403, 'forbidden']);
  });
});
