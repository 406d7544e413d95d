/** Programs that turn on what reports of them, supervises them, or runs beside them. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const run = (code: string, more: object = {}) => service.execute({ code, ...more });

/** Raw system calls, by their numbers on x86-64. */
const RAW =
  'import ctypes, os\nL = ctypes.CDLL(None, use_errno=True)\ndef call(*a):\n    r = L.syscall(*a)\n    return r if r >= 0 else -ctypes.get_errno()\n';

describe('a report is made of an exception', () => {
  test.each([
    [
      'that cannot be changed',
      'class E(Exception):\n    def __setattr__(self, *a): raise ValueError\nraise E',
      'E',
    ],
    [
      'whose traceback raises',
      'class E(Exception):\n    __traceback__ = property(lambda s: 1/0)\nraise E',
      'E',
    ],
    ['that says it is an exit', 'class E(Exception):\n    __class__ = SystemExit\nraise E', 'E'],
    ['whose class raises', 'class E(Exception):\n    __class__ = property(lambda s: 1/0)\nraise E', 'E'],
    ['whose text exits', 'import sys\nclass E(Exception):\n    def __str__(self): sys.exit(0)\nraise E', 'E'],
    [
      'whose text interrupts',
      'class E(Exception):\n    def __str__(self): raise KeyboardInterrupt\nraise E',
      'E',
    ],
    ['without a name', 'raise type("", (Exception,), {})', ''],
    [
      'of an odd exit',
      'class N(int):\n    def __and__(self, o): raise ValueError\n    def __index__(self): raise ValueError\nraise SystemExit(N(7))',
      'SystemExit',
    ],
    ['without an excepthook', 'import sys\ndel sys.excepthook\n1/0', 'ZeroDivisionError'],
    ['without stdout and stderr', 'import sys\ndel sys.stdout, sys.stderr\n1/0', 'ZeroDivisionError'],
    [
      'without what encodes it',
      'import json, os\njson.dumps = os.write = os._exit = None\n1/0',
      'ZeroDivisionError',
    ],
    ['without str', 'import builtins\nbuiltins.str = None\nx = 1/0', 'ZeroDivisionError'],
    ['without isinstance', 'import builtins\nbuiltins.isinstance = None\nx = 1/0', 'ZeroDivisionError'],
    [
      'in the last of the memory',
      'x = []\ntry:\n    while True: x.append(bytearray(1 << 16))\nexcept MemoryError: pass\n{}["k"]',
      'KeyError',
    ],
  ])('%s', async (_name, code, type) => {
    const result = await run(code, { memory_mb: 128 });
    expect(result).toMatchObject({ status: 'failed', error: { type } });
    expect(result.exit_code).toBeGreaterThan(0);
    expect(result.stderr).not.toContain('_codecell');
  });
});

test('the state of the zygote is not in reach', async () => {
  const code = [
    'import sys, gc',
    'frame, names = sys._getframe(), []',
    'while frame: names += [type(v).__name__ for v in frame.f_locals.values()]; frame = frame.f_back',
    'print([n for n in names if n in ("Zygote", "InNewProcess", "poll")])',
    'print([type(o).__name__ for o in gc.get_objects() if type(o).__name__ in ("Zygote", "InNewProcess")])',
  ].join('\n');
  expect((await run(code)).stdout).toBe('[]\n[]\n');
});

describe('what two runs could share', () => {
  test('flags of /dev/null are the run’s own', async () => {
    const code =
      'import fcntl, os\nprint(oct(fcntl.fcntl(4, fcntl.F_GETFL)))\nfcntl.fcntl(4, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)';
    const first = (await run(code)).stdout;
    for (let round = 0; round < 4; round++) expect((await run(code)).stdout).toBe(first);
  });

  test.each([
    [
      'who is at the other end of a connection',
      'import struct\nb = ctypes.create_string_buffer(64)\nn = ctypes.c_int(64)\nprint([call(55, 0, 1, o, b, ctypes.byref(n)) < 0 for o in (17, 77, 57)])',
      '[True, True, True]',
    ],
    [
      'options of a connection',
      'v = ctypes.c_int(1 << 30)\nprint([call(54, d, 1, 7, ctypes.byref(v), 4) for d in range(4)])',
      '[-1, -1, -1, -1]',
    ],
    [
      'waking on a page of a shared file',
      'import mmap\nm = mmap.mmap(os.open(os.__file__, 0), 4096, prot=mmap.PROT_READ)\na = ctypes.c_char.from_buffer_copy(m)\nprint(call(202, id(m), 1, 1, 0, 0, 0) < 0, call(202, id(m), 3, 1, 0, 0, 0) < 0)',
      'True True',
    ],
    [
      'which processes exist',
      'print([call(n, *a) < 0 for n, a in ((121, (1,)), (124, (1,)), (140, (0, 1)))])',
      '[True, True, True]',
    ],
    [
      'dropping files from the page cache',
      'd = os.open(os.__file__, 0)\nprint(call(221, d, 0, 0, 4) < 0, call(28, 4096, 4096, 21) < 0, call(28, 4096, 4096, 12) < 0)',
      'True True True',
    ],
    [
      'which pages of a file are in the cache',
      'b = ctypes.create_string_buffer(4096)\nprint(call(27, 4096, 4096, b))',
      '-38',
    ],
    [
      'out-of-band data',
      'import socket\na, b = socket.socketpair()\nprint(call(44, a.fileno(), b"x", 1, 1, 0, 0) < 0, a.send(b"y"), b.recv(1))',
      "True 1 b'y'",
    ],
  ])('not: %s', async (_name, code, expected) => {
    const result = await run(RAW + code);
    expect(result.stdout, result.stderr).toBe(`${expected}\n`);
  });
});

