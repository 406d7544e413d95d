/** Who waits for the end of which job, in this process. */
export class JobWatch {
  readonly #waiting = new Map<string, Set<() => void>>();
  #closed = false;

  /** Jobs that somebody waits for. */
  get ids(): string[] {
    return [...this.#waiting.keys()];
  }

  /**
   * Waits for the end of a job, for `timeoutMs` at most. `begin` is called once nothing can be missed any more: a job
   * that ends from then on ends the wait. It answers whether there is anything to wait for.
   */
  async ended(
    id: string,
    options: { timeoutMs: number; signal: AbortSignal; begin: () => Promise<boolean> },
  ): Promise<void> {
    const { timeoutMs, signal, begin } = options;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    waiting.add(resolve);
    const timer = setTimeout(resolve, timeoutMs);
    const onAbort = (): void => resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      if (!signal.aborted && (await begin()) && !this.#closed) await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      waiting.delete(resolve);
      if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
    }
  }

  /** Tells whoever waits that a job has ended. */
  notify(id: string): void {
    for (const resolve of this.#waiting.get(id) ?? []) resolve();
  }

  /** Ends every wait, also those to come. */
  close(): void {
    this.#closed = true;
    for (const id of this.ids) this.notify(id);
  }
}
