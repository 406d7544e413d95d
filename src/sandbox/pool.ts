/**
 * The pool: one warmed zygote, and a few spare run processes forked and confined ahead of need, so that a
 * request pays for neither. Each spare serves one program and is gone.
 *
 * Failure modes. A zygote that dies, for whatever cause, takes its processes with it: the spares are made anew
 * by its successor, and a program that was running is run once more, since runs have no side effects; unless
 * output of it has been passed on, which would then come twice. A zygote that dies young is replaced with a
 * growing delay. A zygote is also replaced, without a pause, after a number of forks or at an age: what its
 * children have in common (memory layout, hash seed) then changes. The old one ends when its last program has.
 */

import { RunChannels } from './channels.ts';
import {
  type ExecuteOptions,
  type Execution,
  type ExecutionRequest,
  type OutputListener,
  type Sandbox,
  SandboxFaultError,
  type SandboxStatistics,
} from './execution.ts';
import { Generation } from './generation.ts';
import type { Launcher, Layer } from './launchers/launcher.ts';
import type { SandboxLogger } from './logger.ts';
import { RunLostError, type RunProcess } from './run-process.ts';

export interface PoolOptions {
  launcher: Launcher;
  logger: SandboxLogger;
  /** Programs that run at the same time; the pool keeps one spare more than that. */
  concurrency: number;
  /** A zygote is replaced after this many forks … */
  forksPerZygoteMax?: number;
  /** … or at this age, whichever comes first. */
  zygoteAgeMsMax?: number;
  /** One that takes longer to warm up, in milliseconds, hangs, and is killed. */
  zygoteWarmMsMax?: number;
  /** Layers left out, to show that the others hold alone: for tests. */
  without?: ReadonlySet<Layer>;
}

const FORKS_PER_ZYGOTE_MAX = 10_000;
const ZYGOTE_AGE_MS_MAX = 3_600_000;
/** It takes 1 to 2 s on two idle cores. */
const ZYGOTE_WARM_MS_MAX = 60_000;
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
  reject: (reason: unknown) => void;
}

