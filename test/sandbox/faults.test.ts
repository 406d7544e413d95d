/** Faults of the service's own parts: noticed, mended, and unseen by the caller; what a run does is its own. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SandboxFaultError } from '../../src/sandbox/execution.ts';
import { BubblewrapLauncher } from '../../src/sandbox/launchers/bubblewrap.ts';
import type { Launcher } from '../../src/sandbox/launchers/launcher.ts';
import type { Pool } from '../../src/sandbox/pool.ts';
import { readRuntime } from '../../src/sandbox/runtime.ts';
import { request, startPool } from '../support/pool.ts';
import { isAlive, processTree } from '../support/processes.ts';
import { until } from '../support/until.ts';

/** Runs `code` and, once it runs, does something to the process tree of the pool's first launcher. */
async function whileRunning(pool: Pool, code: string, action: (tree: number[]) => void, times = 1) {
  let left = times;
  return await pool.execute(request(code), {
    onStart: () => {
      if (left-- > 0) action(processTree(pool.launcherProcessIds[0]!));
    },
  });
}

const SLOW = 'import time\nprint("before")\ntime.sleep(.5)\nprint("after")';

for (const [name, pick] of [
  ['launcher', ([launcher]: number[]) => launcher!],
  ['zygote', ([, zygote]: number[]) => zygote!],
] as const) {
  test(`a program is run again, unseen, when its ${name} is killed`, async () => {
    const { pool } = await startPool();
    const execution = await whileRunning(pool, SLOW, (tree) => process.kill(pick(tree), 'SIGKILL'));
    expect(execution).toMatchObject({
      stopped: null,
      ending: { by: 'exit', code: 0 },
      stdout: 'before\nafter\n',
    });
  });
}

test('a program is run again when its zygote is stopped, and the stopped one is gone', async () => {
  const { pool, log } = await startPool();
  let stopped: number[] = [];
  const others = [1, 2, 3].map(() => pool.execute(request(SLOW)));
  const execution = await whileRunning(pool, 'import time\ntime.sleep(4)\nprint("done")', (tree) => {
    stopped = tree;
    process.kill(tree[1]!, 'SIGSTOP');
  });
  expect(execution).toMatchObject({ stopped: null, stdout: 'done\n' });
  for (const other of await Promise.all(others)) expect(other.stdout).toBe('before\nafter\n');
  await until(() => stopped.every((process) => !isAlive(process)));
  expect(JSON.stringify(log)).toContain('no longer answers');
});

test('a deadline is kept when the zygote cannot keep it', async () => {
  const { pool } = await startPool();
  const execution = await pool.execute(request('while True: pass', { timeoutMs: 200 }), {
    onStart: () => process.kill(processTree(pool.launcherProcessIds[0]!)[1]!, 'SIGSTOP'),
  });
  expect(execution.stopped).toBe('deadline');
  expect((await pool.execute(request('print(1)'))).stdout).toBe('1\n');
});

test('a program that is lost twice is a fault of the service', async () => {
  const { pool } = await startPool();
  const kill = ([launcher]: number[]) => process.kill(launcher!, 'SIGKILL');
  await expect(whileRunning(pool, SLOW, kill, 2)).rejects.toThrow(SandboxFaultError);
});

test('a program that ends itself by any signal is never run again', async () => {
  const { pool, run, log } = await startPool();
  const launchers = pool.launcherProcessIds;
  for (const name of ['SIGKILL', 'SIGSEGV', 'SIGABRT', 'SIGTERM', 'SIGXCPU', 'SIGSYS', 'SIGBUS']) {
    const code = `import signal\nprint("once")\nsignal.signal(signal.${name}, signal.SIG_DFL) if '${name}' != 'SIGKILL' else 0\nsignal.raise_signal(signal.${name})`;
    expect(await run(code)).toMatchObject({ ending: { by: 'signal', signal: name }, stdout: 'once\n' });
  }
  expect(log).toEqual([]);
  expect(pool.launcherProcessIds).toEqual(launchers);
});

test('a program that stops itself still meets its deadline', async () => {
  const { run } = await startPool();
  const code = 'import signal\nprint("half", end="")\nsignal.raise_signal(signal.SIGSTOP)';
  expect(await run(code, { timeoutMs: 300 })).toMatchObject({ stopped: 'deadline' });
});

