/** The floor as a process: see floor.py. */

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { readRuntime } from '../src/sandbox/runtime.ts';

export class Floor {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(process: ChildProcess) {
    this.#process = process;
    this.#lines = createInterface({ input: process.stdout! })[Symbol.asyncIterator]();
  }

  /** Starts one and waits until its libraries are loaded. */
  static async start(): Promise<Floor> {
    const { folder } = await readRuntime();
    const script = join(import.meta.dirname, 'floor.py');
    const environment = { ...process.env, MPLCONFIGDIR: join(folder, 'matplotlib') };
    const floor = new Floor(
      spawn(join(folder, 'venv', 'bin', 'python'), [script], {
        stdio: ['pipe', 'pipe', 'inherit'],
        env: environment,
      }),
    );
    await floor.#lines.next();
    return floor;
  }

  /** Runs a program `count` times, one after the other. Answers each time in milliseconds. */
  async run(code: string, count: number): Promise<number[]> {
    this.#process.stdin!.write(`${JSON.stringify({ code, count })}\n`);
    const { value } = await this.#lines.next();
    return JSON.parse(value);
  }

  stop(): void {
    this.#process.kill();
  }
}
