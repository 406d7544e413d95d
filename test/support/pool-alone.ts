/** A process that runs a pool with one endless program in it, to be killed by a test. Prints the launcher's id. */

import { BubblewrapLauncher } from '../../src/sandbox/launchers/bubblewrap.ts';
import { Pool } from '../../src/sandbox/pool.ts';
import { readRuntime } from '../../src/sandbox/runtime.ts';
import { request } from './pool.ts';

const logger = { warn: console.error, error: console.error };
const pool = new Pool({ launcher: new BubblewrapLauncher(await readRuntime()), logger, concurrency: 2 });
await pool.start();
void pool.execute(request('while True: pass', { timeoutMs: 30_000 }), {
  onStart: () => console.log(pool.launcherProcessIds[0]),
});
