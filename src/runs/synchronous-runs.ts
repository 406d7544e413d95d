import { type ExecutionRequest, type Sandbox, SandboxFaultError } from '../sandbox/execution.ts';
import type { Clock } from '../shared/clock.ts';
import { ServiceError } from '../shared/errors.ts';
import { newRunId } from '../shared/ids.ts';
import type { UsageRecorder } from '../usage/recorder.ts';
import type { Admission } from './admission.ts';
import { chargeOf } from './charge.ts';
import { finishedRun } from './outcome.ts';
import type { Run } from './run.ts';

/** On whose behalf a program runs. */
export interface RunContext {
  keyId: string;
  /** Bytes that the request holds in memory while it waits. */
  bytes: number;
  /** Aborted when the caller has gone or the key is revoked: the run stops, or never starts. */
  signal: AbortSignal;
  /** Called once there is a slot. The program does not start when it throws. */
  mayStart: () => void;
}

/** Runs programs whose callers wait for the answer: admission, sandbox, outcome. Nothing but its usage is stored. */
export class SynchronousRuns {
  readonly #sandbox: Sandbox;
  readonly #admission: Admission;
  readonly #usage: Pick<UsageRecorder, 'record' | 'writable'>;
  readonly #clock: Clock;

  constructor(options: {
    sandbox: Sandbox;
    admission: Admission;
    usage: Pick<UsageRecorder, 'record' | 'writable'>;
    clock: Clock;
  }) {
    this.#sandbox = options.sandbox;
    this.#admission = options.admission;
    this.#usage = options.usage;
    this.#clock = options.clock;
  }

  /**
   * Runs one program to its end, whatever that is, and charges it. Who gets a Run has been charged for it, and who gets
   * an error has not.
   * @throws ServiceError `overloaded`, `shutting_down`, or `internal` for a fault of the service; what `mayStart` throws;
   * the signal's reason when that is aborted before the start.
   */
  async run(request: ExecutionRequest, context: RunContext): Promise<Run> {
    if (!this.#usage.writable) throw notCharged('is not run', undefined);
    const { run, charged } = await this.#execute(request, context);
    try {
      await charged;
    } catch (error) {
      throw notCharged('was run, and its answer is withheld', error);
    }
    return run;
  }

  async #execute(
    request: ExecutionRequest,
    { keyId, bytes, signal, mayStart }: RunContext,
  ): Promise<{ run: Run; charged: Promise<void> }> {
    const id = newRunId();
    const createdAt = new Date(this.#clock.now());
    const arrivedMs = this.#clock.monotonicMs();
    const slot = await this.#admission.acquire(keyId, { bytes, signal });
    try {
      mayStart();
      const queueMs = this.#clock.monotonicMs() - arrivedMs;
      const execution = await this.#sandbox.execute(request, { signal });
      const limits = { timeout_ms: request.timeoutMs, memory_mb: request.memoryMb };
      const run = finishedRun({ id, createdAt, limits }, execution, queueMs);
      // Before the slot is free: whoever starts next is to know what this one has used.
      return { run, charged: this.#usage.record(chargeOf(keyId, request, run)) };
    } catch (error) {
      throw error instanceof SandboxFaultError ? lostRun(error) : error;
    } finally {
      slot.release();
    }
  }
}

function notCharged(what: string, cause: unknown): ServiceError {
  return new ServiceError(
    'internal',
    `The service cannot store usage at the moment, so the program ${what}. Nothing was charged and the request can be sent again.`,
    { internal: 'usage could not be stored', cause },
  );
}

function lostRun(fault: SandboxFaultError): ServiceError {
  return new ServiceError(
    'internal',
    'The service lost the run. Nothing was charged and the request can be sent again.',
    { internal: fault.message, cause: fault },
  );
}
