/** "Python, as the caller meets it": what there is to use, and what there is not. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const run = (code: string, more: object = {}) => service.execute({ code, ...more });

/** The standard output of a program that must succeed. */
async function output(code: string, more: object = {}): Promise<string> {
  const result = await run(code, more);
  expect(result.status, result.stderr).toBe('succeeded');
  expect(result.stderr).toBe('');
  return result.stdout;
}

describe('what is there', () => {
  test('numpy, pandas and matplotlib are imported already', async () => {
    const code = 'import sys\nprint([m in sys.modules for m in ("numpy", "pandas", "matplotlib.pyplot")])';
    expect(await output(code)).toBe('[True, True, True]\n');
  });

  test.each([
    'scipy.optimize',
    'sklearn.linear_model',
    'sympy',
    'seaborn',
    'statsmodels.api',
    'networkx',
    'PIL.Image',
    'tabulate',
  ])('%s is installed', async (name) =>
    expect(await output(`import ${name}\nprint("ok")`, { memory_mb: 256 })).toBe('ok\n'),
  );

  test('every import of the standard library that can be had', async () => {
    const code = [
      'import sys, importlib',
      'absent = {"idlelib", "tkinter", "turtle", "turtledemo", "msvcrt", "winreg", "winsound", "nt", "msilib", "antigravity", "this"}',
      'failed = []',
      'for name in sorted(sys.stdlib_module_names):',
      '    if name in absent or name.startswith("_"): continue',
      '    try: importlib.import_module(name)',
      '    except ModuleNotFoundError as e: failed.append(f"{name}: missing {e.name}") if e.name != name else None',
      '    except Exception as e: failed.append(f"{name}: {e!r}")',
      'print(failed)',
    ].join('\n');
    const { stdout } = await run(code);
    expect(stdout).toBe('[]\n');
  });

  test('sixty-four threads, asyncio, sqlite in memory, an alarm, ctypes callbacks, top-level await', async () => {
    expect(
      await output(
        'import threading, time\nt = [threading.Thread(target=time.sleep, args=(.3,)) for _ in range(64)]\n[x.start() for x in t]\n[x.join() for x in t]\nprint(len(t))',
      ),
    ).toBe('64\n');
    expect(
      (
        await run(
          'import threading, time\nfor _ in range(99): threading.Thread(target=time.sleep, args=(.3,), daemon=True).start()',
        )
      ).error,
    ).toMatchObject({ type: 'RuntimeError', message: "can't start new thread" });
    expect(
      await output(
        'import asyncio\nasync def f(n):\n    await asyncio.sleep(.01)\n    return n\nprint(await asyncio.gather(f(1), f(2)))',
      ),
    ).toBe('[1, 2]\n');
    expect(await output('import asyncio\nasync def main():\n    return 3\nprint(asyncio.run(main()))')).toBe(
      '3\n',
    );
    expect(
      await output(
        'import sqlite3\nc = sqlite3.connect(":memory:")\nprint(c.execute("select 1 + 1").fetchone())',
      ),
    ).toBe('(2,)\n');
    expect(
      await output(
        'import signal, time\nsignal.signal(signal.SIGALRM, lambda *_: print("rang"))\nsignal.setitimer(signal.ITIMER_REAL, .05)\ntime.sleep(.2)',
      ),
    ).toBe('rang\n');
    expect(
      await output(
        'from sklearn.cluster import KMeans\nimport numpy as np\nprint(KMeans(2, n_init=1, random_state=0).fit(np.array([[0.], [1.], [9.]])).labels_.tolist())',
      ),
    ).toMatch(/^\[(0, 0, 1|1, 1, 0)\]\n$/);
  });

  test('/dev/null can be opened for writing by every usual way', async () => {
    const code = [
      'import os, pathlib, io, contextlib',
      'print("x", file=open("/dev/null", "w"))',
      'with open(os.devnull, "wb") as f: f.write(b"x")',
      'pathlib.Path("/dev/null").open("a").write("x")',
      'io.open("/dev/null", mode="r+b", buffering=0).write(b"x")',
      'd = os.open(os.devnull, os.O_WRONLY); os.write(d, b"x"); os.close(d)',
      'with contextlib.redirect_stdout(open(os.devnull, "w")): print("hidden")',
      'print(open("/dev/null").read() == "")',
    ].join('\n');
    expect(await output(code)).toBe('True\n');
  });
});

describe('what is not', () => {
  test.each([
    ['open a file to write', 'open("x", "w")', 'PermissionError'],
    ['to_csv', 'import pandas as pd; pd.DataFrame({"a": [1]}).to_csv("x.csv")', 'PermissionError'],
    ['a temporary file', 'import tempfile; tempfile.TemporaryFile()', 'FileNotFoundError'],
    ['a socket', 'import socket; socket.socket()', 'PermissionError'],
    ['a subprocess', 'import subprocess; subprocess.run(["id"])', 'PermissionError'],
    ['a fork', 'import os; os.fork()', 'PermissionError'],
    ['a missing file', 'open("data.csv")', 'FileNotFoundError'],
    ['another user’s signal', 'import os; os.kill(1, 9)', 'PermissionError'],
  ])('%s is an ordinary exception', async (_name, code, type) => {
    const { status, error } = await run(code);
    expect(status).toBe('failed');
    expect(error).toMatchObject({ type, line: 1 });
    expect(error?.traceback).not.toContain('codecell');
  });
});
