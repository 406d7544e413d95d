/**
 * The disk is full, to a real service: its files may grow no further or, where the test may mount, their file system
 * has no room. What was answered stays charged, nothing else is, and all is well again once there is room.
 */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Problem } from '../../src/http/problems.ts';
import type { Run } from '../../src/runs/run.ts';
import type { UsageSums } from '../../src/usage/report.ts';
import { CodecellProcess } from '../support/process.ts';
import { until } from '../support/until.ts';

const ADMIN_KEY = 'an-admin-key-of-more-than-32-characters';

/** A folder on a disk that can be filled. */
interface Disk {
  dataDir: string;
  fill(service: CodecellProcess): void;
  empty(service: CodecellProcess): void;
}

/** The largest size of a file, for the service alone: it works for any user. */
function diskOfLimitedFiles(): Disk {
  const dataDir = mkdtempSync(join(tmpdir(), 'codecell-test-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const limit = (service: CodecellProcess, bytes: number | 'unlimited') =>
    execFileSync('prlimit', ['--pid', `${service.child.pid}`, `--fsize=${bytes}:unlimited`]);
  return {
    dataDir,
    fill: (service) => limit(service, statSync(join(dataDir, 'codecell.db-wal')).size),
    empty: (service) => limit(service, 'unlimited'),
  };
}

function smallFileSystem(): Disk {
  const dataDir = mkdtempSync(join(tmpdir(), 'codecell-test-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'tmpfs', dataDir]);
  onTestFinished(() => {
    execFileSync('umount', [dataDir]);
    rmSync(dataDir, { recursive: true });
  });
  const filler = join(dataDir, 'filler');
  return {
    dataDir,
    fill: () => {
      expect(() => writeFileSync(filler, Buffer.alloc(2 ** 20))).toThrow('ENOSPC');
    },
    empty: () => rmSync(filler),
  };
}

const mayMount = process.getuid?.() === 0;

describe.each([
  { name: 'files may grow no further', makeDisk: diskOfLimitedFiles, possible: true },
  { name: 'the file system is full', makeDisk: smallFileSystem, possible: mayMount },
])('when $name', ({ makeDisk, possible }) => {
  it.runIf(possible)('loses nothing that was answered, says 5xx and 503, and recovers', async () => {
    const disk = makeDisk();
    const environment = {
      CODECELL_PORT: '0',
      CODECELL_DATA_DIR: disk.dataDir,
      CODECELL_ADMIN_KEY: ADMIN_KEY,
    };
    const service = new CodecellProcess(['serve'], { environment });
    const url = await service.url();
    onTestFinished(() => void service.child.kill('SIGKILL'));
    const headers = { 'X-API-Key': ADMIN_KEY, 'Content-Type': 'application/json' };
    const answered: Run[] = [];
    const refusals: Problem[] = [];
    const execute = async (): Promise<number> => {
      const body = JSON.stringify({ code: 'print(1)' });
      const response = await fetch(`${url}/v1/execute`, { method: 'POST', headers, body });
      if (response.ok) answered.push((await response.json()) as Run);
      else refusals.push((await response.json()) as Problem);
      return response.status;
    };
    const status = async (path: string) => (await fetch(url + path, { headers })).status;
    const usage = async () => {
      const { totals } = (await (await fetch(`${url}/v1/usage`, { headers })).json()) as {
        totals: UsageSums;
      };
      return { succeeded: totals.runs.succeeded, wallMs: totals.wall_ms, cpuMs: totals.cpu_ms };
    };
    const expectExactUsage = async () => {
      const sum = (name: 'wall_ms' | 'cpu_ms') =>
        answered.reduce((all, run) => all + (run.usage[name] ?? 0), 0);
      expect(await usage()).toEqual({
        succeeded: answered.length,
        wallMs: sum('wall_ms'),
        cpuMs: sum('cpu_ms'),
      });
    };

    await Promise.all([execute(), execute(), execute()]);
    expect(answered).toHaveLength(3);

    disk.fill(service);
    await until(async () => (await execute()) !== 200);
    for (const problem of [...refusals]) {
      expect([problem.status, problem.code]).toEqual([500, 'internal']);
      expect(problem.detail).toContain('Nothing was charged');
    }
    expect(await status('/readyz')).toBe(503);
    expect([await status('/healthz'), await status('/v1/runtime')]).toEqual([200, 200]);
    await Promise.all([execute(), execute(), execute()]);
    await expectExactUsage();

    disk.empty(service);
    await until(async () => (await status('/readyz')) === 200);
    expect(await execute()).toBe(200);
    await expectExactUsage();

    service.child.kill('SIGKILL');
    await service.ended();
    const database = new DatabaseSync(join(disk.dataDir, 'codecell.db'));
    expect(database.prepare('pragma integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
    const ids = database.prepare('select id from usage_runs order by id').all();
    expect(ids.map(({ id }) => id)).toEqual(answered.map(({ id }) => id).sort());
    database.close();
  });
});
