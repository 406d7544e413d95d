/** Who waits for the end of which job, in this process. */
export class JobWatch {
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #closing = new AbortController();

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
    options: {
      timeoutMs: number;
      signal: AbortSignal;
      begin: () => Promise<boolean>;
      outlastsShutdown?: boolean;
    },
  ): Promise<void> {
    const { timeoutMs, begin, outlastsShutdown = false } = options;
    const signal = outlastsShutdown
      ? options.signal
      : AbortSignal.any([options.signal, this.#closing.signal]);
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    waiting.add(resolve);
    const timer = setTimeout(resolve, timeoutMs);
    const onAbort = (): void => resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      if (!signal.aborted && (await begin())) await promise;
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

  /** Ends every wait that is not to outlast a shutdown, also those to come. */
  close(): void {
    this.#closing.abort();
  }
}
