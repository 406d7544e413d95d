/** `bin/codecell run` as a shell starts it: a process of its own, in a folder of its own, with a stdin. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export const CODECELL = join(import.meta.dirname, '..', '..', 'bin', 'codecell');

export interface RunningCommand {
  child: ChildProcess;
  /** What it has written so far. */
  stdout: () => string;
  stderr: () => string;
  /** The exit code, or the signal that ended it. */
  ended: Promise<number | NodeJS.Signals>;
}

export interface CommandOptions {
  folder?: string;
  /** Sent on its stdin, which is then closed; null leaves it open. */
  stdin?: string | Buffer | null;
  environment?: Record<string, string>;
}

/** A folder with these files that is gone when the test ends. */
export async function folderWith(files: Record<string, string | Buffer> = {}): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'codecell-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  return folder;
}

/** Starts `codecell run` with these arguments. */
export function start(args: string[], options: CommandOptions = {}): RunningCommand {
  const { folder = tmpdir(), stdin = '', environment = {} } = options;
  const child = spawn(CODECELL, ['run', ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const written = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].on('data', (chunk: Buffer) => written[stream].push(chunk));
  }
  // A command that needs no input may have ended before it is written.
  child.stdin.on('error', () => undefined);
  if (stdin !== null) child.stdin.end(stdin);
  return {
    child,
    stdout: () => Buffer.concat(written.stdout).toString(),
    stderr: () => Buffer.concat(written.stderr).toString(),
    ended: once(child, 'close').then(() => child.exitCode ?? child.signalCode!),
  };
}

/** Runs `codecell run` to its end. */
export async function run(args: string[], options?: CommandOptions) {
  const command = start(args, options);
  const exit = await command.ended;
  return { exit, stdout: command.stdout(), stderr: command.stderr() };
}

/** Runs a program that is written into a file first. */
export async function runProgram(code: string | Buffer, args: string[] = [], options: CommandOptions = {}) {
  const folder = options.folder ?? (await folderWith());
  await writeFile(join(folder, 'program.py'), code);
  return { folder, ...(await run(['program.py', ...args], { ...options, folder })) };
}
