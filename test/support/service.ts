/** The real service, composed as `codecell serve` does it, in this process, on a free port and an empty data folder. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ServiceOptions, startService } from '../../src/compose.ts';
import { loadConfig } from '../../src/config.ts';
import type { ServerTimeouts } from '../../src/http/app.ts';
import type { Problem } from '../../src/http/problems.ts';
import type { Key } from '../../src/keys/key.ts';
import { generateSecret, hashSecret } from '../../src/keys/secret.ts';
import type { Run } from '../../src/runs/run.ts';
import { type Clock, systemClock } from '../../src/shared/clock.ts';
import { newKeyId } from '../../src/shared/ids.ts';
import { openDatabase } from '../../src/store/database.ts';
import { KeyStore } from '../../src/store/key-store.ts';
import { until } from './until.ts';

export interface TestServiceOptions {
  /** CODECELL_ variables, without the prefix. */
  settings?: Record<string, string>;
  timeouts?: Partial<ServerTimeouts>;
  clock?: Clock;
  /** Bounds of recorded answers. */
  answers?: NonNullable<ServiceOptions['answers']>;
  /** A folder that is there and stays, to start on what an earlier service has left. */
  dataDir?: string;
}

/** An answer with its body read. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

export interface TestService {
  url: string;
  port: number;
  dataDir: string;
  adminKey: string;
  /** Lines of the log so far, parsed. */
  log: Record<string, unknown>[];
  /** Any request; the path may hold a query. */
  send(path: string, init?: RequestInit): Promise<Answer>;
  /** `POST /v1/execute` with a body that is written as JSON, or sent as it is when it is a string. */
  post(
    body: unknown,
    options?: { key?: string; headers?: Record<string, string>; signal?: AbortSignal },
  ): Promise<Answer>;
  /** As `post`, for a request that must be answered with a Run. */
  execute(body: unknown, options?: { key?: string }): Promise<Run>;
  /** Waits until this many requests hold a slot and this many wait for one. */
  loaded(running: number, waiting: number): Promise<void>;
  /** Stores a further key and returns its secret. */
  addKey(key?: Partial<Key>): Promise<string>;
  stop(): Promise<void>;
}

export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'codecell-test-')));
  const environment: Record<string, string> = { CODECELL_PORT: '0', CODECELL_DATA_DIR: dataDir };
  for (const [name, value] of Object.entries(options.settings ?? {})) environment[`CODECELL_${name}`] = value;
  const log: Record<string, unknown>[] = [];
  const { config } = loadConfig(environment);
  const service = await startService(config, {
    timeouts: options.timeouts ?? {},
    clock: options.clock ?? systemClock,
    ...(options.answers === undefined ? {} : { answers: options.answers }),
    logDestination: { write: (line) => void log.push(JSON.parse(line)) },
  });
  const adminKey = service.firstAdminKey ?? config.adminKey ?? '';

  const send: TestService['send'] = async (path, init) => {
    const response = await fetch(service.url + path, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const post: TestService['post'] = (body, { key = adminKey, headers = {}, signal } = {}) =>
    send('/v1/execute', {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });

  return {
    url: service.url,
    port: Number(new URL(service.url).port),
    dataDir,
    adminKey,
    log,
    send,
    post,
    execute: async (body, postOptions) => {
      const answer = await post(body, postOptions);
      if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`);
      return JSON.parse(answer.text) as Run;
    },
    loaded: (running, waiting) =>
      until(() => service.load().running === running && service.load().waiting === waiting),
    addKey: (key = {}) => addKey(dataDir, key),
    stop: async () => {
      await service.stop();
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true });
    },
  };
}

/** The body of an error. */
export function problemOf(answer: Answer): Problem {
  return JSON.parse(answer.text) as Problem;
}

/** Writes a key as another process would, while the service runs. */
export async function addKey(dataDir: string, key: Partial<Key>): Promise<string> {
  const secret = generateSecret();
  const db = await openDatabase(dataDir);
  await new KeyStore(db).insert(
    {
      id: newKeyId(),
      name: 'test',
      team: null,
      role: 'user',
      limits: {},
      createdAt: new Date(),
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
      ...key,
    },
    hashSecret(secret),
  );
  await db.destroy();
  return secret;
}
