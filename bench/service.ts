/** The service as a process of its own, and one connection per simultaneous caller. */

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ADMIN_KEY = 'benchmark-key-benchmark-key-benchmark';

export interface BenchedServiceOptions {
  /** A script of this folder that is run instead of `codecell serve`. */
  script?: string;
  /** Fills the data folder before the start, and answers the key to use; otherwise it is the admin key. */
  prepare?: (dataDir: string) => Promise<string>;
}

export class BenchedService {
  readonly #process: ChildProcess;
  readonly #dataDir: string;
  readonly #url: string;
  readonly #key: string;
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(process: ChildProcess, dataDir: string, url: string, key: string) {
    this.#process = process;
    this.#dataDir = dataDir;
    this.#url = url;
    this.#key = key;
  }

  static async start({ script, prepare }: BenchedServiceOptions = {}): Promise<BenchedService> {
    const dataDir = await mkdtemp(join(tmpdir(), 'codecell-bench-'));
    const key = (await prepare?.(dataDir)) ?? ADMIN_KEY;
    const [command, ...args] =
      script === undefined
        ? [join(import.meta.dirname, '..', 'bin', 'codecell'), 'serve']
        : [process.execPath, '--disable-warning=ExperimentalWarning', join(import.meta.dirname, script)];
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH,
        CODECELL_PORT: '0',
        CODECELL_DATA_DIR: dataDir,
        CODECELL_ADMIN_KEY: ADMIN_KEY,
        CODECELL_LOG_LEVEL: 'warn',
      },
    });
    const url = await new Promise<string>((resolve, reject) => {
      child.stdout?.on('data', (chunk: Buffer) => {
        const match = /listens on (\S+)/.exec(chunk.toString());
        if (match !== null) resolve(match[1]!);
      });
      child.once('exit', (code) => reject(new Error(`the service ended with code ${code}`)));
    });
    return new BenchedService(child, dataDir, url, key);
  }

  /** One `POST /v1/execute`. Answers its time in milliseconds; any outcome but success is an error. */
  async execute(code: string): Promise<number> {
    const startMs = performance.now();
    const text = await this.#send('POST', '/v1/execute', { code });
    const elapsedMs = performance.now() - startMs;
    if (!text.includes('"status":"succeeded"')) throw new Error(`a run of the benchmark failed: ${text}`);
    return elapsedMs;
  }

  /** Any request whose answer is JSON. */
  async call<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    return JSON.parse(await this.#send(method, path, body)) as Answer;
  }

  #send(method: string, path: string, body?: object): Promise<string> {
    const type = body === undefined ? {} : { 'Content-Type': 'application/json' };
    const headers = { Authorization: `Bearer ${this.#key}`, ...type };
    return new Promise((resolve, reject) => {
      const outgoing = request(this.#url + path, { method, headers, agent: this.#agent });
      outgoing.on('error', reject).on('response', (response) => {
        let received = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          received += chunk;
        });
        response
          .on('end', () => {
            if ((response.statusCode ?? 500) < 400) resolve(received);
            else reject(new Error(`${response.statusCode}: ${received}`));
          })
          .on('error', reject);
      });
      outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** Processor time of the service itself so far, without the sandbox, in milliseconds. */
  cpuMs(): number {
    const fields = readFileSync(`/proc/${this.#process.pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    // utime and stime, in hundredths of a second on every Linux.
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    const ended = new Promise((resolve) => this.#process.once('exit', resolve));
    this.#process.kill('SIGTERM');
    await ended;
    await rm(this.#dataDir, { recursive: true });
  }
}
