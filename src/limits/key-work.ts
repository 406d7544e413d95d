import { unauthorized } from '../keys/unauthorized.ts';

/** Something that is done for a key. Whoever began it must call `end`, once its process is gone. */
export interface Work {
  /** Aborted when the key is revoked, with the error for a caller whose program has not started. */
  signal: AbortSignal;
  end(): void;
}

/** What it is for: a caller who waits for the answer, or a job. */
export type WorkKind = 'request' | 'job';

/** How long jobs leave an execution to a request that was refused because of them: it was told to come back in 1 s. */
const AWAITED_MS = 2000;

/**
 * What is being done for each key: executions, from the moment that a request is let in. It is counted, for the limit
 * of concurrency, and can be cancelled, when a key is revoked.
 */
export class KeyWork {
  readonly #work = new Map<string, Map<AbortController, WorkKind>>();
  /** Keys a request of which was refused because of their jobs, and when. */
  readonly #awaited = new Map<string, number>();
  /** Called when work has ended: another execution of its key may start, where that was waited for. */
  onEnded: () => void = () => undefined;

  /** Begins work for a key. */
  begin(keyId: string, kind: WorkKind): Work {
    const controller = new AbortController();
    const work = this.#work.get(keyId) ?? new Map<AbortController, WorkKind>();
    this.#work.set(keyId, work);
    work.set(controller, kind);
    if (kind === 'request') this.#awaited.delete(keyId);
    return {
      signal: controller.signal,
      end: () => {
        if (!work.delete(controller)) return;
        if (work.size === 0) this.#work.delete(keyId);
        this.onEnded();
      },
    };
  }

  count(keyId: string): number {
    return this.#work.get(keyId)?.size ?? 0;
  }

  /** The keys that something is being done for. */
  keyIds(): string[] {
    return [...this.#work.keys()];
  }

  /** Notes that a request of a key was refused because of what is being done for the key. */
  refused(keyId: string, nowMs: number): void {
    const kinds = [...(this.#work.get(keyId)?.values() ?? [])];
    // What requests do to each other is no matter of turns between requests and jobs.
    if (kinds.includes('job')) this.#awaited.set(keyId, nowMs);
  }

  /** The keys whose next execution is a request's, which is to come back soon. */
  awaitedKeyIds(nowMs: number): string[] {
    for (const [keyId, sinceMs] of this.#awaited) {
      if (nowMs - sinceMs >= AWAITED_MS) this.#awaited.delete(keyId);
    }
    return [...this.#awaited.keys()];
  }

  /** Cancels everything that is being done for a key. It goes on to count until it has ended. */
  cancel(keyId: string): void {
    for (const controller of this.#work.get(keyId)?.keys() ?? []) controller.abort(unauthorized());
  }
}
