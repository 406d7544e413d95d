import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../src/shared/clock.ts';
import { openDatabase } from '../../src/store/database.ts';
import { type RunCharge, UsageStore } from '../../src/store/usage-store.ts';
import type { UsageRow, UsageSums } from '../../src/usage/report.ts';
import { charge } from '../support/charge.ts';
import { startTestService, type TestService } from '../support/service.ts';

/** Usage of a year in which the service did not exist, so that nothing else is in it. */
const at = (time: string) => Date.parse(`${time}Z`);

let service: TestService;
const secrets: Record<string, string> = {};

beforeAll(async () => {
  service = await startTestService();
  secrets.blue = await service.addKey({ id: 'key_blue', name: 'blue one', team: 'blue' });
  secrets.red = await service.addKey({ id: 'key_red', name: 'red one', team: 'red' });
  const runs: Partial<RunCharge>[] = [
    { key_id: 'key_blue', ended_at: at('2020-01-31T22:59:59.999'), cpu_ms: 1 },
    { key_id: 'key_blue', ended_at: at('2020-01-31T23:00:00'), cpu_ms: 10, wall_ms: 20, memory_mb_ms: 5120 },
    { key_id: 'key_blue', ended_at: at('2020-01-31T23:59:59.999'), cpu_ms: 100, status: 'timed_out' },
    { key_id: 'key_red', ended_at: at('2020-02-01T00:00:00'), cpu_ms: 1000, queue_ms: 3, images: 4 },
    { key_id: 'key_red', ended_at: at('2020-02-29T12:00:00'), cpu_ms: 10_000, bytes_in: 5, bytes_out: 6 },
    { key_id: 'key_environment', ended_at: at('2020-03-01T00:00:00'), cpu_ms: 100_000 },
  ];
  const db = await openDatabase(service.dataDir);
  await new UsageStore(db).add(
    runs.map((run) => charge(run)),
    [{ key_id: 'key_red', hour: at('2020-02-01T00:00:00'), outcome: 'quota_exceeded', count: 8 }],
  );
  await db.destroy();
});
afterAll(() => service.stop());

interface Usage {
  from: string;
  to: string;
  group_by: string;
  data: UsageRow[];
  totals: UsageSums;
}

async function usage(query: string, key = service.adminKey): Promise<Usage> {
  const answer = await service.send(`/v1/usage${query}`, { headers: { 'X-API-Key': key } });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([
    200,
    'application/json; charset=utf-8',
  ]);
  return JSON.parse(answer.text) as Usage;
}

/** Period, key and processor time of each row. */
const brief = ({ data }: Usage) => data.map(({ period, key_id, cpu_ms }) => [period, key_id, cpu_ms]);

