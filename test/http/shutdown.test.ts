import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CodecellProcess } from '../support/process.ts';
import { RawConnection } from '../support/raw-http.ts';
import { until } from '../support/until.ts';

const ADMIN_KEY = 'an-admin-key-of-more-than-32-characters';

let folder: string;
let codecell: CodecellProcess;
let url: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codecell-test-'));
  codecell = new CodecellProcess(['serve'], {
    environment: {
      CODECELL_PORT: '0',
      CODECELL_DATA_DIR: folder,
      CODECELL_ADMIN_KEY: ADMIN_KEY,
      CODECELL_CONCURRENCY: '1',
      CODECELL_LOG_LEVEL: 'debug',
    },
  });
  url = await codecell.url();
});
afterEach(async () => {
  codecell.child.kill('SIGKILL');
  await codecell.ended();
  await rm(folder, { recursive: true, force: true });
});

async function execute(code: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${url}/v1/execute`, {
    method: 'POST',
    headers: { 'X-API-Key': ADMIN_KEY, 'Content-Type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** Waits until this many programs have been asked for. */
function asked(count: number): Promise<void> {
  return until(() => codecell.stderr.split('the program is asked to be run').length === count + 1);
}

describe.each(['SIGTERM', 'SIGINT'] as const)('%s', (signal) => {
  it('lets the running program finish, refuses what waits and what is new, and ends with 0', async () => {
    const running = execute('import time; time.sleep(2); print("finished")');
    await asked(1);
    const waiting = execute('print("never")');
    await asked(2);
    codecell.child.kill(signal);

    expect(await waiting).toMatchObject({ status: 503, body: { code: 'shutting_down' } });
    expect(await execute('print("never")')).toMatchObject({ status: 503, body: { code: 'shutting_down' } });
    const readiness = await fetch(`${url}/readyz`);
    expect(readiness.status).toBe(503);
    expect(await readiness.json()).toMatchObject({ status: 503, code: 'shutting_down' });
    expect(readiness.headers.get('content-type')).toBe('application/problem+json');
    expect(readiness.headers.get('retry-after')).toBe('1');
    expect((await fetch(`${url}/healthz`)).status).toBe(200);

    expect(await running).toMatchObject({ status: 200, body: { stdout: 'finished\n' } });
    expect(await codecell.ended()).toBe(0);
  });
});

describe('an answer that is due when the service ends', () => {
  it('closes its connection', async () => {
    const connection = new RawConnection(Number(new URL(url).port));
    const program = '{"code": "import time; time.sleep(1)"}';
    connection.write(
      `POST /v1/execute HTTP/1.1\r\nHost: x\r\nX-API-Key: ${ADMIN_KEY}\r\nContent-Type: application/json\r\nContent-Length: ${program.length}\r\n\r\n${program}`,
    );
    await asked(1);
    codecell.child.kill('SIGTERM');
    const [answer] = await connection.answers(1);
    expect([answer?.status, answer?.headers.connection]).toEqual([200, 'close']);
  });
});

describe('a second signal', () => {
  it('ends the service at once', async () => {
    const running = execute('import time; time.sleep(25)').catch(() => 'cut off');
    await asked(1);
    codecell.child.kill('SIGTERM');
    await until(() => codecell.stderr.includes('shutting down'));
    codecell.child.kill('SIGTERM');
    expect(await codecell.ended()).toBe(143);
    expect(await running).toBe('cut off');
  });
});

describe('a shutdown with nothing running', () => {
  it('does not wait for connections that are kept open', async () => {
    const idle = new RawConnection(Number(new URL(url).port));
    idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await idle.answers(1);
    codecell.child.kill('SIGTERM');
    expect(await codecell.ended()).toBe(0);
  });
});
