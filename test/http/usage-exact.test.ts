/**
 * What is charged is what was answered. Thousands of runs of several keys, of every kind that is quick, through a
 * service that is killed in the middle: everything that was answered is there, to the last millisecond, and what is
 * there besides can only be of requests whose answer never arrived.
 */

import { Agent, request as httpRequest } from 'node:http';
import { expect, it } from 'vitest';
import type { Problem } from '../../src/http/problems.ts';
import type { Run } from '../../src/runs/run.ts';
import { openDatabase } from '../../src/store/database.ts';
import { CHARGED_STATUSES, USAGE_NUMBERS, type UsageRow, type UsageSums } from '../../src/usage/report.ts';
import { withFolder } from '../support/folder.ts';
import { CodecellProcess, runCodecell } from '../support/process.ts';
import { addKey } from '../support/service.ts';

const KEYS = 4;
const RUNS_BEFORE = 800;
const RUNS_AFTER = 600;
/** Requests that are on their way at the same time, for each key. */
const CALLERS = 3;

/** What is sent, and what can come of it; the first is most of it. */
const PROGRAMS: Program[] = [
  { code: '1' },
  { code: 'print("ü" * 10)', stdin: 'ä', inputs: { a: [1.0, 'ß'] } },
  { code: '1/0' },
  { code: 'import os; os._exit(3)' },
  { code: 'import os, signal; signal.raise_signal(signal.SIGSEGV)' },
  { code: 'bytearray(10**12)', memory_mb: 64 },
  { code: 'while True: pass', timeout_ms: 50 },
  { code: 'import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()' },
];

interface Program {
  code: string;
  stdin?: string;
  inputs?: object;
  timeout_ms?: number;
  memory_mb?: number;
}

interface Sent {
  keyId: string;
  secret: string;
  bytesIn: number;
}

/** What arrived: runs by their ids, and codes of refusals. And how many answers did not arrive. */
class Ledger {
  readonly runs = new Map<string, { sent: Sent; run: Run }>();
  readonly refusals: string[] = [];
  unanswered = 0;
}

const agent = new Agent({ keepAlive: true });

/** One request. Its caller hangs up after `patienceMs`; null when no answer came. */
function execute(
  url: string,
  secret: string,
  body: string,
  patienceMs: number | null,
): Promise<Run | Problem | null> {
  return new Promise((resolve) => {
    const headers = { 'X-API-Key': secret, 'Content-Type': 'application/json' };
    const outgoing = httpRequest(`${url}/v1/execute`, { method: 'POST', headers, agent });
    if (patienceMs !== null) setTimeout(() => outgoing.destroy(), patienceMs);
    outgoing.on('error', () => resolve(null));
    outgoing.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('error', () => resolve(null));
      response.on('end', () => resolve(JSON.parse(text) as Run | Problem));
    });
    outgoing.end(body);
  });
}

/** Every key sends `count` requests; `stopped` ends that early. */
async function sendAll(url: string, keys: Sent[], count: number, ledger: Ledger, stopped: () => boolean) {
  const caller = async (key: Sent, first: number): Promise<void> => {
    for (let index = first; index < count / KEYS && !stopped(); index += CALLERS) {
      const kind = index % 5 === 4 ? (index / 5) % PROGRAMS.length : 0;
      const program = PROGRAMS[Math.floor(kind)]!;
      const hangsUp = index % 50 === 49;
      const body = hangsUp ? { code: 'while True: pass', timeout_ms: 500 } : program;
      // Some while they wait for a slot, and some while they run, however busy the machine is.
      const patienceMs = hangsUp ? 15 * 2 ** (Math.floor(index / 50) % 6) : null;
      const answer = await execute(url, key.secret, JSON.stringify(body), patienceMs);
      if (answer === null) ledger.unanswered++;
      else if ('code' in answer) ledger.refusals.push(answer.code);
      else ledger.runs.set(answer.id, { sent: { ...key, bytesIn: bytesIn(body) }, run: answer });
    }
  };
  await Promise.all(keys.flatMap((key) => Array.from({ length: CALLERS }, (_, first) => caller(key, first))));
}

function bytesIn({ code, stdin = '', inputs = {} }: Program): number {
  return Buffer.byteLength(code + stdin + JSON.stringify(inputs));
}

/** What the contract says that a run is charged with, from its answer alone. */
function expectedCharge({ sent, run }: { sent: Sent; run: Run }) {
  const { usage, limits, stdout, stderr, value, images } = run;
  return {
    key_id: sent.keyId,
    status: run.status,
    ended_at: Date.parse(run.finished_at ?? ''),
    queue_ms: usage.queue_ms,
    wall_ms: usage.wall_ms,
    cpu_ms: usage.cpu_ms,
    memory_mb_ms: limits.memory_mb * (usage.wall_ms ?? 0),
    bytes_in: sent.bytesIn,
    bytes_out:
      Buffer.byteLength(stdout + stderr + (value?.text ?? '') + (value?.html ?? '')) +
      images.reduce((sum, { data }) => sum + Buffer.from(data, 'base64').length, 0),
    images: images.length,
  };
}