describe('GET /v1/usage', () => {
  it('has every field, and totals of all rows', async () => {
    const answer = await usage('?from=2020-01-31T23:00:00Z&to=2020-02-01T01:00:00Z&group_by=hour');
    const none = { failed: 0, memory_exceeded: 0, output_exceeded: 0, crashed: 0, cancelled: 0 };
    const unrefused = { rate_limited: 0, concurrency_limited: 0, overloaded: 0, shutting_down: 0 };
    expect(answer).toEqual({
      from: '2020-01-31T23:00:00Z',
      to: '2020-02-01T01:00:00Z',
      group_by: 'hour',
      data: [
        {
          period: '2020-01-31T23:00:00Z',
          key_id: 'key_blue',
          key_name: 'blue one',
          team: 'blue',
          runs: { succeeded: 1, timed_out: 1, ...none },
          refused: { quota_exceeded: 0, ...unrefused },
          wall_ms: 20,
          cpu_ms: 110,
          queue_ms: 0,
          memory_mb_seconds: 5.12,
          bytes_in: 0,
          bytes_out: 0,
          images: 0,
        },
        {
          period: '2020-02-01T00:00:00Z',
          key_id: 'key_red',
          key_name: 'red one',
          team: 'red',
          runs: { succeeded: 1, timed_out: 0, ...none },
          refused: { quota_exceeded: 8, ...unrefused },
          wall_ms: 0,
          cpu_ms: 1000,
          queue_ms: 3,
          memory_mb_seconds: 0,
          bytes_in: 0,
          bytes_out: 0,
          images: 4,
        },
      ],
      totals: {
        runs: { succeeded: 2, timed_out: 1, ...none },
        refused: { quota_exceeded: 8, ...unrefused },
        wall_ms: 20,
        cpu_ms: 1110,
        queue_ms: 3,
        memory_mb_seconds: 5.12,
        bytes_in: 0,
        bytes_out: 0,
        images: 4,
      },
    });
  });

  it.each([
    ['hour', ['2020-01-31T22:00:00Z', '2020-01-31T23:00:00Z']],
    ['day', ['2020-01-31']],
    ['month', ['2020-01']],
  ])('adds up by %s', async (grouping, periods) => {
    const answer = await usage(`?from=2020-01-01&to=2020-02-01&group_by=${grouping}`);
    expect(answer.data.map(({ period }) => period)).toEqual(periods);
    expect(answer.totals.cpu_ms).toBe(111);
  });

  it('takes from, leaves out to, and floors both to the hour', async () => {
    const range = 'from=2020-01-31T23:59:59.9Z&to=2020-02-01T00:59:59Z&group_by=hour';
    expect(await usage(`?${range}`)).toMatchObject({
      from: '2020-01-31T23:00:00Z',
      to: '2020-02-01T00:00:00Z',
      totals: { cpu_ms: 110 },
    });
  });

  it('reads times of any offset', async () => {
    const answer = await usage(
      '?from=2020-02-01T04:30:00%2B05:30&to=2020-01-31t19:00:00-05:00&group_by=hour',
    );
    expect([answer.from, answer.to]).toEqual(['2020-01-31T23:00:00Z', '2020-02-01T00:00:00Z']);
  });

  it('is, by default, that of the last 30 days by day, the hour that is running included', async () => {
    const run = await service.execute({ code: 'print(1)', memory_mb: 100 });
    const answer = await usage('');
    expect(Date.parse(answer.to)).toBeGreaterThan(Date.now());
    expect(Date.parse(answer.to) - Date.now()).toBeLessThanOrEqual(HOUR_MS);
    expect(Date.parse(answer.to) - Date.parse(answer.from)).toBe(30 * 24 * HOUR_MS);
    expect(answer.group_by).toBe('day');
    expect(answer.data).toMatchObject([
      {
        period: run.finished_at?.slice(0, 10),
        key_name: 'admin',
        runs: { succeeded: 1, failed: 0 },
        wall_ms: run.usage.wall_ms,
        cpu_ms: run.usage.cpu_ms,
        memory_mb_seconds: (100 * (run.usage.wall_ms ?? 0)) / 1000,
        bytes_in: 'print(1){}'.length,
        bytes_out: 2,
      },
    ]);
    expect(Date.parse((await usage('?to=2020-03-01')).from)).toBe(Date.parse('2020-01-31T00:00:00Z'));
  });

  it('has no rows, and totals of nothing, where there is no usage', async () => {
    const { data, totals } = await usage('?from=2019-01-01&to=2020-01-01');
    expect(data).toEqual([]);
    expect(totals).toMatchObject({ runs: { succeeded: 0 }, refused: { rate_limited: 0 }, cpu_ms: 0 });
  });

  it('is answered to HEAD without a body', async () => {
    const answer = await service.send('/v1/usage', {
      method: 'HEAD',
      headers: { 'X-API-Key': service.adminKey },
    });
    expect([answer.status, answer.text]).toEqual([200, '']);
  });
});

describe('whose usage', () => {
  const YEAR = '?from=2020-01-01&to=2021-01-01&group_by=month';

  it('is everybody’s for an admin key, that of CODECELL_ADMIN_KEY included', async () => {
    const answer = await usage(YEAR);
    expect(brief(answer)).toEqual([
      ['2020-01', 'key_blue', 111],
      ['2020-02', 'key_red', 11_000],
      ['2020-03', 'key_environment', 100_000],
    ]);
    expect(answer.data.at(-1)).toMatchObject({ key_name: 'CODECELL_ADMIN_KEY', team: null });
  });

  it('is its own for any other key', async () => {
    for (const query of [
      YEAR,
      `${YEAR}&key_id=key_red`,
      `${YEAR}&team=red`,
      `${YEAR}&team=red&key_id=key_red`,
    ]) {
      const answer = await usage(query, secrets.red);
      expect(brief(answer)).toEqual([['2020-02', 'key_red', 11_000]]);
      expect(answer.totals.cpu_ms).toBe(11_000);
    }
  });

  it('is chosen by key and by team', async () => {
    expect(brief(await usage(`${YEAR}&key_id=key_blue`))).toEqual([['2020-01', 'key_blue', 111]]);
    expect(brief(await usage(`${YEAR}&team=red`))).toEqual([['2020-02', 'key_red', 11_000]]);
    expect(brief(await usage(`${YEAR}&team=red&key_id=key_blue`))).toEqual([]);
    expect(brief(await usage(`${YEAR}&key_id=key_unknown`))).toEqual([]);
  });
});

describe('many rows', () => {
  it('are read in parts that fit together', async () => {
    const hour = at('2018-01-01T00:00:00');
    const db = await openDatabase(service.dataDir);
    const runs = Array.from({ length: 2500 }, (_, index) =>
      charge({
        key_id: `key_${String(index % 900).padStart(4, '0')}`,
        ended_at: hour + (index % 3) * HOUR_MS,
        cpu_ms: 1,
      }),
    );
    await new UsageStore(db).add(runs, []);
    await db.destroy();
    const answer = await usage('?from=2018-01-01&to=2018-01-02&group_by=hour');
    expect(answer.totals).toMatchObject({ runs: { succeeded: 2500 }, cpu_ms: 2500 });
    const names = answer.data.map(({ period, key_id }) => period + key_id);
    expect(names).toEqual([...names].sort());
    expect(new Set(names).size).toBe(names.length);
    const byDay = await usage('?from=2018-01-01&to=2018-01-02');
    expect(byDay.data).toHaveLength(900);
    expect(byDay.totals).toEqual(answer.totals);
  });
});
