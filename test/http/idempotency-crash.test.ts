import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CodecellProcess } from '../support/process.ts';
import { until } from '../support/until.ts';

const ADMIN_KEY = 'an-admin-key-of-more-than-32-characters';

let folder: string;
let codecell: CodecellProcess;

function start(): void {
  codecell = new CodecellProcess(['serve'], {
    environment: {
      CODECELL_PORT: '0',
      CODECELL_DATA_DIR: folder,
      CODECELL_ADMIN_KEY: ADMIN_KEY,
      CODECELL_LOG_LEVEL: 'debug',
    },
  });
}

async function kill(): Promise<void> {
  codecell.child.kill('SIGKILL');
  await codecell.ended();
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codecell-test-'));
  start();
});
afterEach(async () => {
  await kill();
  await rm(folder, { recursive: true, force: true });
});

async function post(idempotencyKey: string, code: string) {
  const response = await fetch(`${await codecell.url()}/v1/execute`, {
    method: 'POST',
    headers: {
      'X-API-Key': ADMIN_KEY,
      'Content-Type': 'application/json',
      'Idempotency-Key': idempotencyKey,
    },
    body: JSON.stringify({ code }),
  });
  const text = await response.text();
  return { status: response.status, text, replay: response.headers.get('idempotent-replay') };
}

describe('a service that is killed', () => {
  it('while a request runs frees its key at the next start', async () => {
    const code = 'import time; time.sleep(25)';
    const cutOff = post('killed', code).catch(() => 'cut off');
    await until(() => codecell.stderr.includes('the program is asked to be run'));
    await kill();
    expect(await cutOff).toBe('cut off');
    start();
    expect(await post('killed', 'print(1)')).toMatchObject({ status: 200, replay: null });
  });

  it('after an answer gives it again at the next start', async () => {
    const first = await post('answered', 'import random; random.random()');
    await kill();
    start();
    expect(await post('answered', 'import random; random.random()')).toEqual({ ...first, replay: 'true' });
    expect((await post('answered', 'print(2)')).status).toBe(422);
  });
});
