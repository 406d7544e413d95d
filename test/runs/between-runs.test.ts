/** Nothing of one run is seen by another, also when many run at once. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ settings: { CONCURRENCY: '4' } });
});
afterAll(() => service.stop());

const run = (code: string, more: object = {}) => service.execute({ code, ...more });

test('globals, patched modules, settings and working state are fresh', async () => {
  const spoil = [
    'import builtins, sys, os, math, numpy, pandas, matplotlib, decimal, random, gc, signal, warnings, json',
    'builtins.leaked = 1; math.pi = 3; sys.setrecursionlimit(50); numpy.leaked = 1; os.environ["LEAKED"] = "1"',
    'json.dumps = None; pandas.options.display.max_rows = 1; matplotlib.rcParams["figure.dpi"] = 7',
    'decimal.getcontext().prec = 3; gc.disable(); signal.signal(signal.SIGTERM, signal.SIG_IGN); warnings.simplefilter("ignore")',
    'sys.modules["leaked"] = sys; sys.path.append("/leaked"); matplotlib.pyplot.figure()',
    'print("spoiled")',
  ].join('\n');
  const look = [
    'import builtins, sys, os, math, numpy, pandas, matplotlib, decimal, random, gc, signal, json',
    'print(hasattr(builtins, "leaked"), math.pi > 3.1, sys.getrecursionlimit(), hasattr(numpy, "leaked"), os.environ.get("LEAKED"))',
    'print(json.dumps(1), pandas.options.display.max_rows, matplotlib.rcParams["figure.dpi"], decimal.getcontext().prec, gc.isenabled())',
    'print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "leaked" in sys.modules, "/leaked" in sys.path, matplotlib.pyplot.get_fignums())',
  ].join('\n');
  const fresh = 'False True 1000 False None\n1 60 100.0 28 True\nTrue False False []\n';
  for (let round = 0; round < 6; round++) {
    expect((await run(spoil)).stdout).toBe('spoiled\n');
    expect((await run(look)).stdout).toBe(fresh);
  }
});

test('random draws differ between runs', async () => {
  const code =
    'import random, numpy, uuid, os, secrets\nprint(random.random(), numpy.random.rand(), numpy.random.default_rng().random(), uuid.uuid4(), secrets.token_hex(), os.urandom(4))';
  const draws = await Promise.all(
    Array.from({ length: 20 }, () => run(code).then(({ stdout }) => stdout.split(' '))),
  );
  for (const column of draws[0]!.keys()) {
    expect(new Set(draws.map((draw) => draw[column])).size).toBe(draws.length);
  }
});

test('no byte of an earlier run is left in memory', async () => {
  const half = 'c0ffee5eed';
  for (let round = 0; round < 8; round++) {
    const secret = `${half}${half.toUpperCase()}`;
    await run(`s = "${secret}" * 10\nprint(s)\nimport sys; sys.stderr.write(s)`, {
      stdin: secret,
      inputs: { s: secret },
    });
  }
  // The sentinel is put together at run time, so that this program itself does not hold it.
  const scan = [
    'import ctypes, gc, os, struct',
    'needle = b"c0ffee5eed"[:] + b"c0ffee5eed".upper()',
    'own = id(needle)',
    'libc = ctypes.CDLL(None, use_errno=True)',
    'page = 4096',
    'found = scanned = 0',
    'chunks = {id(o) >> 21 for o in gc.get_objects()}',
    'reader, writer = os.pipe()',
    'for base in sorted(c << 21 for c in chunks):',
    '    for at in range(base, base + (1 << 21), page):',
    '        if libc.write(writer, ctypes.c_void_p(at), 1) != 1: continue',
    '        os.read(reader, 1)',
    '        scanned += 1',
    '        data = ctypes.string_at(at, page)',
    '        i = data.find(needle)',
    '        while i >= 0:',
    '            if not own <= at + i < own + 100: found += 1',
    '            i = data.find(needle, i + 1)',
    'print(scanned > 1000, found)',
  ].join('\n');
  const result = await run(scan);
  // What is found are this program's own copies of the needle in the chunk just read, none elsewhere.
  const control = await run(scan.replaceAll('c0ffee5eed', 'deadbea7ed'));
  expect(result.stdout).toMatch(/^True \d+\n$/);
  expect(control.stdout).toMatch(/^True \d+\n$/);
  expect(
    Math.abs(Number(result.stdout.split(' ')[1]) - Number(control.stdout.split(' ')[1])),
  ).toBeLessThanOrEqual(2);
});

test('descriptors are the run’s own: nothing shared, no offset carried over', async () => {
  const code = [
    'import os, stat',
    'for d in range(256):',
    '    try: s = os.fstat(d)',
    '    except OSError: continue',
    '    offset = os.lseek(d, 0, os.SEEK_CUR) if stat.S_ISREG(s.st_mode) else None',
    '    print(d, stat.S_IFMT(s.st_mode), offset)',
    '    if stat.S_ISREG(s.st_mode): os.lseek(d, 12345, os.SEEK_SET)',
  ].join('\n');
  const first = await run(code);
  expect(first.status, first.stderr).toBe('succeeded');
  for (let round = 0; round < 4; round++) expect((await run(code)).stdout).toBe(first.stdout);
  const lines = first.stdout.trim().split('\n');
  // Four connections, /dev/null, and the font files that matplotlib keeps open.
  expect(lines.slice(0, 5).map((line) => line.split(' ')[1])).toEqual([
    '49152',
    '49152',
    '49152',
    '49152',
    '8192',
  ]);
  expect(lines.slice(5).every((line) => line.split(' ')[1] === '32768')).toBe(true);
});

test('fifty at once each get their own output', async () => {
  const results = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      run(
        `import sys, time\nprint(inputs["n"], input())\ntime.sleep(.02)\nprint("err", inputs["n"], file=sys.stderr)\nsys.exit(inputs["n"])`,
        {
          stdin: `line ${index}`,
          inputs: { n: index },
        },
      ),
    ),
  );
  for (const [index, result] of results.entries()) {
    expect(result).toMatchObject({ stdout: `${index} line ${index}\n`, exit_code: index });
    expect(result.stderr).toContain(`err ${index}\n`);
  }
});

test('no lock on a shared file', async () => {
  const code =
    'import fcntl, os\nf = open(os.__file__)\nfor lock in (lambda: fcntl.flock(f, fcntl.LOCK_SH), lambda: fcntl.lockf(f, fcntl.LOCK_SH)):\n    try: lock(); print("ESCAPED")\n    except OSError: print("held")';
  expect((await run(code)).stdout).toBe('held\nheld\n');
});
