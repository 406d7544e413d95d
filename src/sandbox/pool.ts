/**
 * The pool: one warmed zygote, and a few spare run processes forked and confined ahead of need, so that a
 * request pays for neither. Each spare serves one program and is gone.
 *
 * Failure modes. A zygote that dies, for whatever cause, takes its processes with it: the spares are made anew
 * by its successor, and a program that was running is run once more, since runs have no side effects. A zygote
 * that dies young is replaced with a growing delay. A zygote is also replaced, without a pause, after a number
 * of forks or at an age: what its children have in common (memory layout, hash seed) then changes. The old one
 * ends when its last program has.
 */

import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { RunChannels } from './channels.ts';
import { type Execution, type ExecutionRequest, type Sandbox, SandboxFaultError } from './execution.ts';
import type { Launcher, Layer } from './launchers/launcher.ts';
import type { SandboxLogger } from './logger.ts';
import { type Report, TOKEN_BYTES } from './protocol.ts';
import { RunLostError, RunProcess } from './run-process.ts';
import { Zygote } from './zygote.ts';

export interface PoolOptions {
  launcher: Launcher;
  logger: SandboxLogger;
  /** Programs that run at the same time; the pool keeps one spare more than that. */
  concurrency: number;
  /** A zygote is replaced after this many forks … */
  forksPerZygoteMax?: number;
  /** … or at this age, whichever comes first. */
  zygoteAgeMsMax?: number;
  /** Layers left out, to show that the others hold alone: for tests. */
  without?: ReadonlySet<Layer>;
}

const FORKS_PER_ZYGOTE_MAX = 10_000;
const ZYGOTE_AGE_MS_MAX = 3_600_000;
/** A zygote that ends before this age died young. */
const YOUNG_MS = 10_000;
const BACK_OFF_MS_FIRST = 100;
const BACK_OFF_MS_MAX = 10_000;
/** How long a program waits for a process when none can be had. */
const SPARE_WAIT_MS_MAX = 15_000;
/** A first run, and one more when the service lost it. */
const ATTEMPTS_MAX = 2;

interface Waiting {
  resolve: (process: RunProcess) => void;
  reject: (error: Error) => void;
}

/** A zygote with the processes it has forked and not yet reported as ended. */
interface Generation {
  zygote: Zygote;
  processes: Map<number, RunProcess>;
  warm: boolean;
  retiring: boolean;
}

