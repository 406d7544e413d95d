/** `codecell doctor`: what the sandbox needs of this host, and whether it holds. */

import { loadConfig } from '../config.ts';
import { BubblewrapLauncher } from '../sandbox/launchers/bubblewrap.ts';
import { SILENT_LOGGER } from '../sandbox/logger.ts';
import { Pool } from '../sandbox/pool.ts';
import { checkPrerequisites, type Prerequisite } from '../sandbox/prerequisites.ts';
import { readRuntime } from '../sandbox/runtime.ts';
import { type Canary, selfTest } from '../sandbox/self-test.ts';
import { counted } from '../shared/counted.ts';
import { paint } from './paint.ts';

/**
 * Prints the table; answers 0 only when nothing is missing and every canary is held.
 * @throws OperatorError when the environment does not make a valid configuration.
 */
export async function doctor(environment: NodeJS.ProcessEnv, options: { json: boolean }): Promise<number> {
  const { config } = loadConfig(environment);
  const prerequisites = await checkPrerequisites(config);
  const { canaries, complaint } = await tryCanaries();
  const well =
    complaint === null &&
    prerequisites.every(({ state }) => state !== 'missing') &&
    canaries.every(({ held }) => held);
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ ok: well, prerequisites, canaries, complaint }, null, 2)}\n`);
  } else {
    process.stdout.write(report(prerequisites, canaries, complaint, well));
  }
  return well ? 0 : 1;
}

async function tryCanaries(): Promise<{ canaries: Canary[]; complaint: string | null }> {
  let pool: Pool | null = null;
  try {
    const runtime = await readRuntime();
    pool = new Pool({ launcher: new BubblewrapLauncher(runtime), logger: SILENT_LOGGER, concurrency: 1 });
    await pool.start();
    return { canaries: await selfTest(pool, runtime), complaint: null };
  } catch (error) {
    return { canaries: [], complaint: error instanceof Error ? error.message.trim() : String(error) };
  } finally {
    await pool?.stop();
  }
}

function report(
  prerequisites: Prerequisite[],
  canaries: Canary[],
  complaint: string | null,
  well: boolean,
): string {
  const mark = {
    ok: paint('green', 'ok      '),
    warning: paint('yellow', 'warning '),
    missing: paint('red', 'MISSING '),
  };
  const nameWidth = Math.max(...prerequisites.map(({ name }) => name.length));
  const layerWidth = Math.max(0, ...canaries.map(({ layer }) => layer.length));
  const lines = ['Prerequisites', ''];
  for (const { name, gives, state, found, remedy } of prerequisites) {
    lines.push(`  ${mark[state]} ${name.padEnd(nameWidth)}  ${found}`);
    lines.push(`  ${''.padEnd(9 + nameWidth)}  ${paint('dim', gives)}`);
    if (remedy !== null) lines.push(`  ${''.padEnd(9 + nameWidth)}  remedy: ${remedy}`);
  }
  lines.push('', 'Canaries: attempts to get out, made by a real run', '');
  for (const { layer, name, held } of canaries) {
    lines.push(
      `  ${held ? paint('green', 'held    ') : paint('red', 'ESCAPED ')} ${layer.padEnd(layerWidth)}  ${name}`,
    );
  }
  if (complaint !== null) lines.push(`  ${paint('red', 'nothing could be run:')} ${complaint}`);
  lines.push('', verdict(prerequisites, well), '');
  return lines.join('\n');
}

function verdict(prerequisites: Prerequisite[], well: boolean): string {
  if (!well) return 'Something is missing: this host cannot serve safely yet.';
  const warnings = prerequisites.filter(({ state }) => state === 'warning').length;
  if (warnings === 0) return 'All is well.';
  return `It holds, with ${counted(warnings, 'warning')}.`;
}
