/** `codecell run` called in a way that cannot work: said before anything is run. */

import { describe, expect, test } from 'vitest';
import { MEMORY_MB_MAX } from '../../src/cli/run-request.ts';
import { folderWith, run, runProgram } from './command.ts';

describe('wrong use ends with 2 and says what to change:', () => {
  const deep = `{"a": ${'['.repeat(300)}${']'.repeat(300)}}`;
  const cases: [string[], string][] = [
    [['nothing.py'], 'cannot read nothing.py: no such file or directory'],
    [['/'], 'cannot read /: '],
    [['latin1.py'], 'latin1.py is not UTF-8 text'],
    [['large.py'], 'large.py is longer than 1 MiB, which is the most'],
    [['ok.py', '--stdin', 'large.txt'], 'large.txt is longer than 4 MiB, which is the most'],
    [['ok.py', '--stdin', '/dev/zero'], '/dev/zero is longer than 4 MiB, which is the most'],
    [['ok.py', '--stdin', 'nothing.txt'], 'cannot read nothing.txt: no such file or directory'],
    [['-', '--stdin', '-'], 'the program and its stdin cannot both be read from standard input'],
    [['ok.py', '--inputs', '[1]'], '--inputs must be a JSON object, such as {"rows": [1, 2]}'],
    [['ok.py', '--inputs', 'null'], '--inputs must be a JSON object, such as {"rows": [1, 2]}'],
    [['ok.py', '--inputs', '{"a": NaN}'], '--inputs is not valid JSON: '],
    [['ok.py', '--inputs', '{}, "code": ""'], '--inputs is not valid JSON: '],
    [['ok.py', '--inputs', deep], '--inputs: Arrays and objects are nested more than 200 deep'],
    [['ok.py', '--inputs', '@large.txt'], 'large.txt is longer than 4 MiB, which is the most'],
    [['ok.py', '--inputs', '@latin1.py'], 'latin1.py is not UTF-8 text'],
    [['ok.py', '--timeout-ms', '0'], '--timeout-ms must be a whole number from 1 to 30000, not "0"'],
    [['ok.py', '--timeout-ms', '30001'], '--timeout-ms must be a whole number from 1 to 30000, not "30001"'],
    [['ok.py', '--memory-mb', '31'], '--memory-mb must be a whole number from 32 to 2048, not "31"'],
    [['ok.py', '--memory-mb', '64.5'], '--memory-mb must be a whole number from 32 to 2048, not "64.5"'],
    [['ok.py', '--images', 'ok.py'], '--images ok.py: this is no folder'],
    [['ok.py', '--images', '/proc/images'], '--images /proc/images: the folder cannot be made'],
    [['ok.py', '--quiet'], "error: unknown option '--quiet'"],
    [['ok.py', 'argument'], 'error: too many arguments'],
    [[], "error: missing required argument 'file'"],
  ];

  test.each(cases.map(([args, message]) => ({ args, message })))('$args', async ({ args, message }) => {
    const folder = await folderWith({
      'ok.py': 'print("ran")',
      'latin1.py': Buffer.from('# caf\xe9', 'latin1'),
      'large.py': '#'.repeat(2 ** 20 + 1),
      'large.txt': ' '.repeat(2 ** 22 + 1),
    });
    const { exit, stdout, stderr } = await run(args, { folder });
    expect([exit, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('    at ');
  });

  test('piped stdin beyond the cap', async () => {
    const { exit, stderr } = await runProgram('print(1)', [], { stdin: Buffer.alloc(2 ** 22 + 1, 'x') });
    expect([exit, stderr]).toEqual([2, 'codecell: standard input is longer than 4 MiB, which is the most\n']);
  });

  test('but --help is no wrong use', async () => {
    expect(await run(['--help'])).toMatchObject({
      exit: 0,
      stderr: '',
      stdout: expect.stringContaining('--memory-mb'),
    });
  });

  test('memory is bounded as it is over HTTP by default', () => {
    expect(MEMORY_MB_MAX).toBe(2048);
  });
});