export class Pool implements Sandbox {
  readonly #options: Required<PoolOptions>;
  readonly #channels = new RunChannels();
  readonly #cores = availableParallelism();
  readonly #waiting: Waiting[] = [];
  readonly #running = new Set<RunProcess>();
  readonly #generations = new Set<Generation>();
  #current: Generation | null = null;
  #successor: Generation | null = null;
  #socketPath = '';
  #sequence = 0;
  #deathsInYouth = 0;
  #restart: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(options: PoolOptions) {
    this.#options = {
      forksPerZygoteMax: FORKS_PER_ZYGOTE_MAX,
      zygoteAgeMsMax: ZYGOTE_AGE_MS_MAX,
      without: new Set(),
      ...options,
    };
  }

  async start(): Promise<void> {
    this.#socketPath = await this.#channels.listen();
    await new Promise<void>((resolve, reject) => {
      this.#launch((complaint) => reject(new SandboxFaultError(complaint)));
      this.#takeSpare().then((spare) => {
        this.#running.delete(spare);
        resolve();
      }, reject);
    });
  }

  get ready(): boolean {
    return this.#current !== null && [...this.#current.processes.values()].some((process) => process.ready);
  }

  async execute(
    request: ExecutionRequest,
    options: { signal?: AbortSignal; onStart?: (startedAt: Date) => void } = {},
  ): Promise<Execution> {
    const { signal, onStart } = options;
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted();
      const process = await this.#takeSpare();
      const cancel = (): void => process.stop('cancel');
      signal?.addEventListener('abort', cancel);
      try {
        const execution = process.execute(request);
        if (signal?.aborted) cancel();
        onStart?.(new Date());
        this.#refill();
        return await execution;
      } catch (error) {
        if (!(error instanceof RunLostError)) throw error;
        this.#options.logger.warn({ attempt }, 'a run was lost with its zygote');
        if (attempt === ATTEMPTS_MAX) {
          throw new SandboxFaultError(`the run was lost ${attempt} times`, { cause: error });
        }
      } finally {
        signal?.removeEventListener('abort', cancel);
        this.#running.delete(process);
      }
    }
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    const fault = new SandboxFaultError('the sandbox is stopping');
    for (const waiting of this.#waiting.splice(0)) waiting.reject(fault);
    for (const { zygote } of this.#generations) zygote.kill();
    await Promise.all([...this.#generations].map(({ zygote }) => zygote.gone()));
    await this.#channels.close();
  }

  /** Process ids of the launchers, for tests that kill or stop them. */
  get launcherProcessIds(): number[] {
    return [...this.#generations].flatMap(({ zygote }) => zygote.processId ?? []);
  }

  /** A process that is ready, on the core with the least to do; waits until there is one. */
  async #takeSpare(): Promise<RunProcess> {
    if (this.#stopping) throw new SandboxFaultError('the sandbox is stopping');
    const spare = this.#bestSpare();
    if (spare !== undefined) {
      this.#running.add(spare);
      return spare;
    }
    return await new Promise<RunProcess>((resolve, reject) => {
      const waiting: Waiting = {
        resolve: (process) => {
          clearTimeout(patience);
          resolve(process);
        },
        reject: (error) => {
          clearTimeout(patience);
          reject(error);
        },
      };
      const patience = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(new SandboxFaultError(`no process was ready within ${SPARE_WAIT_MS_MAX} ms`));
      }, SPARE_WAIT_MS_MAX);
      this.#waiting.push(waiting);
    });
  }

  #bestSpare(): RunProcess | undefined {
    let best: RunProcess | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const process of this.#current?.processes.values() ?? []) {
      if (!process.ready || this.#running.has(process)) continue;
      const busy = [...this.#running].filter((other) => other.core === process.core).length;
      if (busy < fewest) [best, fewest] = [process, busy];
    }
    return best;
  }

  #spareReady(generation: Generation): void {
    if (generation === this.#successor) this.#succeed(generation);
    if (generation !== this.#current) return;
    while (this.#waiting.length > 0) {
      const spare = this.#bestSpare();
      if (spare === undefined) return;
      this.#running.add(spare);
      this.#waiting.shift()!.resolve(spare);
    }
  }

  /** Forks what is missing of the spares, and starts a successor when the zygote is due. */
  #refill(): void {
    const current = this.#current;
    if (current === null) return;
    const { forksPerZygoteMax, zygoteAgeMsMax } = this.#options;
    const ageMs = performance.now() - current.zygote.startedAtMs;
    if ((current.zygote.forks >= forksPerZygoteMax || ageMs >= zygoteAgeMsMax) && this.#successor === null) {
      this.#successor = this.#launch();
    }
    this.#forkSpares(current);
  }

  #forkSpares(generation: Generation): void {
    if (!generation.warm || generation.retiring || this.#stopping) return;
    const spares = [...generation.processes.values()].filter((process) => !this.#running.has(process));
    for (let count = spares.length; count <= this.#options.concurrency; count++) this.#fork(generation);
  }

  #fork(generation: Generation): void {
    const { zygote, processes } = generation;
    const process = new RunProcess({
      sequence: ++this.#sequence,
      core: this.#leastUsedCore(processes),
      token: randomBytes(TOKEN_BYTES),
      zygote,
      onReady: () => this.#spareReady(generation),
    });
    processes.set(process.sequence, process);
    this.#channels.expect(process.token, (kind, connection, early) =>
      process.attach(kind, connection, early),
    );
    zygote.send({ operation: 'fork', sequence: process.sequence, core: process.core, token: process.token });
  }

  #leastUsedCore(processes: Map<number, RunProcess>): number {
    const use = new Array<number>(this.#cores).fill(0);
    for (const process of processes.values()) use[process.core]!++;
    return use.indexOf(Math.min(...use));
  }

  #launch(onEarlyEnd?: (complaint: string) => void): Generation {
    const { launcher, without } = this.#options;
    const generation: Generation = {
      processes: new Map(),
      warm: false,
      retiring: false,
      zygote: new Zygote(
        launcher,
        { socketPath: this.#socketPath, without },
        {
          report: (report) => this.#receive(generation, report),
          ended: (complaint) => {
            onEarlyEnd?.(complaint);
            this.#ended(generation, complaint);
          },
        },
      ),
    };
    this.#generations.add(generation);
    this.#current ??= generation;
    return generation;
  }

  #receive(generation: Generation, report: Report): void {
    switch (report.operation) {
      case 'warm':
        generation.warm = true;
        this.#forkSpares(generation);
        break;
      case 'exited':
        this.#exited(generation, report);
        break;
      case 'forkFailed':
        this.#options.logger.error({ errno: report.errno }, 'the zygote cannot fork');
        generation.zygote.kill();
        break;
    }
  }

  #exited(generation: Generation, report: Extract<Report, { operation: 'exited' }>): void {
    const process = generation.processes.get(report.sequence);
    if (process === undefined) return;
    generation.processes.delete(report.sequence);
    this.#channels.forget(process.token);
    process.exited(report);
    if (!process.ready && !generation.retiring) {
      // Its own words explain why it could not confine itself; making more of the kind would not help.
      this.#options.logger.error({ complaint: process.complaint }, 'a spare process failed to start');
      generation.zygote.kill();
    } else if (generation.retiring && generation.processes.size === 0) {
      generation.zygote.kill();
    } else {
      this.#forkSpares(generation);
    }
  }

  /** The successor has a spare: from here on it serves, and the one before only finishes what it runs. */
  #succeed(successor: Generation): void {
    const retired = this.#current;
    this.#current = successor;
    this.#successor = null;
    if (retired === null || retired === successor) return;
    retired.retiring = true;
    for (const process of retired.processes.values()) {
      if (!this.#running.has(process)) process.stop('cancel');
    }
    if (retired.processes.size === 0) retired.zygote.kill();
  }

  #ended(generation: Generation, complaint: string): void {
    this.#generations.delete(generation);
    for (const process of generation.processes.values()) {
      this.#channels.forget(process.token);
      process.lost();
    }
    if (generation === this.#successor) this.#successor = null;
    if (generation === this.#current) this.#current = null;
    if (generation.retiring || this.#stopping) return;
    const ageMs = Math.round(performance.now() - generation.zygote.startedAtMs);
    this.#options.logger.error({ complaint, ageMs }, 'the zygote ended');
    this.#deathsInYouth = ageMs < YOUNG_MS ? this.#deathsInYouth + 1 : 0;
    if (this.#current !== null) return;
    if (this.#successor !== null) {
      this.#current = this.#successor;
      this.#successor = null;
      return;
    }
    // The first death costs nothing but the start of another; only a row of them slows it down.
    const delayMs = Math.min(BACK_OFF_MS_MAX, BACK_OFF_MS_FIRST * 2 ** (this.#deathsInYouth - 2));
    if (this.#deathsInYouth < 2) this.#launch();
    else this.#restart = setTimeout(() => this.#launch(), delayMs);
  }
}
