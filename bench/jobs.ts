/** `codecell bench jobs`: jobs end to end, how soon they are picked up, how soon a wait is answered, a backlog. */

import { BenchedService } from './service.ts';
import { percentile } from './statistics.ts';

const SINGLE_JOBS = 200;
const BACKLOG = 10_000;
const SENT_AT_ONCE = 50;

interface EndedRun {
  status: string;
  created_at: string;
  started_at: string;
  finished_at: string;
}

/** Measures, and prints a table. */
export async function benchJobs(): Promise<void> {
  const service = await BenchedService.start();
  try {
    await one(service);
    await backlog(service);
  } finally {
    await service.stop();
  }
}

/** One job after the other on an idle service. */
async function one(service: BenchedService): Promise<void> {
  const accepted: number[] = [];
  const pickedUp: number[] = [];
  const woken: number[] = [];
  for (let count = 0; count < SINGLE_JOBS; count++) {
    const startMs = performance.now();
    const { id } = await service.call<{ id: string }>('POST', '/v1/jobs', {
      code: 'import time; time.sleep(0.02)',
    });
    accepted.push(performance.now() - startMs);
    const run = await service.call<EndedRun>('GET', `/v1/jobs/${id}?wait=30`);
    const answeredMs = Date.now();
    if (run.status !== 'succeeded') throw new Error(`a job of the benchmark ${run.status}`);
    pickedUp.push(Date.parse(run.started_at) - Date.parse(run.created_at));
    woken.push(answeredMs - Date.parse(run.finished_at));
  }
  print(`${SINGLE_JOBS} jobs, one after the other      p50 ms    p99 ms`);
  print(row('POST until 202, on the disk', accepted));
  print(row('accepted until it runs', pickedUp));
  print(row('its end until the wait is answered', woken));
}

/** All sent first, then counted until none is left. */
async function backlog(service: BenchedService): Promise<void> {
  const startMs = performance.now();
  let left = BACKLOG;
  const senders = Array.from({ length: SENT_AT_ONCE }, async () => {
    while (left-- > 0) await service.call('POST', '/v1/jobs', { code: 'print(1)' });
  });
  await Promise.all(senders);
  const sentMs = performance.now() - startMs;
  const execute: number[] = [];
  const waiting = async () =>
    (await service.call<{ data: unknown[] }>('GET', '/v1/jobs?status=queued&limit=1')).data.length;
  while ((await waiting()) > 0) {
    execute.push(await service.execute('print(1)'));
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const elapsedMs = performance.now() - startMs;
  print(`\n${BACKLOG} jobs, ${SENT_AT_ONCE} sent at a time`);
  print(
    `accepted in ${(sentMs / 1000).toFixed(1)} s: ${((BACKLOG / sentMs) * 1000).toFixed(0)} a second, while they run`,
  );
  print(`ended in ${(elapsedMs / 1000).toFixed(1)} s: ${((BACKLOG / elapsedMs) * 1000).toFixed(0)} a second`);
  if (execute.length > 0) print(row('POST /v1/execute meanwhile', execute));
}

function row(name: string, samples: number[]): string {
  const columns = [0.5, 0.99].map((share) => percentile(samples, share).toFixed(1).padStart(8));
  return `${name.padEnd(36)} ${columns.join('  ')}`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
