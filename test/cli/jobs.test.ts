/** `codecell jobs`: beside the running service, on the same data folder. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDLESS, JobsApi } from '../support/jobs-api.ts';
import { CODECELL_MAIN, runCodecell } from '../support/process.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
let api: JobsApi;
beforeAll(async () => {
  service = await startTestService({ settings: { CONCURRENCY: '1' } });
  api = new JobsApi(service.url, service.adminKey);
});
afterAll(() => service.stop());

const jobs = (...args: string[]) =>
  runCodecell(['jobs', ...args], { environment: { CODECELL_DATA_DIR: service.dataDir } });

const ERASE_LINE = '\r\u001b[K';

/** A command on a pseudo-terminal, which Node.js cannot make. */
class Terminal {
  readonly #child: ChildProcess;
  written = '';

  constructor(args: string[]) {
    this.#child = spawn(
      'python3',
      ['-c', 'import pty, sys; pty.spawn(sys.argv[1:])', process.execPath, CODECELL_MAIN, ...args],
      {
        env: { PATH: process.env.PATH, CODECELL_DATA_DIR: service.dataDir },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.written += text;
    });
  }

  async ended(): Promise<string> {
    await once(this.#child, 'close');
    return this.written;
  }
}

describe('codecell jobs', () => {
  it('lists and shows what the service knows, without anything that moves the cursor', async () => {
    const id = await api.submit('print("\\033[2Jred", 1); 1/0');
    const run = await api.ended(id);
    const list = await jobs('list');
    expect(list.stdout).toContain(`${id} failed`);
    expect(JSON.parse((await jobs('list', '--json', '--status', 'failed')).stdout)).toHaveLength(1);
    expect((await jobs('list', '--status', 'lost')).stdout).toBe('There are no such jobs.\n');
    const shown = await jobs('show', id);
    expect(shown.stdout).toContain('ZeroDivisionError: division by zero');
    expect(shown.stdout).toContain('?[2Jred 1');
    expect(shown.stdout).not.toContain('\u001b');
    expect(JSON.parse((await jobs('show', id, '--json')).stdout)).toEqual(run);
  });

  it('shows nothing of an error, a value or a hint that moves the cursor', async () => {
    const failed = await api.submit(
      'class E(Exception): pass\nE.__name__ = "\\x1b[31mRED"\nraise E("\\x1b[2J\\x1b]0;title\\x07\u2028")',
    );
    await api.ended(failed);
    const { stdout } = await jobs('show', failed);
    expect(stdout).toContain('?[31mRED: ?[2J?]0;title??');
    const valued = await api.submit('class V:\n  def __repr__(self): return "\\x1b[2J"\nV()');
    await api.ended(valued);
    expect((await jobs('show', valued)).stdout).toContain('--- value\n?[2J\n');
    expect(stdout).not.toContain('\u001b');
  });

  it('waits for the end, without a spinner where there is no terminal', async () => {
    const good = await api.submit('import time; time.sleep(1); print("done")');
    expect(await jobs('wait', good)).toMatchObject({ exit: 0, stderr: '' });
    const bad = await api.submit('1/0');
    expect((await jobs('wait', bad, '--json')).exit).toBe(1);
  });

  it('shows on a terminal what it waits for, and leaves nothing of that', async () => {
    const id = await api.submit(ENDLESS);
    const terminal = new Terminal(['jobs', 'wait', id]);
    await until(() => terminal.written.includes('⠹ running'));
    await api.cancel(id);
    const [, ...lines] = (await terminal.ended()).split(ERASE_LINE);
    const last = lines.pop();
    for (const line of lines) expect(line).toMatch(/^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] (queued|running) \d+ s$/);
    expect(last).toContain('cancelled');
  });

  it('cancels what runs and what waits, and whoever waits for it over HTTP is told', async () => {
    const running = await api.submit(ENDLESS);
    await api.running(running);
    const queued = await api.submit('print("never")');
    const waits = [api.show(queued, 30), api.show(running, 30)];
    expect((await jobs('cancel', queued)).stdout).toContain('cancelled');
    expect(JSON.parse((await jobs('cancel', running, '--json')).stdout).status).toBe('cancelled');
    for (const run of await Promise.all(waits)) expect(run.status).toBe('cancelled');
    await service.loaded(0, 0);
  });

  it('says what is not there', async () => {
    const missing = await jobs('show', 'run_x');
    expect([missing.exit, missing.stderr]).toEqual([1, 'codecell: There is no job run_x.\n']);
  });
});
