/** A reader that goes before it has read everything, as `head` does. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { withFolder } from '../support/folder.ts';
import { CODECELL_MAIN } from '../support/process.ts';

it.each([
  ['config', '--json'],
  ['keys', 'list', '--json'],
  ['usage', '--csv'],
])('ends codecell %s %s as SIGPIPE would, without a word', (...args) =>
  withFolder(async (folder) => {
    await (await openDatabase(folder)).destroy();
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', CODECELL_MAIN, ...args], {
      env: { PATH: process.env.PATH, CODECELL_DATA_DIR: folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    const [said] = await Promise.all([child.stderr.toArray(), once(child, 'close')]);
    expect([child.exitCode, Buffer.concat(said).toString()]).toEqual([141, '']);
  }),
);