test('nothing of the sandbox outlives a service that is killed', async () => {
  const service = spawn(process.execPath, [join(import.meta.dirname, '../support/pool-alone.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void service.kill('SIGKILL'));
  const [line] = (await once(service.stdout!, 'data')) as [Buffer];
  const tree = processTree(Number(line));
  // Launcher, zygote and the program; spares may still be on their way.
  expect(tree.length).toBeGreaterThanOrEqual(3);
  service.kill('SIGKILL');
  await until(() => tree.every((process) => !isAlive(process)));
});

test('stopping the pool leaves no process', async () => {
  const { pool } = await startPool();
  const tree = processTree(pool.launcherProcessIds[0]!);
  await pool.stop();
  await until(() => tree.every((process) => !isAlive(process)));
});

test('zygotes are replaced by count without a failed program', async () => {
  const { pool, run, log } = await startPool({ forksPerZygoteMax: 20 });
  const [first] = pool.launcherProcessIds;
  const tree = processTree(first!);
  let done = 0;
  const worker = async (): Promise<void> => {
    while (pool.launcherProcessIds.includes(first!)) {
      expect((await run('print(1)')).stdout).toBe('1\n');
      done++;
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
  expect(done).toBeGreaterThan(15);
  await until(() => tree.every((process) => !isAlive(process)));
  expect(log).toEqual([]);
});

test('a zygote is replaced by age, and a long program ends in the old one', async () => {
  const { pool, run } = await startPool({ zygoteAgeMsMax: 1 });
  const [first] = pool.launcherProcessIds;
  const long = run('import time\ntime.sleep(3)\nprint("long")');
  await until(async () => {
    await run('1');
    return pool.launcherProcessIds.length > 1;
  });
  expect(await long).toMatchObject({ stopped: null, stdout: 'long\n' });
  await until(async () => {
    await run('1');
    return !pool.launcherProcessIds.includes(first!);
  });
});

test('a zygote that dies young is replaced again and again, ever later', async () => {
  const real = new BubblewrapLauncher(await readRuntime());
  const launchedAtMs: number[] = [];
  const launcher: Launcher = {
    name: 'dies three times',
    launch: (options) => {
      launchedAtMs.push(performance.now());
      return launchedAtMs.length > 1 && launchedAtMs.length < 5
        ? spawn('/bin/false', { stdio: ['pipe', 'pipe', 'pipe', 'pipe'], detached: true })
        : real.launch(options);
    },
  };
  const { pool, run } = await startPool({ launcher });
  process.kill(pool.launcherProcessIds[0]!, 'SIGKILL');
  await until(() => launchedAtMs.length === 5);
  const pausesMs = launchedAtMs.slice(1).map((at, index) => at - launchedAtMs[index]!);
  expect(pausesMs[3]!).toBeGreaterThanOrEqual(390);
  expect((await run('print(1)')).stdout).toBe('1\n');
});

test('a zygote is started again when both it and the one that is to follow it have died', async () => {
  const { pool, run } = await startPool({ forksPerZygoteMax: 4 });
  const [first] = pool.launcherProcessIds;
  while (pool.launcherProcessIds.length === 1) await run('1');
  const second = pool.launcherProcessIds.find((each) => each !== first);
  process.kill(first!, 'SIGKILL');
  await until(() => !pool.launcherProcessIds.includes(first!));
  process.kill(second!, 'SIGKILL');
  await until(() => pool.ready && !pool.launcherProcessIds.includes(second!));
  expect((await run('print(1)')).stdout).toBe('1\n');
});

test('a zygote that hangs while it warms up is replaced', async () => {
  const { pool, run, log } = await startPool({ zygoteWarmMsMax: 15_000 });
  const [first] = pool.launcherProcessIds;
  process.kill(first!, 'SIGKILL');
  await until(() => pool.launcherProcessIds.length === 1 && pool.launcherProcessIds[0] !== first);
  const [hung] = pool.launcherProcessIds;
  // The launcher first and then what it has, generation by generation, so that none comes after the look.
  for (let depth = 0; depth < 5; depth++) {
    for (const each of processTree(hung!)) process.kill(each, 'SIGSTOP');
  }
  await until(() => pool.ready);
  expect(pool.launcherProcessIds).not.toContain(hung);
  expect(JSON.stringify(log)).toContain('does not get warm');
  expect((await run('print(1)')).stdout).toBe('1\n');
});

test('a caller who gives up stops the program, and its process is gone', async () => {
  const { pool } = await startPool();
  const controller = new AbortController();
  let tree: number[] = [];
  const execution = await pool.execute(request('print("a")\nwhile True: pass'), {
    signal: controller.signal,
    onStart: () => {
      tree = processTree(pool.launcherProcessIds[0]!);
      controller.abort();
    },
  });
  expect(execution.stopped).toBe('cancel');
  expect(tree.filter(isAlive).length).toBeLessThan(tree.length);
});

test('a host without bubblewrap is told so', async () => {
  const launcher: Launcher = {
    name: 'missing',
    launch: () => spawn('/nonexistent/bwrap', { stdio: ['pipe', 'pipe', 'pipe', 'pipe'] }),
  };
  await expect(startPool({ launcher })).rejects.toThrow(/ENOENT/);
});
