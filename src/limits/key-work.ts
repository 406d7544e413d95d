import { unauthorized } from '../keys/unauthorized.ts';

/** Something that is done for a key. Whoever began it must call `end`, once its process is gone. */
export interface Work {
  /** Aborted when the key is revoked, with the error for a caller whose program has not started. */
  signal: AbortSignal;
  end(): void;
}

/**
 * What is being done for each key: executions, from the moment that a request is let in. It is counted, for the limit
 * of concurrency, and can be cancelled, when a key is revoked.
 */
export class KeyWork {
  readonly #work = new Map<string, Set<AbortController>>();
  /** Called when work has ended: another execution of its key may start, where that was waited for. */
  onEnded: () => void = () => undefined;

  /** Begins work for a key. */
  begin(keyId: string): Work {
    const controller = new AbortController();
    const work = this.#work.get(keyId) ?? new Set();
    this.#work.set(keyId, work);
    work.add(controller);
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

  /** Cancels everything that is being done for a key. It goes on to count until it has ended. */
  cancel(keyId: string): void {
    for (const controller of this.#work.get(keyId) ?? []) controller.abort(unauthorized());
  }
}
