/**
 * SIGKILL at random moments, at starts as well, while jobs are sent, run, cancelled and read. Nothing that was accepted
 * is lost, nothing runs twice at once, no ended job changes, none stays queued or running, each is charged once.
 */

import { afterEach, expect, it } from 'vitest';
import type { Run } from '../../src/runs/run.ts';
import { isAlive, processTree } from '../support/processes.ts';
import { ServedFolder } from '../support/serve.ts';
import { until } from '../support/until.ts';

/** A hundred take eight minutes. */
const KILLS = Number(process.env.CODECELL_TEST_KILLS ?? 12);

let served: ServedFolder;
afterEach(() => served.remove());

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** What was accepted, by id, and what it has to print. */
const accepted = new Map<string, string>();
/** Jobs that were seen to have ended, as they were answered. */
const seen = new Map<string, string>();

/** Sends, cancels and reads jobs until the service is gone. */
async function use(): Promise<void> {
  const { jobs } = served;
  for (let count = 0; ; count++) {
    const text = `${count} ${Math.random()}`;
    const sleep = count % 4 === 0 ? 'import time; time.sleep(0.4)\n' : '';
    const answer = await jobs.call('POST', '', { body: { code: `${sleep}print("${text}", end="")` } });
    if (answer.status === 202) accepted.set((JSON.parse(answer.text) as Run).id, text);
    const ids = [...accepted.keys()];
    if (count % 5 === 0) await remember('DELETE', ids.at(-1)!);
    await remember('GET', ids[Math.floor(Math.random() * ids.length)]!);
    await pause(20);
  }
}

async function remember(method: string, id: string): Promise<void> {
  const answer = await served.jobs.call(method, `/${id}`);
  expect([id, answer.status]).toEqual([id, 200]);
  if ((JSON.parse(answer.text) as Run).finished_at === null) return;
  if (seen.has(id)) expect(answer.text).toBe(seen.get(id));
  seen.set(id, answer.text);
}

/** In one life of the service, a job starts again only after its run was lost. */
function expectNoneTwiceAtOnce(log: string): void {
  const running = new Set<string>();
  for (const line of log.split('\n')) {
    if (!line.endsWith('}')) continue;
    const { message, run_id: id } = JSON.parse(line) as { message: string; run_id: string };
    expect(message).not.toContain('came too late');
    if (message === 'a job starts') {
      expect(running.has(id)).toBe(false);
      running.add(id);
    }
    if (message === 'a job has ended' || message === 'the run of a job was lost') running.delete(id);
  }
}

it('loses, repeats and changes no accepted job, whenever it is killed', {
  timeout: 60_000 + 20_000 * KILLS,
}, async () => {
  accepted.clear();
  seen.clear();
  served = await ServedFolder.start({ CONCURRENCY: '2', LOG_LEVEL: 'debug' });
  for (let kill = 0; kill < KILLS; kill++) {
    const using = use().catch((error: Error) => {
      if (!/fetch failed|terminated/.test(error.message)) throw error;
    });
    await pause(Math.random() * 2000);
    const processes = processTree(served.process.child.pid!);
    await served.kill();
    await using;
    await until(() => processes.every((each) => !isAlive(each)));
    expectNoneTwiceAtOnce(served.process.stderr);
    if (kill % 4 === 3) {
      // One that does not get as far as to listen.
      served.begin();
      await pause(Math.random() * 1000);
      await served.kill();
    }
    await served.restart();
  }
  expect(accepted.size).toBeGreaterThan(KILLS);
  const counts: Record<string, number> = {};
  for (const [id, text] of accepted) {
    const run = await served.jobs.ended(id);
    counts[run.status] = (counts[run.status] ?? 0) + 1;
    expect(['succeeded', 'cancelled', 'lost']).toContain(run.status);
    if (run.status === 'succeeded') expect(run.stdout).toBe(text);
    if (seen.has(id)) expect(run).toEqual(JSON.parse(seen.get(id)!));
  }
  // Some may have been accepted whose callers were cut off before they knew. They end as well, and count.
  for (const status of ['queued', 'running']) {
    await until(async () => (await served.jobs.list(`?status=${status}`)).data.length === 0);
  }
  const all: Record<string, number> = {};
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await served.jobs.list(`?limit=100${cursor === '' ? '' : `&cursor=${cursor}`}`);
    for (const { status } of page.data) all[status] = (all[status] ?? 0) + 1;
    cursor = page.next_cursor;
  }
  const { totals } = (await served.get('/v1/usage')) as { totals: { runs: Record<string, number> } };
  const { lost: _, ...charged } = all;
  expect(totals.runs).toMatchObject(charged);
  console.log(`${KILLS} kills, ${accepted.size} accepted jobs`, counts);
});
