/** "Python, as the caller meets it": the environment of a script. */

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

describe('the program is __main__ of a script', () => {
  test('by its names', async () => {
    const code = [
      'import sys, os, inspect, __main__',
      'print(__name__, __file__, sys.argv, __main__.__file__, sys.modules["__main__"] is __main__)',
      'def f():',
      '    return 1  # a comment',
      'print(inspect.getsource(f), end="")',
      'print(inspect.getsourcefile(f), f.__module__, __doc__, __spec__, __package__)',
    ].join('\n');
    expect(await output(code)).toBe(
      "__main__ main.py ['main.py'] main.py True\ndef f():\n    return 1  # a comment\nmain.py __main__ None None None\n",
    );
  });

  test('with its docstring, future imports, annotations and a guard', async () => {
    const code =
      '"""Doc."""\nfrom __future__ import annotations\nx: Unknown = 1\nif __name__ == "__main__":\n    print(__doc__, x, __annotations__)';
    expect(await output(code)).toBe("Doc. 1 {'x': 'Unknown'}\n");
  });

  test('for pickle, dataclasses, doctest and unittest', async () => {
    const code = [
      'import pickle, dataclasses, doctest, unittest',
      '@dataclasses.dataclass',
      'class P:',
      '    """',
      '    >>> P(1)',
      '    P(x=1)',
      '    """',
      '    x: int',
      'print(pickle.loads(pickle.dumps(P(2))), doctest.testmod())',
      'class T(unittest.TestCase):',
      '    def test(self): self.assertEqual(P(1).x, 1)',
      'unittest.main()',
    ].join('\n');
    const result = await run(code);
    expect(result).toMatchObject({
      status: 'succeeded',
      stdout: 'P(x=2) TestResults(failed=0, attempted=1)\n',
    });
    expect(result.stderr).toMatch(/Ran 1 test in .*\n\nOK\n$/);
  });

  test('that sees no module of the sandbox', async () => {
    expect(
      await output(
        'import sys\nprint([m for m in sys.modules if "codecell" in m], [p for p in sys.path if "codecell" in p])',
      ),
    ).toBe('[] []\n');
  });

  test('in an empty folder that cannot be written', async () => {
    const code =
      'import os\nprint(os.listdir(), os.access(".", os.W_OK), os.environ["HOME"], os.path.expanduser("~"))';
    expect(await output(code)).toBe('[] False / /\n');
  });

  test('in UTC and UTF-8', async () => {
    const code = [
      'import time, locale, sys, datetime, zoneinfo',
      'print(time.tzname, locale.setlocale(locale.LC_ALL, ""), sys.getdefaultencoding(), sys.stdout.encoding)',
      'print(datetime.datetime(2026, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")).utcoffset())',
    ].join('\n');
    expect(await output(code)).toBe("('UTC', 'UTC') C.UTF-8 utf-8 utf-8\n2:00:00\n");
  });
});

describe('source text', () => {
  test.each([
    ['a BOM is dropped', '\ufeffprint(1)', '1\n'],
    ['a coding cookie is ignored', '# -*- coding: latin-1 -*-\nprint("é")', 'é\n'],
    ['carriage returns end lines', 'print(1)\r\nprint(2)\rprint(3)', '1\n2\n3\n'],
    ['form feeds and tabs are white space', 'if 1:\n\tprint(1)\n\f\nprint(2)', '1\n2\n'],
    ['line separators of Unicode are characters', 's = "a\u2028b"\nprint(len(s))', '3\n'],
    ['there may be none', '', ''],
    ['emoji and identifiers of any script work', 'größe = "🎈"\nprint(größe)', '🎈\n'],
  ])('%s', async (_name, code, expected) => expect(await output(code)).toBe(expected));

  test('a NUL is a SyntaxError of its line', async () => {
    expect((await run('a = 1\nb = "\0"')).error).toMatchObject({
      type: 'SyntaxError',
      message: 'source code cannot contain null bytes',
      line: 2,
    });
  });

  test('a line after odd separators still has its number', async () => {
    const { error } = await run('s = "\u2028"\r\nt = """\n\f\n"""\r1/0');
    expect(error).toMatchObject({ line: 5 });
    expect(error?.traceback).toContain('    1/0');
  });

  test('a megabyte of it runs', async () => {
    const code = `${'x = 1\n'.repeat(174_000)}print(x)`;
    expect(await output(code)).toBe('1\n');
  });
});

