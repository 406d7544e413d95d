/** The control group around the sandbox, where this user may make one. */

import { expect, test } from 'vitest';
import { finishedRun } from '../../src/runs/outcome.ts';
import { Cgroup } from '../../src/sandbox/cgroup.ts';
import { BubblewrapLauncher } from '../../src/sandbox/launchers/bubblewrap.ts';
import { readRuntime } from '../../src/sandbox/runtime.ts';
import { startPool } from '../support/pool.ts';

const probe = Cgroup.create({ memoryBytes: 1 << 30, processes: 100 });
await probe?.remove();

/** Maps single pages far apart: each needs page tables, which no limit of a process counts. */
const PAGE_TABLES = `import ctypes
mmap = ctypes.CDLL(None).mmap
mmap.restype, mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
print("before", flush=True)
for i in range(1, 60000):
    at = mmap(i << 30, 4096, 3, 0x100022, -1, 0)
    if at == i << 30: ctypes.memset(at, 1, 1)
print("ESCAPED")`;

test.skipIf(probe === null)(
  'bounds what the kernel needs for a run, which ends as memory exceeded',
  async () => {
    const cgroup = Cgroup.create({ memoryBytes: 400 << 20, processes: 300 })!;
    const { run, pool, log } = await startPool({
      launcher: new BubblewrapLauncher(await readRuntime(), cgroup),
    });
    const launchers = pool.launcherProcessIds;
    const execution = await run(PAGE_TABLES, { timeoutMs: 30_000 });
    const limits = { timeout_ms: 30_000, memory_mb: 512 };
    expect(finishedRun({ id: 'run_1', createdAt: new Date(), limits }, execution, 0)).toMatchObject({
      status: 'memory_exceeded',
      exit_code: null,
      stdout: 'before\n',
      error: { type: 'MemoryError' },
    });
    expect((await run('print(1)')).stdout).toBe('1\n');
    expect(pool.launcherProcessIds).toEqual(launchers);
    expect(log).toEqual([]);
  },
);

test.skipIf(probe === null)('a program that kills itself has crashed all the same', async () => {
  const cgroup = Cgroup.create({ memoryBytes: 1 << 30, processes: 300 })!;
  const { run } = await startPool({ launcher: new BubblewrapLauncher(await readRuntime(), cgroup) });
  const execution = await run('import signal\nsignal.raise_signal(signal.SIGKILL)');
  expect(execution).toMatchObject({ stopped: null, ending: { by: 'signal', signal: 'SIGKILL' } });
});

test.skipIf(probe === null)(
  'too few processes for all: what runs goes on, and spares come back',
  async () => {
    const cgroup = Cgroup.create({ memoryBytes: 2 ** 31, processes: 40 })!;
    const { run, pool, log } = await startPool({
      launcher: new BubblewrapLauncher(await readRuntime(), cgroup),
    });
    const launchers = pool.launcherProcessIds;
    const many = run(
      'import threading, time\nfor _ in range(60):\n    try: threading.Thread(target=time.sleep, args=(1.5,)).start()\n    except RuntimeError: pass\nprint("done")',
    );
    const others = await Promise.all([1, 2, 3, 4].map((number) => run(`print(${number})`)));
    expect((await many).stdout).toBe('done\n');
    expect(others.map(({ stdout }) => stdout)).toEqual(['1\n', '2\n', '3\n', '4\n']);
    expect((await run('print(1)')).stdout).toBe('1\n');
    expect(pool.launcherProcessIds).toEqual(launchers);
    expect(JSON.stringify(log)).toContain('cannot fork');
  },
);
