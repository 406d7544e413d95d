/** `codecell run` from outside: output, the program's input, exit codes, signals. */

import { readFileSync } from 'node:fs';
import { chmod, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { request, startPool } from '../support/pool.ts';
import { isAlive, processTree } from '../support/processes.ts';
import { until } from '../support/until.ts';
import { folderWith, run, runProgram, start } from './command.ts';

/** What a process runs; null once it is gone. */
function nameOf(process: number): string | null {
  try {
    return readFileSync(`/proc/${process}/comm`, 'utf8').trim();
  } catch {
    return null;
  }
}

describe('what the program writes', () => {
  test('passes through byte for byte, with the value behind it', async () => {
    const code =
      'import os\nos.write(1, b"\\xff\\x00\\x1b[1m"); os.write(2, b"err\\n")\nprint("open", end="")\n6 * 7';
    const folder = await folderWith({ 'program.py': code });
    const command = start(['program.py'], { folder });
    const bytes: Buffer[] = [];
    command.child.stdout?.on('data', (chunk: Buffer) => bytes.push(chunk));
    expect(await command.ended).toBe(0);
    expect(Buffer.concat(bytes).toString('latin1')).toBe('\xff\x00\x1b[1mopen\n42\n');
    expect(command.stderr()).toBe('err\n');
  });

  test('arrives before the program has ended', async () => {
    const folder = await folderWith({ 'program.py': 'print("first", flush=True)\nwhile True: pass' });
    const command = start(['program.py'], { folder });
    await until(() => command.stdout() === 'first\n');
    expect(command.child.exitCode).toBeNull();
    command.child.kill('SIGINT');
    expect(await command.ended).toBe(130);
    expect(command.stdout()).toBe('first\n');
    expect(command.stderr()).toBe('');
  });

  test('ends at 1 MiB, which is said', async () => {
    const { exit, stdout, stderr } = await runProgram('print("x" * 3_000_000)');
    expect([exit, stdout.length]).toEqual([0, 2 ** 20]);
    expect(stderr).toBe('codecell: stdout was cut after 1 MiB\n');
  });

  test('with --json is in the Run, which is all there is', async () => {
    const code =
      'import sys, matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig("a.png")\nprint("out")\nprint("err", file=sys.stderr)\n{"a": [1.5, None]}';
    const { exit, stdout, stderr, folder } = await runProgram(code, ['--json', '--timeout-ms', '9000']);
    expect([exit, stderr]).toEqual([0, '']);
    expect(stdout.indexOf('\n')).toBe(stdout.length - 1);
    expect(JSON.parse(stdout)).toMatchObject({
      id: expect.stringMatching(/^run_/),
      status: 'succeeded',
      exit_code: 0,
      stdout: 'out\n',
      stderr: 'err\n',
      value: { type: 'dict', text: "{'a': [1.5, None]}", json: { a: [1.5, null] } },
      images: [{ name: 'a.png' }],
      error: null,
      limits: { timeout_ms: 9000, memory_mb: 512 },
    });
    expect(await readdir(folder)).toEqual(['program.py']);
  });

  test('to a reader that has gone stops it', async () => {
    const folder = await folderWith({
      'program.py': 'import time\nwhile True: print("again"); time.sleep(.01)',
    });
    const command = start(['program.py'], { folder });
    await until(() => command.stdout() !== '');
    command.child.stdout?.destroy();
    expect(await command.ended).toBe(141);
  });
});

describe('what the program reads', () => {
  const ECHO = 'import sys, json\nprint(json.dumps([sys.stdin.read(), inputs]))';
  const echoed = (stdout: string) => JSON.parse(stdout) as unknown;

  test('is our own stdin when that is piped', async () => {
    const { stdout } = await runProgram(ECHO, [], { stdin: 'grüße\n' });
    expect(echoed(stdout)).toEqual(['grüße\n', {}]);
  });

  test('is our own stdin with --stdin -', async () => {
    const { stdout } = await runProgram(ECHO, ['--stdin', '-'], { stdin: 'piped' });
    expect(echoed(stdout)).toEqual(['piped', {}]);
  });

  test('is the file of --stdin, whatever our own stdin is, which may stay open', async () => {
    const folder = await folderWith({ 'data.txt': 'from a file' });
    const { stdout } = await runProgram(ECHO, ['--stdin', 'data.txt'], { folder, stdin: null });
    expect(echoed(stdout)).toEqual(['from a file', {}]);
  });

  test('is nothing when the program itself is piped', async () => {
    const { stdout, exit } = await run(['-'], { stdin: ECHO });
    expect([exit, echoed(stdout)]).toEqual([0, ['', {}]]);
  });

  test('is a file beside a program that is piped', async () => {
    const folder = await folderWith({ 'data.txt': 'x' });
    const { stdout } = await run(['-', '--stdin', 'data.txt'], { folder, stdin: ECHO });
    expect(echoed(stdout)).toEqual(['x', {}]);
  });

  test('is inputs as they were written: 1.0 a float, big integers exact', async () => {
    const inputs = '{"a": 1.0, "b": 12345678901234567890123, "c": {"a": []}}';
    const { stdout } = await runProgram('print(inputs)', ['--inputs', inputs]);
    expect(stdout).toBe("{'a': 1.0, 'b': 12345678901234567890123, 'c': {'a': []}}\n");
  });

  test('is inputs from a file, with more than a hundred members', async () => {
    const inputs = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`k${index}`, index]));
    const folder = await folderWith({ 'inputs.json': `\uFEFF${JSON.stringify(inputs)}\n` });
    const { stdout } = await runProgram('print(len(inputs))', ['--inputs', '@inputs.json'], { folder });
    expect(stdout).toBe('150\n');
  });
});

