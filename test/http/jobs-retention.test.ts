/** How long the results of jobs are kept. */

import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/shared/clock.ts';
import { openDatabase } from '../../src/store/database.ts';
import { ENDLESS, JobsApi } from '../support/jobs-api.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
afterEach(() => service.stop());

/** A MiB of each stream and two of the value: 4 MB of JSON. */
const LARGE = 'import sys\nprint("x" * 2**20); print("y" * 2**20, file=sys.stderr)\n["z" * 900_000]';

async function piecesOf(dataDir: string): Promise<number> {
  const db = await openDatabase(dataDir);
  const { count } = await db
    .selectFrom('job_pieces')
    .select((select) => select.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  await db.destroy();
  return count;
}

describe('an ended job', () => {
  it('is gone after CODECELL_JOB_RETENTION_HOURS, with all that belongs to it, and no sooner', async () => {
    let hours = -0.2;
    const clock: Clock = {
      now: () => systemClock.now() + hours * 3_600_000,
      monotonicMs: () => systemClock.monotonicMs(),
    };
    service = await startTestService({ settings: { JOB_RETENTION_HOURS: '2', CONCURRENCY: '1' }, clock });
    const jobs = new JobsApi(service.url, service.adminKey);
    const running = await jobs.submit(ENDLESS);
    await jobs.running(running);
    // It never runs: of a run, the sandbox says when it ended, which knows the true time alone.
    const older = await jobs.submit('1');
    for (const id of [older, running]) await jobs.cancel(id);
    hours = 0;
    const ids = [await jobs.submit(LARGE), await jobs.submit('print(1)')];
    for (const id of ids) await jobs.ended(id);
    hours = 1.9;
    await until(async () => (await jobs.call('GET', `/${older}`)).status === 404);
    for (const id of ids) expect((await jobs.show(id)).status).toBe('succeeded');
    hours = 2.1;
    await until(async () => (await jobs.call('GET', `/${ids[1]}`)).status === 404);
    expect((await jobs.call('GET', `/${ids[0]}`)).status).toBe(404);
    expect((await jobs.list()).data).toEqual([]);
    await until(async () => (await piecesOf(service.dataDir)) === 0);
  });

  it('goes first, the oldest, when there are CODECELL_JOBS_MAX', async () => {
    service = await startTestService({ settings: { JOBS_MAX: '3', CONCURRENCY: '1' } });
    const jobs = new JobsApi(service.url, service.adminKey);
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) {
      ids.unshift(await jobs.submit('1'));
      await jobs.ended(ids[0]!);
    }
    expect((await jobs.list()).data.map(({ id }) => id)).toEqual(ids.slice(0, 3));
    expect((await jobs.call('GET', `/${ids[4]}`)).status).toBe(404);
    await until(async () => (await piecesOf(service.dataDir)) === 3);
  });

  it('goes first, the oldest, when results take more than CODECELL_RESULTS_MB_MAX', async () => {
    service = await startTestService({ settings: { RESULTS_MB_MAX: '64', CONCURRENCY: '1' } });
    const jobs = new JobsApi(service.url, service.adminKey);
    const ids: string[] = [];
    for (let count = 0; count < 25; count++) ids.unshift(await jobs.submit(LARGE));
    await jobs.ended(ids[0]!);
    const kept = (await jobs.list('?limit=100')).data.map(({ id }) => id);
    expect(kept).toEqual(ids.slice(0, kept.length));
    expect(kept.length).toBeGreaterThan(10);
    expect(kept.length).toBeLessThan(23);
    expect((await jobs.show(kept.at(-1)!)).stdout).toHaveLength(2 ** 20);
  });
});
