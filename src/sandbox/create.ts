/** The sandbox of a service: it starts only when every layer is there and every canary is held. */

import { Cgroup, type CgroupLimits } from './cgroup.ts';
import {
  type ExecuteOptions,
  type Execution,
  type ExecutionRequest,
  type Sandbox,
  SandboxFaultError,
  type SandboxStatistics,
} from './execution.ts';
import { BubblewrapLauncher } from './launchers/bubblewrap.ts';
import type { SandboxLogger } from './logger.ts';
import { Pool } from './pool.ts';
import { checkPrerequisites } from './prerequisites.ts';
import { readRuntime } from './runtime.ts';
import { selfTest } from './self-test.ts';

export interface SandboxOptions {
  concurrency: number;
  memoryMbMax: number;
  logger: SandboxLogger;
}

/** Memory of the zygote, its successor and the spares, and what the kernel needs for ordinary runs. */
const GROUP_MEMORY_MB = 1024;
/** Processes besides the threads of runs: launchers, zygotes, spares of two generations. */
const GROUP_PROCESSES = 64;
const PROCESSES_PER_RUN = 66;

/** What all runs together may need when each keeps to its own limits. */
function groupLimits({ concurrency, memoryMbMax }: SandboxOptions): CgroupLimits {
  return {
    memoryBytes: (concurrency * memoryMbMax + GROUP_MEMORY_MB) * 2 ** 20,
    processes: concurrency * (PROCESSES_PER_RUN + 2) + GROUP_PROCESSES,
  };
}

/** Creates the sandbox; nothing runs before `start`. */
export function createSandbox(options: SandboxOptions): Sandbox {
  return new VerifiedSandbox(options);
}

class VerifiedSandbox implements Sandbox {
  readonly #options: SandboxOptions;
  #pool: Pool | null = null;
  #stopped = false;

  constructor(options: SandboxOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { concurrency, logger } = this.#options;
    let complaint: string;
    try {
      const runtime = await readRuntime();
      if (this.#stopped) throw new SandboxFaultError('the sandbox is stopping');
      const cgroup = Cgroup.create(groupLimits(this.#options));
      const pool = new Pool({ launcher: new BubblewrapLauncher(runtime, cgroup), logger, concurrency });
      this.#pool = pool;
      await pool.start();
      const escaped = (await selfTest(pool, runtime)).filter((canary) => !canary.held);
      if (escaped.length === 0) return;
      complaint = escaped.map(({ layer, name }) => `${layer}: not held: ${name}`).join('\n');
    } catch (error) {
      complaint = error instanceof Error ? error.message : String(error);
    }
    await this.stop();
    const missing = (await checkPrerequisites(this.#options)).filter(({ state }) => state === 'missing');
    const remedies = missing.map(({ name, found, remedy }) => `${name}: ${found}. Remedy: ${remedy}`);
    throw new SandboxFaultError(
      [
        'The isolation is not complete on this host, so nothing is served.',
        ...remedies,
        complaint.trim(),
      ].join('\n'),
    );
  }

  statistics(): SandboxStatistics {
    return this.#pool?.statistics() ?? { sparesReady: 0, zygoteRestarts: 0, runsLost: 0 };
  }

  get ready(): boolean {
    return this.#pool?.ready ?? false;
  }

  execute(request: ExecutionRequest, options?: ExecuteOptions): Promise<Execution> {
    if (this.#pool === null) throw new SandboxFaultError('the sandbox is not started');
    return this.#pool.execute(request, options);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#pool?.stop();
    this.#pool = null;
  }
}