describe('a nuisance to the service', () => {
  const FRAMES = 'import os, struct, time\nend = time.time() + 1.5\n';
  test.each([
    [
      'tiny frames without end',
      `${FRAMES}d = struct.pack("<BI", 2, 0) * 13000\nwhile time.time() < end: os.write(3, d)`,
    ],
    [
      'descriptions that are costly to parse',
      `${FRAMES}t = b"[" * (5 << 20)\nd = struct.pack("<BI", 4, 4 + len(t)) + struct.pack("<I", len(t)) + t\nfor _ in range(18):\n    v = memoryview(d)\n    while v: v = v[os.write(3, v):]`,
    ],
    [
      'errors that are costly to parse',
      `${FRAMES}t = b"[" * 700000\nd = struct.pack("<BI", 2, len(t)) + t\nv = memoryview(d)\nwhile v: v = v[os.write(3, v):]`,
    ],
    ['an endless tail', `${FRAMES}while time.time() < end: os.write(3, b"\\xff" * 100000)`],
  ])('%s', async (_name, code) => {
    const nuisance = run(
      `try:\n    ${code.replaceAll('\n', '\n    ')}\nexcept OSError as e: print(type(e).__name__)\nprint("end")`,
    );
    for (let round = 0; round < 5; round++) expect((await service.send('/healthz')).status).toBe(200);
    expect(await nuisance).toMatchObject({ status: 'succeeded', images: [], value: null });
  });

  test('writing to stdin', async () => {
    expect(await run('import os\nwhile True: os.write(0, bytes(200000))')).toMatchObject({
      status: 'failed',
      error: { type: 'BrokenPipeError' },
    });
  });

  test('a quarter of a megabyte in pieces of one byte each arrives whole, in little memory', async () => {
    const before = process.memoryUsage().heapUsed;
    const result = await run('import os\nfor _ in range(1 << 18): os.write(1, b"x")');
    expect(result).toMatchObject({ status: 'succeeded', truncated: { stdout: false } });
    expect(result.stdout).toBe('x'.repeat(1 << 18));
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(100 << 20);
  });
});

describe('the end of a program', () => {
  test('runs finalizers and generators, and flushes files of its own', async () => {
    const code = [
      'class A:',
      '    def __del__(self): print("del")',
      'a = A()',
      'def g():',
      '    try: yield 1',
      '    finally: print("finally")',
      'x = g(); next(x)',
      'import io',
      'f = open(1, "w", closefd=False); f.write("unflushed\\n")',
    ].join('\n');
    expect((await run(code)).stdout.split('\n').sort()).toEqual(['', 'del', 'finally', 'unflushed']);
  });

  test('leaves daemon threads their names', async () => {
    const code =
      'import threading, time\nx = 1\ndef loop():\n    while True: x; time.sleep(.001)\nthreading.Thread(target=loop, daemon=True).start()\ntime.sleep(.05)';
    expect(await run(code)).toMatchObject({ status: 'succeeded', stderr: '' });
  });

  test('by exit and quit', async () => {
    expect(await run('exit(3)')).toMatchObject({ exit_code: 3 });
    expect(await run('print(1)\nquit()')).toMatchObject({ status: 'succeeded', stdout: '1\n' });
  });
});

test('sqlite keeps what it would spill to files in memory', async () => {
  const code =
    'import sqlite3\nc = sqlite3.connect(":memory:")\nc.execute("create temp table t(a)")\nc.executemany("insert into t values (?)", ((str(i) * 20,) for i in range(200000)))\nprint(c.execute("select count(*) from (select a from t order by a desc)").fetchone())';
  expect((await run(code)).stdout).toBe('(200000,)\n');
});
