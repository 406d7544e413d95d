/** `codecell` as a process of its own. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './until.ts';

export const CODECELL_MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts');

export interface ProcessOptions {
  /** Variables besides PATH and HOME. */
  environment?: Record<string, string>;
  currentFolder?: string;
  /** Runs as this user, and a group of the same number; for root alone. */
  userId?: number;
}

export class CodecellProcess {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  readonly #ended: Promise<unknown>;

  constructor(args: string[], { environment = {}, currentFolder = tmpdir(), userId }: ProcessOptions = {}) {
    this.child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', CODECELL_MAIN, ...args], {
      cwd: currentFolder,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(userId === undefined ? {} : { uid: userId, gid: userId }),
      // Nothing is left behind by a test that ran out of time.
      timeout: 180_000,
      killSignal: 'SIGKILL',
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.#ended = once(this.child, 'close');
  }

  /** The exit code, or the signal that ended it. */
  async ended(): Promise<number | NodeJS.Signals | null> {
    await this.#ended;
    return this.child.exitCode ?? this.child.signalCode;
  }

  /** Waits for `codecell serve` to listen and returns its address. */
  async url(): Promise<string> {
    await until(() => /listens on \S+\n/.test(this.stdout) || this.child.exitCode !== null);
    const url = /listens on (\S+)\n/.exec(this.stdout)?.[1];
    if (url === undefined) throw new Error(`codecell ended: ${this.stderr}`);
    return url;
  }
}

/** Runs a command to its end. */
export async function runCodecell(args: string[], options?: ProcessOptions) {
  const codecell = new CodecellProcess(args, options);
  const exit = await codecell.ended();
  return { exit, stdout: codecell.stdout, stderr: codecell.stderr };
}
