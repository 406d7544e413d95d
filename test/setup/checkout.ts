/**
 * A copy of this checkout in a folder of its own, with a space in its name, for running scripts from outside. What
 * set-up built here already is linked into it, so that a test pays for no installation.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export const here = fileURLToPath(new URL('../..', import.meta.url));

export const isRoot = process.getuid?.() === 0;

const COPIED = [
  'bin',
  'scripts',
  'sandbox/prepare.py',
  'sandbox/requirements.in',
  'sandbox/requirements.lock',
  'package.json',
  'package-lock.json',
  '.npmrc',
];

/** Everything that set-up calls, bubblewrap and Node excepted. */
const TOOLS = [
  'apt-cache',
  'basename',
  'cat',
  'cmp',
  'cp',
  'cut',
  'diff',
  'dirname',
  'env',
  'find',
  'flock',
  'grep',
  'id',
  'mkdir',
  'mktemp',
  'mv',
  'readlink',
  'rm',
  'sed',
  'setpriv',
  'sh',
  'sha256sum',
  'stat',
  'tail',
  'touch',
  'true',
  'uname',
];

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  /** The whole PATH; by default the fakes, then this process's own. */
  path?: string[];
  /** As an ordinary user; a test that is one already stays what it is. */
  ordinaryUser?: boolean;
}

export class Checkout implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'codecell set-up '));
  /** Commands that shadow the real ones, see {@link fake}. */
  readonly fakes = join(this.folder, 'fakes');
  /** Links to the real commands that set-up needs, so that a PATH can leave out the others. */
  readonly tools = join(this.folder, 'tools');

  constructor() {
    chmodSync(this.folder, 0o755);
    for (const name of COPIED) cpSync(join(here, name), this.at(name), { recursive: true });
    for (const folder of [this.fakes, this.tools, this.at('.runtime'), this.at('src')]) {
      mkdirSync(folder, { recursive: true });
    }
    for (const tool of TOOLS) symlinkSync(`/usr/bin/${tool}`, join(this.tools, tool));
    writeFileSync(
      this.at('src/main.ts'),
      'console.log(JSON.stringify([process.execPath, ...process.argv.slice(2)]));\n',
    );
    symlinkSync(process.execPath, join(this.fakes, 'node'));
  }

  /** Links in what set-up built for the real checkout. */
  withEverythingInstalled(): this {
    symlinkSync(join(here, 'node_modules'), this.at('node_modules'));
    for (const name of ['venv', 'manifest.json', 'prepared', 'matplotlib']) {
      symlinkSync(join(here, '.runtime', name), this.at('.runtime', name));
    }
    return this;
  }

  at(...names: string[]): string {
    return join(this.folder, ...names);
  }

  has(name: string): boolean {
    return existsSync(this.at(name));
  }

  /** Puts a shell script of this name before the real command. `$HERE` in it is the checkout. */
  fake(name: string, script: string): this {
    rmSync(join(this.fakes, name), { force: true });
    writeFileSync(join(this.fakes, name), `#!/bin/sh\nHERE='${this.folder}'\n${script}\n`, { mode: 0o755 });
    return this;
  }

  /** A Node on PATH that is too old for the service. */
  withOldNode(): this {
    return this.fake('node', 'echo v20.19.0');
  }

  start(command: string, args: string[] = [], options: RunOptions = {}): ChildProcess {
    const path = options.path ?? [this.fakes, process.env.PATH ?? ''];
    const drop = options.ordinaryUser && isRoot;
    const identity = ['--reuid', '65534', '--regid', '65534', '--clear-groups', '--'];
    return spawn(drop ? '/usr/bin/setpriv' : command, drop ? [...identity, command, ...args] : args, {
      env: { PATH: path.join(':'), HOME: this.folder },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
  }

  run(command: string, args?: string[], options?: RunOptions): Promise<Finished> {
    return finished(this.start(command, args, options));
  }

  setup(options?: RunOptions): Promise<Finished> {
    return this.run(this.at('scripts/setup'), [], options);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function finished(child: ChildProcess): Promise<Finished> {
  if (!child.stdout || !child.stderr) throw new TypeError('The process was started without pipes.');
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code, stdout, stderr };
}

/** The folder of the Node that runs the tests. */
export const currentNodeFolder = dirname(process.execPath);