describe('the exit code', () => {
  test.each<[string, string[], number, string]>([
    ['import sys; sys.exit(7)', [], 7, ''],
    ['import os; os._exit(255)', ['--json'], 255, ''],
    ['import sys; sys.exit("bye")', [], 1, 'bye\n'],
    [
      'x = 1\nwhile True:\n    pass',
      ['--timeout-ms', '300'],
      124,
      'codecell: timed out after 300 ms at line 2\nhint: Do less',
    ],
    [
      'x = bytearray(10 ** 9)',
      ['--memory-mb', '64'],
      137,
      'codecell: out of memory: it may use 64 MB\nhint: ',
    ],
    ['import ctypes; ctypes.string_at(0)', [], 139, 'codecell: The process was ended by SIGSEGV.\n'],
    [
      'import signal; signal.raise_signal(signal.SIGKILL)',
      [],
      137,
      'codecell: The process was ended by SIGKILL.\n',
    ],
    ['import os\nwhile True: os.write(2, b"x" * 65536)', [], 153, 'codecell: The run wrote more than 16 MiB'],
    ['import socket\nsocket.create_connection(("1.1.1.1", 80))', [], 1, 'hint: There is no network here.'],
    ['1/0', [], 1, 'ZeroDivisionError: division by zero\n'],
  ])('of %j %j is %i', async (code, args, expected, notice) => {
    const { exit, stderr } = await runProgram(code, args);
    expect([exit, stderr.slice(-1000)]).toEqual([expected, expect.stringContaining(notice)]);
    if (notice === '') expect(stderr).toBe('');
  });

  test('is 130 for Ctrl-C and 143 for SIGTERM, and nothing is left running', async () => {
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const folder = await folderWith({
        'program.py':
          'import matplotlib.pyplot as plt\nplt.plot([1]); plt.show()\nprint("up")\nwhile True: pass',
      });
      const command = start(['program.py'], { folder });
      await until(() => command.stdout() === 'up\n');
      const tree = processTree(command.child.pid!);
      expect(tree.length).toBeGreaterThan(2);
      command.child.kill(signal);
      expect(await command.ended).toBe(code);
      // Killed by then, and gone as soon as the kernel has torn them down.
      await until(() => !tree.some(isAlive));
      expect(await readdir(folder)).toEqual(['figure-1.png', 'program.py']);
    }
  });

  test('is 130 for Ctrl-C while stdin is still awaited, and while the sandbox starts', async () => {
    const folder = await folderWith({ 'program.py': 'print("never")' });
    for (const [file, stdin] of [
      ['-', null],
      ['program.py', ''],
    ] as const) {
      const command = start([file], { folder, stdin });
      await until(() => processTree(command.child.pid!).some((process) => nameOf(process) === 'bwrap'));
      command.child.kill('SIGINT');
      expect([await command.ended, command.stdout(), command.stderr()]).toEqual([130, '', '']);
    }
  });

  test('is 70 when the sandbox cannot start, with the remedy', async () => {
    const bin = await folderWith({ bwrap: '#!/bin/sh\necho no such luck >&2\nexit 1\n' });
    await chmod(join(bin, 'bwrap'), 0o755);
    // Started by root, it runs as a user who has to find it.
    await chmod(bin, 0o755);
    const { exit, stdout, stderr } = await runProgram('print(1)', [], {
      environment: { PATH: `${bin}:${process.env.PATH}` },
    });
    expect([exit, stdout]).toEqual([70, '']);
    expect(stderr).toContain('codecell: The isolation is not complete on this host');
    expect(stderr).toContain('Remedy: ');
  });
});

describe('a run that is lost', () => {
  test('after it has written something is said to be lost, and not run again', async () => {
    const folder = await folderWith({ 'program.py': 'print("once")\nwhile True: pass' });
    const command = start(['program.py'], { folder });
    await until(() => command.stdout() !== '');
    process.kill(processTree(command.child.pid!)[1]!, 'SIGKILL');
    expect(await command.ended).toBe(70);
    expect(command.stdout()).toBe('once\n');
    expect(command.stderr()).toBe('codecell: the run was lost after some of its output had been passed on\n');
  });

  test('before that is run again, and its output passed on once', async () => {
    const { pool } = await startPool();
    const chunks: string[] = [];
    let starts = 0;
    const execution = await pool.execute(request('import time\ntime.sleep(.5)\nprint("once")'), {
      onStart: () => {
        if (++starts === 1) process.kill(pool.launcherProcessIds[0]!, 'SIGKILL');
      },
      onOutput: (stream, chunk) => chunks.push(`${stream}: ${chunk}`),
    });
    expect(starts).toBe(2);
    expect(execution.stdout).toBe('once\n');
    expect(chunks).toEqual(['stdout: once\n']);
  });
});
