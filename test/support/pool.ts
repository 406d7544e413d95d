/** A pool for tests that need the sandbox without the service around it. */

import type { Execution, ExecutionRequest } from '../../src/sandbox/execution.ts';
import { BubblewrapLauncher } from '../../src/sandbox/launchers/bubblewrap.ts';
import { Pool, type PoolOptions } from '../../src/sandbox/pool.ts';
import { readRuntime } from '../../src/sandbox/runtime.ts';

export interface LoggedLine {
  message: string;
  fields: object;
}

/** Starts a pool that is stopped when the test ends. */
export async function startPool(options: Partial<PoolOptions> = {}): Promise<{
  pool: Pool;
  log: LoggedLine[];
  run: (code: string, more?: Partial<ExecutionRequest>) => Promise<Execution>;
}> {
  const log: LoggedLine[] = [];
  const keep = (fields: object, message: string): void => {
    log.push({ message, fields });
  };
  const pool = new Pool({
    launcher: new BubblewrapLauncher(await readRuntime()),
    logger: { warn: keep, error: keep },
    concurrency: 2,
    ...options,
  });
  const { onTestFinished } = await import('vitest');
  onTestFinished(() => pool.stop());
  await pool.start();
  return { pool, log, run: (code, more) => pool.execute(request(code, more)) };
}

export function request(code: string, more: Partial<ExecutionRequest> = {}): ExecutionRequest {
  return { code, stdin: '', inputsJson: '{}', timeoutMs: 10_000, memoryMb: 512, ...more };
}