export class Pool implements Sandbox {
  readonly #options: Required<PoolOptions>;
  readonly #channels = new RunChannels();
  readonly #waiting: Waiting[] = [];
  readonly #generations = new Set<Generation>();
  #current: Generation | null = null;
  #successor: Generation | null = null;
  #socketPath = '';
  #deathsInYouth = 0;
  #zygoteRestarts = 0;
  #runsLost = 0;
  #restart: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(options: PoolOptions) {
    this.#options = {
      forksPerZygoteMax: FORKS_PER_ZYGOTE_MAX,
      zygoteAgeMsMax: ZYGOTE_AGE_MS_MAX,
      zygoteWarmMsMax: ZYGOTE_WARM_MS_MAX,
      without: new Set(),
      ...options,
    };
  }

  async start(): Promise<void> {
    this.#socketPath = await this.#channels.listen();
    await new Promise<void>((resolve, reject) => {
      const first = this.#launch({
        onReady: resolve,
        onEnd: (complaint) => reject(new SandboxFaultError(complaint.trim())),
      });
      this.#current = first;
    });
  }

  get ready(): boolean {
    return this.#current?.serves ?? false;
  }

  async execute(request: ExecutionRequest, options: ExecuteOptions = {}): Promise<Execution> {
    const { signal, onStart, onOutput } = options;
    let passedOn = false;
    const passOn: OutputListener = (stream, chunk) => {
      passedOn = true;
      onOutput?.(stream, chunk);
    };
    for (let attempt = 1; ; attempt++) {
      const process = await this.#takeSpare(signal);
      const cancel = (): void => process.stop('cancel');
      signal?.addEventListener('abort', cancel);
      if (signal?.aborted) cancel();
      try {
        const execution = process.execute(request, onOutput && passOn);
        onStart?.(new Date());
        this.#refill();
        return await execution;
      } catch (error) {
        if (!(error instanceof RunLostError)) throw error;
        this.#runsLost++;
        this.#options.logger.warn({ attempt }, 'a run was lost with its zygote');
        if (passedOn) {
          const message = 'the run was lost after some of its output had been passed on';
          throw new SandboxFaultError(message, { cause: error });
        }
        if (attempt === ATTEMPTS_MAX) {
          throw new SandboxFaultError(`the run was lost ${attempt} times`, { cause: error });
        }
      } finally {
        signal?.removeEventListener('abort', cancel);
      }
    }
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    const fault = new SandboxFaultError('the sandbox is stopping');
    for (const waiting of this.#waiting.splice(0)) waiting.reject(fault);
    const zygotes = [...this.#generations].map(({ zygote }) => zygote);
    for (const zygote of zygotes) zygote.kill();
    await Promise.all(zygotes.map((zygote) => zygote.gone()));
    await this.#channels.close();
    await this.#options.launcher.close?.();
  }

  statistics(): SandboxStatistics {
    return {
      sparesReady: this.#current?.sparesReady ?? 0,
      zygoteRestarts: this.#zygoteRestarts,
      runsLost: this.#runsLost,
    };
  }

  /** Process ids of the launchers, for tests that kill or stop them. */
  get launcherProcessIds(): number[] {
    return [...this.#generations].flatMap(({ zygote }) => zygote.processId ?? []);
  }

  /** A process that is ready; waits until there is one. Rejects with the signal's reason when it is aborted. */
  async #takeSpare(signal: AbortSignal | undefined): Promise<RunProcess> {
    if (this.#stopping) throw new SandboxFaultError('the sandbox is stopping');
    signal?.throwIfAborted();
    const spare = this.#current?.takeSpare();
    if (spare !== undefined) return spare;
    const { promise, resolve, reject } = Promise.withResolvers<RunProcess>();
    const waiting: Waiting = { resolve, reject };
    this.#waiting.push(waiting);
    const giveUp = (reason: unknown): void => {
      const index = this.#waiting.indexOf(waiting);
      if (index === -1) return;
      this.#waiting.splice(index, 1);
      reject(reason);
    };
    const onAbort = (): void => giveUp(signal?.reason);
    signal?.addEventListener('abort', onAbort);
    const patience = setTimeout(() => {
      giveUp(new SandboxFaultError(`no process was ready within ${SPARE_WAIT_MS_MAX} ms`));
    }, SPARE_WAIT_MS_MAX);
    return await promise.finally(() => {
      clearTimeout(patience);
      signal?.removeEventListener('abort', onAbort);
    });
  }

  #serveWaiting(): void {
    while (this.#waiting.length > 0) {
      const spare = this.#current?.takeSpare();
      if (spare === undefined) return;
      this.#waiting.shift()!.resolve(spare);
    }
  }

  /** Forks what is missing of the spares, and starts a successor when the zygote is due. */
  #refill(): void {
    const current = this.#current;
    if (current === null || this.#stopping) return;
    const { forksPerZygoteMax, zygoteAgeMsMax } = this.#options;
    const due = current.forks >= forksPerZygoteMax || current.zygote.ageMs >= zygoteAgeMsMax;
    if (due && this.#successor === null) {
      const successor = this.#launch({ onReady: () => this.#succeed(successor) });
      this.#successor = successor;
    }
    current.refill();
  }

  /** Starts a zygote. `onReady` is called at its first spare, `onEnd` when it ends before that. */
  #launch(events: { onReady?: () => void; onEnd?: (complaint: string) => void } = {}): Generation {
    const { launcher, logger, without, concurrency, zygoteWarmMsMax } = this.#options;
    let ready = false;
    const generation = new Generation({
      launcher,
      launch: { socketPath: this.#socketPath, without },
      warmMsMax: zygoteWarmMsMax,
      channels: this.#channels,
      logger,
      spares: concurrency + 1,
      onSpareReady: () => {
        if (!ready) events.onReady?.();
        ready = true;
        this.#serveWaiting();
      },
      onEnd: (complaint) => {
        if (!ready) events.onEnd?.(complaint);
        this.#ended(generation, complaint);
      },
    });
    this.#generations.add(generation);
    return generation;
  }

  /** The successor has a spare: from here on it serves, and the one before only finishes what it runs. */
  #succeed(successor: Generation): void {
    const retired = this.#current;
    this.#current = successor;
    this.#successor = null;
    if (retired !== successor) retired?.retire();
  }

  #ended(generation: Generation, complaint: string): void {
    this.#generations.delete(generation);
    if (generation === this.#successor) this.#successor = null;
    if (generation === this.#current) this.#current = null;
    if (generation.retiring || this.#stopping) return;
    const ageMs = Math.round(generation.zygote.ageMs);
    this.#zygoteRestarts++;
    this.#options.logger.error({ complaint, ageMs }, 'the zygote ended');
    this.#deathsInYouth = ageMs < YOUNG_MS ? this.#deathsInYouth + 1 : 0;
    // One that serves starts a successor again when it is due; a successor that lives serves as soon as it can.
    if (this.#current !== null || this.#successor !== null) return;
    // The first death costs nothing but the start of another; only a row of them slows it down.
    const delayMs = Math.min(BACK_OFF_MS_MAX, BACK_OFF_MS_FIRST * 2 ** (this.#deathsInYouth - 2));
    const restart = (): void => {
      this.#current = this.#launch();
    };
    if (this.#deathsInYouth < 2) restart();
    else this.#restart = setTimeout(restart, delayMs);
  }
}
