/** Jobs outlive the service: killed, told to end, or bereft of its sandbox. */

import { afterEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { ENDLESS } from '../support/jobs-api.ts';
import { runCodecell } from '../support/process.ts';
import { processTree } from '../support/processes.ts';
import { ServedFolder } from '../support/serve.ts';
import { until } from '../support/until.ts';

let served: ServedFolder;
afterEach(() => served.remove());

interface Totals {
  totals: { runs: Record<string, number>; cpu_ms: number };
}

const usage = async () => (await served.get('/v1/usage')) as Totals;

describe('a service that is killed', { timeout: 120_000 }, () => {
  it('right after 202 runs the jobs at its next start, each once', async () => {
    served = await ServedFolder.start({ CONCURRENCY: '1' });
    const running = await served.jobs.submit(`${ENDLESS}`, { timeout_ms: 1000 });
    await served.jobs.running(running);
    const waiting = [await served.jobs.submit('print(1)'), await served.jobs.submit('print(2)')];
    await served.kill();
    await served.restart();
    expect((await served.jobs.list()).data.map(({ id }) => id).sort()).toEqual([running, ...waiting].sort());
    expect(await served.jobs.ended(waiting[0]!)).toMatchObject({ status: 'succeeded', stdout: '1\n' });
    expect(await served.jobs.ended(waiting[1]!)).toMatchObject({ status: 'succeeded', stdout: '2\n' });
    expect(await served.jobs.ended(running)).toMatchObject({ status: 'timed_out' });
    expect((await usage()).totals.runs).toMatchObject({ succeeded: 2, timed_out: 1, cancelled: 0 });
  });

  it('three times while a job runs has lost it, which is not charged', async () => {
    served = await ServedFolder.start({ CONCURRENCY: '1' });
    const id = await served.jobs.submit(ENDLESS);
    for (let time = 0; time < 3; time++) {
      await served.jobs.running(id);
      await served.kill();
      await served.restart();
      // Until its lease has run out, it is still the job of the process that died.
      await until(() => served.process.stderr.includes('were taken over'));
    }
    const run = await served.jobs.ended(id);
    expect(run).toMatchObject({
      status: 'lost',
      exit_code: null,
      error: { type: 'Lost', hint: expect.stringContaining('send it again') },
      usage: { wall_ms: 0, cpu_ms: 0 },
    });
    expect(Object.values((await usage()).totals.runs).every((count) => count === 0)).toBe(true);
    expect(await served.jobs.cancel(id)).toEqual(run);
  });

  it('after a cancellation was asked for does not run the job again', async () => {
    served = await ServedFolder.start({ CONCURRENCY: '1' });
    const id = await served.jobs.submit(ENDLESS);
    await served.jobs.running(id);
    // As another process asks for it, at the moment before the service dies.
    await served.kill();
    const db = await openDatabase(served.dataDir);
    await db.updateTable('jobs').set({ cancel_requested: 1 }).where('id', '=', id).execute();
    await db.destroy();
    await served.restart();
    expect((await served.jobs.ended(id)).status).toBe('cancelled');
  });
});

describe('a job whose program cannot be read', () => {
  it('is lost after three attempts, and does not stay running', async () => {
    served = await ServedFolder.start({ CONCURRENCY: '1' });
    const first = await served.jobs.submit(ENDLESS);
    await served.jobs.running(first);
    const second = await served.jobs.submit('1');
    const db = await openDatabase(served.dataDir);
    await db.updateTable('job_pieces').set({ part: 99 }).where('job_id', '=', second).execute();
    await db.destroy();
    await served.jobs.cancel(first);
    expect((await served.jobs.ended(second)).status).toBe('lost');
    expect((await served.jobs.ended(await served.jobs.submit('2'))).status).toBe('succeeded');
  });
});

describe('codecell jobs cancel', () => {
  it('ends a job whose service was killed, once its lease has run out', { timeout: 60_000 }, async () => {
    served = await ServedFolder.start({ CONCURRENCY: '1' });
    const id = await served.jobs.submit(ENDLESS);
    await served.jobs.running(id);
    await served.kill();
    const { exit, stdout } = await runCodecell(['jobs', 'cancel', id], { environment: served.environment });
    expect([exit, stdout]).toEqual([0, expect.stringContaining('cancelled')]);
  });
});

describe('a sandbox that is killed', { timeout: 120_000 }, () => {
  it('runs the job again, unseen, and has lost it at the third time', async () => {
    served = await ServedFolder.start({ CONCURRENCY: '1' });
    const service = served.process.child.pid!;
    const killSandbox = () => {
      for (const process_ of processTree(service).filter((each) => each !== service)) {
        try {
          process.kill(process_, 'SIGKILL');
        } catch {
          // It has gone with its launcher.
        }
      }
    };
    const spared = await served.jobs.submit('import time; time.sleep(1); print("again")');
    await served.jobs.running(spared);
    await new Promise((resolve) => setTimeout(resolve, 300));
    killSandbox();
    expect(await served.jobs.ended(spared)).toMatchObject({ status: 'succeeded', stdout: 'again\n' });

    const doomed = await served.jobs.submit(ENDLESS);
    for (let time = 0; time < 3; time++) {
      // Once a process is ready it is given the program, and a loss before that would be none.
      await until(async () => (await fetch(`${served.url}/readyz`)).status === 200);
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect((await served.jobs.show(doomed)).status).toBe('running');
      killSandbox();
      await until(async () => (await fetch(`${served.url}/readyz`)).status !== 200);
    }
    await served.jobs.ended(doomed);
    expect(await served.jobs.show(doomed)).toMatchObject({ status: 'lost', error: { type: 'Lost' } });
    const { totals } = await usage();
    expect(totals.runs).toMatchObject({ succeeded: 1, cancelled: 0, crashed: 0 });
    expect(await served.jobs.ended(await served.jobs.submit('print(1)'))).toMatchObject({ stdout: '1\n' });
  });
});

describe('SIGTERM', () => {
  it('lets running jobs finish, answers who waits, and leaves queued ones to the next start', async () => {
    served = await ServedFolder.start({ CONCURRENCY: '1' });
    const running = await served.jobs.submit('import time; time.sleep(1.5); print("finished")');
    await served.jobs.running(running);
    const queued = await served.jobs.submit('print("later")');
    const wait = served.jobs.show(queued, 30);
    served.process.child.kill('SIGTERM');
    expect((await wait).status).toBe('queued');
    const refused = await served.jobs.call('POST', '', { body: { code: '' } });
    expect([refused.status, JSON.parse(refused.text).code]).toEqual([503, 'shutting_down']);
    expect((await served.jobs.show(queued, 30)).status).toBe('queued');
    expect(await served.process.ended()).toBe(0);
    await served.restart();
    expect(await served.jobs.show(running)).toMatchObject({ status: 'succeeded', stdout: 'finished\n' });
    expect(await served.jobs.ended(queued)).toMatchObject({ status: 'succeeded', stdout: 'later\n' });
    expect((await usage()).totals.runs).toMatchObject({ succeeded: 2 });
  });
});
