/** Every row of the outcome table, from outside. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const run = (code: string, more: object = {}) => service.execute({ code, ...more });

describe('succeeded', () => {
  test('has every field of a Run', async () => {
    const result = await run('print("out")\nimport sys\nprint("err", file=sys.stderr)', { timeout_ms: 5000 });
    expect(result).toEqual({
      id: expect.stringMatching(/^run_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/),
      status: 'succeeded',
      exit_code: 0,
      stdout: 'out\n',
      stderr: 'err\n',
      value: null,
      images: [],
      error: null,
      truncated: { stdout: false, stderr: false, value: false, images: false },
      usage: {
        queue_ms: expect.any(Number),
        wall_ms: expect.any(Number),
        cpu_ms: expect.any(Number),
        peak_memory_mb: expect.any(Number),
      },
      limits: { timeout_ms: 5000, memory_mb: 512 },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      started_at: expect.stringMatching(/Z$/),
      finished_at: expect.stringMatching(/Z$/),
    });
    expect(Date.parse(result.created_at)).toBeLessThanOrEqual(Date.parse(result.started_at!));
    expect(Date.parse(result.started_at!)).toBeLessThanOrEqual(Date.parse(result.finished_at!));
  });

  test.each([
    'import sys; sys.exit()',
    'import sys; sys.exit(0)',
    'import sys; sys.exit(256)',
    'import os; os._exit(0)',
    'raise SystemExit',
  ])('for %s', async (code) =>
    expect(await run(code)).toMatchObject({ status: 'succeeded', exit_code: 0, error: null }),
  );

  test('whatever is on stderr', async () => {
    const result = await run('import warnings; warnings.warn("careful")');
    expect(result).toMatchObject({ status: 'succeeded', error: null });
    expect(result.stderr).toContain('UserWarning: careful');
  });
});

describe('failed', () => {
  test('by an exception: type, message, line and the caller’s frames', async () => {
    const code = 'def f(x):\n    return 1 / x\n\nprint("before")\nf(0)\n';
    const trace =
      'Traceback (most recent call last):\n  File "main.py", line 5, in <module>\n    f(0)\n' +
      '  File "main.py", line 2, in f\n    return 1 / x\n           ~~^~~\nZeroDivisionError: division by zero\n';
    const result = await run(code);
    expect(result).toMatchObject({
      status: 'failed',
      exit_code: 1,
      stdout: 'before\n',
      error: { type: 'ZeroDivisionError', message: 'division by zero', line: 2, hint: null },
    });
    // Python 3.13 underlines a little differently.
    expect(result.stderr.replaceAll(/^ +[~^]+\n/gm, '')).toBe(trace.replaceAll(/^ +[~^]+\n/gm, ''));
    expect(result.error?.traceback).toBe(result.stderr);
  });

  test('in a library: the caller’s line, and the library’s frames below it', async () => {
    const { error } = await run('import json\n\njson.loads("{")');
    expect(error).toMatchObject({ type: 'JSONDecodeError', line: 3 });
    expect(error?.traceback).toMatch(/line 3, in <module>[\s\S]*json\/__init__\.py/);
    expect(error?.traceback).not.toContain('codecell');
  });

  test('by a syntax error: the line and the marker', async () => {
    const { error, exit_code } = await run('a = 1\nb = = 2\n');
    expect(exit_code).toBe(1);
    expect(error).toMatchObject({ type: 'SyntaxError', message: 'invalid syntax', line: 2 });
    expect(error?.traceback).toContain('    b = = 2\n        ^');
  });

  test('with chained exceptions, a note and a group', async () => {
    const code = [
      'try:',
      '    {}["a"]',
      'except KeyError as e:',
      '    error = ValueError("outer"); error.add_note("a note")',
      '    raise ExceptionGroup("many", [error, TypeError("t")]) from e',
    ].join('\n');
    const { error } = await run(code);
    expect(error).toMatchObject({ type: 'ExceptionGroup', message: 'many (2 sub-exceptions)', line: 5 });
    for (const part of ["KeyError: 'a'", 'direct cause', 'ValueError: outer', 'a note', 'TypeError: t']) {
      expect(error?.traceback).toContain(part);
    }
  });

  test.each([
    ['import sys; sys.exit(7)', 7, 'SystemExit'],
    ['import sys; sys.exit(-1)', 255, 'SystemExit'],
    ['import sys; sys.exit(10**20)', 255, 'SystemExit'],
    ['import sys; sys.exit(True)', 1, 'SystemExit'],
    ['raise SystemExit(3)', 3, 'SystemExit'],
    ['import os; os._exit(9)', 9, 'NonZeroExit'],
    ['raise KeyboardInterrupt', 130, 'KeyboardInterrupt'],
    ['import signal; signal.raise_signal(signal.SIGINT)', 130, 'KeyboardInterrupt'],
  ])('%s is exit code %d', async (code, exitCode, type) => {
    expect(await run(code)).toMatchObject({ status: 'failed', exit_code: exitCode, error: { type } });
  });

  test('by sys.exit with a text, which goes to stderr', async () => {
    expect(await run('import sys\nsys.exit("bye")')).toMatchObject({
      status: 'failed',
      exit_code: 1,
      stderr: 'bye\n',
      error: { type: 'SystemExit', message: 'bye', line: 2, traceback: null },
    });
  });

  test('with a class that lies about itself', async () => {
    const code = [
      'class Meta(type):',
      '    __name__ = property(lambda cls: 1 / 0)',
      '    def __getattribute__(cls, name): raise RuntimeError(name)',
      'class E(Exception, metaclass=Meta):',
      '    def __str__(self): raise ValueError("no")',
      'raise E()',
    ].join('\n');
    expect(await run(code)).toMatchObject({ status: 'failed', exit_code: 1, error: { type: 'E' } });
  });

  test('a forged report changes words alone', async () => {
    const report = JSON.stringify({ type: 'Forged', message: 'm', line: 1, traceback: null });
    const code = `import os, struct\np = ${JSON.stringify(report)}.encode()\nos.write(3, struct.pack('<BI', 2, len(p)) + p)\nos._exit(0)`;
    expect(await run(code)).toMatchObject({ status: 'succeeded', exit_code: 0, error: null });
    expect(await run(code.replace('os._exit(0)', 'os._exit(1)'))).toMatchObject({
      status: 'failed',
      error: { type: 'Forged' },
    });
  });
});

describe('timed_out', () => {
  test('keeps what was printed, an unfinished line too, and names the line', async () => {
    const code = 'import time\nprint("whole")\nprint("half", end="")\nwhile True:\n    pass\n';
    const result = await run(code, { timeout_ms: 400 });
    expect(result).toMatchObject({
      status: 'timed_out',
      exit_code: null,
      stdout: 'whole\nhalf',
      error: { type: 'TimedOut', message: 'The run was stopped after 400 ms.' },
    });
    expect(result.error?.line).toBeOneOf([4, 5]);
    expect(result.usage.wall_ms).toBeGreaterThanOrEqual(400);
  });

  test.each([
    ['a sleep', 'import time\ntime.sleep(1e6)', 2],
    ['a native computation', 'import numpy as np\na = np.random.rand(3000, 3000)\nnp.linalg.svd(a)', 3],
    ['a regular expression', 'import re\nre.match(r"(a+)+$", "a" * 40 + "b")', 2],
    ['a function', 'def f():\n    while True:\n        x = 1\n\nf()', null],
  ])('within %s', async (_name, code, line) => {
    const attempt = () => run(code, { timeout_ms: 1500, memory_mb: 2048 });
    let { status, error } = await attempt();
    // Where the machine leaves it no time to say so, the line is not known.
    for (let more = 0; error?.line === null && more < 3; more++) ({ status, error } = await attempt());
    expect(status).toBe('timed_out');
    if (line !== null) expect(error?.line).toBe(line);
    else expect(error?.line).toBeOneOf([2, 3]);
  });

  test.each([
    [
      'swallows every exception',
      'import time\nwhile True:\n    try: time.sleep(1)\n    except BaseException: pass',
    ],
    [
      'blocks every signal',
      'import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass',
    ],
    [
      'handles every signal',
      'import signal\nfor s in range(1, 65):\n    try: signal.signal(s, lambda *_: None)\n    except (OSError, ValueError): pass\nwhile True: pass',
    ],
    ['waits for a thread', 'import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()'],
    ['hangs in atexit', 'import atexit, time\natexit.register(time.sleep, 99)'],
    ['stops itself', 'import signal\nsignal.raise_signal(signal.SIGSTOP)'],
    [
      'prints for ever, slowly',
      'import time\nwhile True:\n    print(".", end="", flush=True); time.sleep(.01)',
    ],
  ])('a program that %s', async (_name, code) => {
    expect(await run(code, { timeout_ms: 300 })).toMatchObject({ status: 'timed_out', exit_code: null });
  });

  test('of one millisecond', async () => {
    expect(await run('while True: pass', { timeout_ms: 1 })).toMatchObject({ status: 'timed_out' });
  });
});

describe('memory_exceeded', () => {
  test.each([
    ['one oversized allocation', 'x = b"x" * 10**12'],
    ['an array', 'import numpy as np\nnp.ones(10**11)'],
    ['growth', 'x = []\nwhile True: x.append(bytearray(1 << 20))'],
    ['small objects', 'x = []\nwhile True: x.append([0])'],
    ['a string', 'x = "a"\nwhile True: x += x'],
  ])('by %s', async (_name, code) => {
    const result = await run(`print("before")\n${code}`, { memory_mb: 128 });
    expect(result).toMatchObject({ status: 'memory_exceeded', exit_code: 1, stdout: 'before\n' });
    expect(result.error).toMatchObject({ type: 'MemoryError' });
    expect(result.stderr).toContain('MemoryError');
  });

  test('not when the program catches it', async () => {
    const code = 'try:\n    bytearray(1 << 36)\nexcept MemoryError:\n    print("caught")';
    expect(await run(code)).toMatchObject({ status: 'succeeded', stdout: 'caught\n' });
  });

  test('the limit is the request’s, on top of what is loaded', async () => {
    const code = 'x = bytearray(200 << 20)\nprint(len(x))';
    expect(await run(code, { memory_mb: 256 })).toMatchObject({ status: 'succeeded' });
    expect(await run(code, { memory_mb: 128 })).toMatchObject({ status: 'memory_exceeded' });
    const { usage } = await run(code, { memory_mb: 256 });
    expect(usage.peak_memory_mb).toBeGreaterThan(190);
    expect(usage.peak_memory_mb).toBeLessThan(230);
    expect((await run('print(1)')).usage.peak_memory_mb).toBeLessThan(10);
  });

  test('never by the libraries that are loaded already, at the smallest limit', async () => {
    const code =
      'import numpy as np, pandas as pd, matplotlib.pyplot as plt\nprint(np.linalg.svd(np.eye(50))[1].sum())';
    expect(await run(code, { memory_mb: 32 })).toMatchObject({ status: 'succeeded', stdout: '50.0\n' });
  });
});

describe('output_exceeded', () => {
  test.each(['stdout', 'stderr'])('by %s: the first megabyte is kept', async (stream) => {
    const result = await run(`import sys\nwhile True: sys.${stream}.write("é" * 9999 + "\\n")`);
    expect(result).toMatchObject({
      status: 'output_exceeded',
      exit_code: null,
      error: { type: 'OutputExceeded' },
    });
    expect(result.truncated).toMatchObject({ stdout: stream === 'stdout', stderr: stream === 'stderr' });
    const kept = result[stream as 'stdout' | 'stderr'];
    expect(Buffer.byteLength(kept)).toBeGreaterThan((1 << 20) - 4);
    expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(1 << 20);
    expect(kept).not.toContain('\ufffd');
  });

  test('not by what is only cut', async () => {
    const result = await run('print("x" * (15 << 20))');
    expect(result).toMatchObject({ status: 'succeeded', truncated: { stdout: true, stderr: false } });
    expect(result.stdout).toHaveLength(1 << 20);
  });

  test('exactly a megabyte is whole', async () => {
    const result = await run('print("x" * ((1 << 20) - 1))');
    expect(result.truncated.stdout).toBe(false);
    expect(result.stdout).toHaveLength(1 << 20);
  });
});

describe('crashed', () => {
  test.each([
    ['SIGSEGV', 'import ctypes\nctypes.string_at(0)'],
    ['SIGABRT', 'import os\nos.abort()'],
    ['SIGKILL', 'import signal\nsignal.raise_signal(signal.SIGKILL)'],
    ['SIGTERM', 'import signal\nsignal.raise_signal(signal.SIGTERM)'],
    ['SIGXCPU', 'import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 30))\nwhile True: pass'],
  ])('by %s', async (signal, code) => {
    expect(await run(`print("before")\n${code}`)).toMatchObject({
      status: 'crashed',
      exit_code: null,
      stdout: 'before\n',
      error: { type: 'Crashed', message: `The process was ended by ${signal}.` },
    });
  });
});

test('error texts are cut at 64 KiB', async () => {
  const { error } = await run('raise ValueError("é" * 100_000)');
  expect(Buffer.byteLength(error!.message)).toBeLessThanOrEqual(64 << 10);
  expect(Buffer.byteLength(error!.traceback!)).toBeLessThanOrEqual(64 << 10);
  expect(error!.message.endsWith('é…')).toBe(true);
});
