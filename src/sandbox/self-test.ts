/** The self-test: attempts to get out, made by an ordinary run, and one plot. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Sandbox } from './execution.ts';
import type { Runtime } from './runtime.ts';

export interface Canary {
  layer: string;
  name: string;
  held: boolean;
}

/** How many lines `sandbox/canaries.py` prints; fewer means that it did not come to its end. */
export const CANARIES = 11;
const TIMEOUT_MS = 20_000;
const MEMORY_MB = 256;

/**
 * Runs the canaries. A canary that says nothing has not held.
 * @throws SandboxFaultError when nothing can be run.
 */
export async function selfTest(sandbox: Sandbox, runtime: Runtime): Promise<Canary[]> {
  const code = await readFile(join(runtime.sandboxFolder, 'canaries.py'), 'utf8');
  const execution = await sandbox.execute({
    code,
    stdin: '',
    inputsJson: '{}',
    timeoutMs: TIMEOUT_MS,
    memoryMb: MEMORY_MB,
  });
  const canaries = execution.stdout
    .split('\n')
    .filter((line) => line.includes('\t'))
    .map((line): Canary => {
      const [verdict, layer, name] = line.split('\t');
      return { layer: layer ?? '', name: name ?? '', held: verdict === 'held' };
    });
  if (canaries.length !== CANARIES) {
    const words = execution.stderr.trim().split('\n').at(-1) ?? '';
    canaries.push({
      layer: 'self-test',
      name: `the canaries did not come to their end: ${words}`,
      held: false,
    });
  }
  return canaries;
}