describe('input', () => {
  test('stdin is what input and sys.stdin read', async () => {
    const code =
      'import sys\nprint(input(), sys.stdin.readline().strip(), sys.stdin.read(), sys.stdin.isatty())';
    expect(await output(code, { stdin: 'a\nbé\nrest\nend' })).toBe('a bé rest\nend False\n');
    expect(await output('import os\nprint(os.read(0, 100))', { stdin: 'raw' })).toBe("b'raw'\n");
  });

  test('stdin of four megabytes arrives whole, or is left alone', async () => {
    const stdin = `${'0123456789abcde\n'.repeat(1 << 18)}`;
    expect(await output('import sys\nd = sys.stdin.read()\nprint(len(d), d[-3:-1])', { stdin })).toBe(
      '4194304 de\n',
    );
    expect(await output('print("no thanks")', { stdin })).toBe('no thanks\n');
  });

  test('an empty stdin ends at once', async () => {
    expect(await output('import sys\nprint(repr(sys.stdin.read()))')).toBe("''\n");
    expect((await run('input()')).error).toMatchObject({ type: 'EOFError' });
  });

  test('inputs is a dict, parsed from the text as it was sent', async () => {
    const body =
      '{"code": "print(inputs)", "inputs": {"a": 1.0, "b": 123456789012345678901234567890, "c": [1e2, null, true], "é": "\\u00e9"}}';
    const answer = await service.post(body);
    expect(JSON.parse(answer.text).stdout).toBe(
      "{'a': 1.0, 'b': 123456789012345678901234567890, 'c': [100.0, None, True], 'é': 'é'}\n",
    );
    expect(await output('print(inputs)')).toBe('{}\n');
  });

  test('integers of any length are exact', async () => {
    const digits = '9'.repeat(20_000);
    const answer = await service.post(
      `{"code": "print(inputs['n'] == 10**20000 - 1)", "inputs": {"n": ${digits}}}`,
    );
    expect(JSON.parse(answer.text)).toMatchObject({ status: 'succeeded', stdout: 'True\n' });
  });
});

describe('output', () => {
  test('is kept from Python and from below it, in order of each', async () => {
    expect(await output('import os\nprint("a")\nos.write(1, b"b\\n")\nprint("c", end="")')).toBe('a\nb\nc');
  });

  test('is UTF-8; other bytes become U+FFFD', async () => {
    expect(await output('import os\nos.write(1, b"\\xff\\xc3\\xa9\\xc3")')).toBe('\ufffdé\ufffd');
  });

  test('keeps characters that arrive in pieces', async () => {
    const code = 'import os, time\nfor b in "é🎈".encode():\n    os.write(1, bytes([b])); time.sleep(.01)';
    expect(await output(code)).toBe('é🎈');
  });

  test('a program that closes its streams still ends as it ends', async () => {
    expect(await run('import os\nos.close(1); os.close(2)\nos._exit(0)')).toMatchObject({
      status: 'succeeded',
    });
    expect(await run('import sys\nsys.stdout.close(); sys.stderr.close()')).toMatchObject({ exit_code: 0 });
    expect(await run('import sys\nsys.stdout = sys.stderr = None\n1/0')).toMatchObject({ exit_code: 1 });
  });
});

describe('the end of a script', () => {
  test('waits for threads, then runs atexit', async () => {
    const code = [
      'import atexit, threading, time',
      'atexit.register(print, "atexit")',
      'threading.Thread(target=lambda: (time.sleep(.1), print("thread"))).start()',
      'threading.Thread(target=time.sleep, args=(99,), daemon=True).start()',
      'print("main")',
    ].join('\n');
    expect(await output(code)).toBe('main\nthread\natexit\n');
  });

  test('exceptions in threads and atexit go to stderr and leave the exit code', async () => {
    const code =
      'import atexit, threading\natexit.register(lambda: 1/0)\nt = threading.Thread(target=lambda: {}["k"])\nt.start(); t.join()\nprint("end")';
    const result = await run(code);
    expect(result).toMatchObject({ status: 'succeeded', exit_code: 0, stdout: 'end\n', error: null });
    expect(result.stderr).toContain('KeyError');
    expect(result.stderr).toContain('ZeroDivisionError');
  });

  test('atexit runs after an exception too, and sys.excepthook is the program’s', async () => {
    const code =
      'import atexit, sys\natexit.register(print, "bye")\nsys.excepthook = lambda t, e, tb: print("hook", t.__name__, tb.tb_lineno)\n1/0';
    expect(await run(code)).toMatchObject({
      exit_code: 1,
      stdout: 'hook ZeroDivisionError 4\nbye\n',
      stderr: '',
      error: { type: 'ZeroDivisionError', line: 4 },
    });
  });
});
