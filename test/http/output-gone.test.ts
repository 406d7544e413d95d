/** A service whose standard output and error nobody takes: what it says is lost, and what it does is not. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { withFolder } from '../support/folder.ts';
import { CODECELL_MAIN } from '../support/process.ts';
import { until } from '../support/until.ts';

const ADMIN_KEY = 'an-admin-key-of-more-than-32-characters';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

it('goes on while the disk is full that both are written to', () =>
  withFolder(async (folder) => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const full = openSync('/dev/full', 'w');
    const service = spawn(process.execPath, [CODECELL_MAIN, 'serve'], {
      stdio: ['ignore', full, full],
      env: {
        PATH: process.env.PATH,
        CODECELL_DATA_DIR: folder,
        CODECELL_PORT: new URL(url).port,
        CODECELL_ADMIN_KEY: ADMIN_KEY,
      },
    });
    const ended = once(service, 'exit');
    await until(
      async () => service.exitCode !== null || (await fetch(`${url}/readyz`).catch(() => null))?.ok === true,
    );
    for (let count = 0; count < 20; count++) {
      const answer = await fetch(`${url}/v1/execute`, {
        method: 'POST',
        headers: { 'X-API-Key': ADMIN_KEY, 'Content-Type': 'application/json' },
        body: '{"code": "print(1)"}',
      });
      expect(await answer.json()).toMatchObject({ stdout: '1\n' });
    }
    service.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  }));
