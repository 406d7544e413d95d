/** The service as an ordinary user, for whom set-up has done its work. */

import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isReachableByOthers } from '../../src/sandbox/launchers/bubblewrap.ts';
import { PROJECT_FOLDER } from '../../src/sandbox/runtime.ts';
import { CodecellProcess } from '../support/process.ts';

const OTHER_USER = 61_234;
const ADMIN_KEY = 'an-admin-key-of-an-ordinary-user-0001';
const possible = process.getuid?.() === 0 && isReachableByOthers(PROJECT_FOLDER);

test.skipIf(!possible)('started as an ordinary user, the service runs a program', async () => {
  const home = await mkdtemp(join(tmpdir(), 'codecell-user-'));
  onTestFinished(() => rm(home, { recursive: true }));
  await chown(home, OTHER_USER, OTHER_USER);
  const service = new CodecellProcess(['serve'], {
    environment: {
      HOME: home,
      CODECELL_PORT: '0',
      CODECELL_DATA_DIR: join(home, 'data'),
      CODECELL_ADMIN_KEY: ADMIN_KEY,
    },
    userId: OTHER_USER,
  });
  const answer = await fetch(`${await service.url()}/v1/execute`, {
    method: 'POST',
    headers: { 'X-API-Key': ADMIN_KEY, 'Content-Type': 'application/json' },
    body: JSON.stringify({ code: 'import matplotlib.pyplot as plt\nplt.plot([1])\nprint("ran")' }),
  });
  expect(await answer.json()).toMatchObject({
    status: 'succeeded',
    stdout: 'ran\n',
    images: [{ format: 'png' }],
  });
  service.child.kill('SIGTERM');
  expect(await service.ended()).toBe(0);
});
