/**
 * When keys were last used. It is known to the moment in memory and written to the database once a minute for all
 * keys together, since a write for each request would cost more than the request. A crash forgets a minute of it.
 */

import type { Clock } from '../shared/clock.ts';
import type { KeyStore } from '../store/key-store.ts';
import type { Key } from './key.ts';

/** Keys in one transaction: a few milliseconds, in which nobody else can use the database. */
const BATCH = 500;

export class LastUse {
  readonly #keys: Pick<KeyStore, 'markUsed'>;
  readonly #clock: Clock;
  readonly #lastUsedMs = new Map<string, number>();
  #unwritten = new Set<string>();

  constructor(options: { keys: Pick<KeyStore, 'markUsed'>; clock: Clock }) {
    this.#keys = options.keys;
    this.#clock = options.clock;
  }

  /** Notes that a key is used now. */
  note(keyId: string): void {
    this.#lastUsedMs.set(keyId, this.#clock.now());
    this.#unwritten.add(keyId);
  }

  /** The key as the database has it, with what is known here. */
  applied(key: Key): Key {
    const timeMs = this.#lastUsedMs.get(key.id);
    return timeMs === undefined ? key : { ...key, lastUsedAt: new Date(timeMs) };
  }

  /** Writes down what has changed since the last time. What cannot be written is left for the next time. */
  async write(): Promise<void> {
    const ids = [...this.#unwritten];
    this.#unwritten = new Set();
    while (ids.length > 0) {
      const batch = ids.splice(-BATCH);
      try {
        await this.#keys.markUsed(batch.map((id) => [id, this.#lastUsedMs.get(id) ?? 0]));
      } catch (error) {
        for (const id of [...ids, ...batch]) this.#unwritten.add(id);
        throw error;
      }
    }
  }
}
