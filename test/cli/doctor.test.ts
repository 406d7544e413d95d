/** `codecell doctor`, as root and as an ordinary user. */

import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BubblewrapLauncher, isReachableByOthers } from '../../src/sandbox/launchers/bubblewrap.ts';
import { PROJECT_FOLDER, readRuntime } from '../../src/sandbox/runtime.ts';
import { selfTest } from '../../src/sandbox/self-test.ts';
import { startPool } from '../support/pool.ts';
import { CodecellProcess } from '../support/process.ts';

const asRoot = process.getuid?.() === 0;
const OTHER_USER = 61_234;

test('says that all is well, in a table without colours when nobody looks', async () => {
  const doctor = new CodecellProcess(['doctor']);
  expect(await doctor.ended(), doctor.stdout + doctor.stderr).toBe(0);
  expect(doctor.stdout).toMatch(/ok +bubblewrap +bubblewrap \d/);
  expect(doctor.stdout).toMatch(/held +seccomp +no socket/);
  expect(doctor.stdout).toMatch(/All is well\.\n$/);
  expect(doctor.stdout).not.toContain('\u001b');
});

test('says the same as JSON', async () => {
  const doctor = new CodecellProcess(['doctor', '--json']);
  expect(await doctor.ended()).toBe(0);
  const report = JSON.parse(doctor.stdout);
  expect(report).toMatchObject({ ok: true, complaint: null });
  expect(report.canaries).toHaveLength(11);
  expect(report.prerequisites.map(({ state }: { state: string }) => state)).not.toContain('missing');
});

test('names what is missing and the remedy, and fails', async () => {
  const doctor = new CodecellProcess(['doctor', '--json'], { environment: { PATH: '/nonexistent' } });
  expect(await doctor.ended()).toBe(1);
  const { ok, prerequisites } = JSON.parse(doctor.stdout);
  expect(ok).toBe(false);
  expect(prerequisites).toContainEqual(
    expect.objectContaining({
      name: 'bubblewrap',
      state: 'missing',
      remedy: 'apt-get install -y bubblewrap',
    }),
  );
});

test('the service does not start where the isolation is incomplete', async () => {
  const serve = new CodecellProcess(['serve'], {
    environment: { PATH: '/nonexistent', CODECELL_PORT: '0' },
    currentFolder: await mkdtemp(join(tmpdir(), 'codecell-test-')),
  });
  expect(await serve.ended()).toBe(1);
  expect(serve.stderr).toContain('Remedy: apt-get install -y bubblewrap');
  expect(serve.stdout).toBe('');
});

test('warns of settings that ask for more memory than there is', async () => {
  const environment = { CODECELL_CONCURRENCY: '1000', CODECELL_MEMORY_MB_MAX: '100000' };
  const doctor = new CodecellProcess(['doctor'], { environment });
  expect(await doctor.ended()).toBe(0);
  expect(doctor.stdout).toMatch(/warning +memory[\s\S]*Lower CODECELL_CONCURRENCY/);
});

test.skipIf(!asRoot || !isReachableByOthers(PROJECT_FOLDER))('an ordinary user is as well off', async () => {
  const doctor = new CodecellProcess(['doctor', '--json'], { userId: OTHER_USER });
  expect(await doctor.ended(), doctor.stdout + doctor.stderr).toBe(0);
  expect(JSON.parse(doctor.stdout)).toMatchObject({ ok: true });
});

test.skipIf(!asRoot)('as root, no process of the sandbox is root', async () => {
  const { run } = await startPool();
  const seen = await run('import os\nprint(os.getuid(), os.geteuid(), os.getgroups())');
  expect(seen.stdout).toMatch(/^65534 65534 \[(65534(, )?)*\]\n$/);
});

test.skipIf(!asRoot)('a folder that others cannot enter is no obstacle to root', async () => {
  const hidden = await mkdtemp(join(tmpdir(), 'codecell hidden '));
  onTestFinished(() => rm(hidden, { recursive: true }));
  const runtime = await readRuntime();
  const sandboxFolder = join(hidden, 'a sandbox');
  await cp(runtime.sandboxFolder, sandboxFolder, { recursive: true });
  expect(isReachableByOthers(sandboxFolder)).toBe(false);
  const { pool } = await startPool({ launcher: new BubblewrapLauncher({ ...runtime, sandboxFolder }) });
  expect((await selfTest(pool, runtime)).filter(({ held }) => !held)).toEqual([]);
});