it(
  'adds up to the answers that were received, also when the service is killed in the middle',
  () =>
    withFolder(async (folder) => {
      const environment = { CODECELL_PORT: '0', CODECELL_DATA_DIR: folder, CODECELL_LOG_LEVEL: 'error' };
      const serve = () => new CodecellProcess(['serve'], { environment });
      const ledger = new Ledger();

      const first = serve();
      const firstUrl = await first.url();
      const adminSecret = /ck_[0-9A-Za-z]{36}/.exec(first.stdout)?.[0] ?? '';
      const keys: Sent[] = [];
      for (let index = 0; index < KEYS; index++) {
        const id = `key_${index}`;
        // One key is refused what goes beyond one request at a time.
        const limits = index === 0 ? { concurrency: 1 } : {};
        keys.push({ keyId: id, secret: await addKey(folder, { id, name: id, limits }), bytesIn: 0 });
      }
      let killed = false;
      const sending = sendAll(firstUrl, keys, RUNS_BEFORE * 2, ledger, () => killed);
      while (ledger.runs.size < RUNS_BEFORE) await new Promise((resolve) => setImmediate(resolve));
      first.child.kill('SIGKILL');
      killed = true;
      await sending;
      await first.ended();

      const second = serve();
      const url = await second.url();
      await sendAll(url, keys, RUNS_AFTER, ledger, () => false);

      // It ends only once runs whose callers have gone are charged as well.
      second.child.kill('SIGTERM');
      expect(await second.ended()).toBe(0);

      const third = serve();
      const headers = { 'X-API-Key': adminSecret };
      const answer = await fetch(`${await third.url()}/v1/usage?group_by=hour`, { headers });
      const usage = (await answer.json()) as { data: UsageRow[]; totals: UsageSums };
      third.child.kill('SIGTERM');
      await third.ended();

      // Each answer has its charge, and nothing else has one but what was not answered.
      const db = await openDatabase(folder);
      const charges = await db.selectFrom('usage_runs').selectAll().execute();
      await db.destroy();
      const byId = new Map(charges.map((charge) => [charge.id, charge]));
      for (const [id, received] of ledger.runs) {
        expect(byId.get(id)).toEqual({ id, ...expectedCharge(received) });
      }
      const besides = charges.filter(({ id }) => !ledger.runs.has(id));
      expect(besides.length).toBeLessThanOrEqual(ledger.unanswered);
      expect(new Set(besides.filter(({ status }) => status === 'cancelled')).size).toBeGreaterThan(0);
      const statuses = new Set(charges.map(({ status }) => status));
      for (const status of ['succeeded', 'failed', 'timed_out', 'memory_exceeded', 'crashed', 'cancelled']) {
        expect(statuses).toContain(status);
      }

      // Refusals are counted, and nothing else went wrong.
      const { concurrency_limited: refused, ...others } = usage.totals.refused;
      expect(new Set(ledger.refusals)).toEqual(new Set(['concurrency_limited']));
      expect(refused).toBeGreaterThanOrEqual(ledger.refusals.length);
      expect(refused).toBeLessThanOrEqual(ledger.refusals.length + ledger.unanswered);
      expect(Object.values(others)).toEqual([0, 0, 0, 0]);

      // The hours add up to the charges, by key and in all.
      for (const { keyId } of keys) {
        const rows = usage.data.filter(({ key_id }) => key_id === keyId);
        expect(added(rows)).toEqual(expectedSums(charges.filter(({ key_id }) => key_id === keyId)));
      }
      expect(added([usage.totals])).toEqual(expectedSums(charges));
      expect(added(usage.data)).toEqual(added([usage.totals]));

      // And so says the command, without a service.
      const { stdout } = await runCodecell(['usage', '--json', '--group-by', 'month'], { environment });
      expect((JSON.parse(stdout) as { totals: UsageSums }).totals).toEqual(usage.totals);
    }),
  120_000,
);

function added(rows: UsageSums[]) {
  const sum = (of: (row: UsageSums) => number) => rows.reduce((total, row) => total + of(row), 0);
  return {
    runs: Object.fromEntries(CHARGED_STATUSES.map((status) => [status, sum(({ runs }) => runs[status])])),
    ...Object.fromEntries(USAGE_NUMBERS.map((name) => [name, Math.round(1000 * sum((row) => row[name]))])),
  };
}

function expectedSums(charges: { [name: string]: unknown; status: string }[]) {
  const sum = (name: string) => charges.reduce((total, charge) => total + Number(charge[name]), 0);
  return {
    runs: Object.fromEntries(
      CHARGED_STATUSES.map((status) => [status, charges.filter((charge) => charge.status === status).length]),
    ),
    ...Object.fromEntries(
      USAGE_NUMBERS.map((name) => [
        name,
        name === 'memory_mb_seconds' ? sum('memory_mb_ms') : 1000 * sum(name),
      ]),
    ),
  };
}
