/**
 * Transactions that wait for the disk, many in one commit: what is asked for in the same turn of the event loop, or
 * while the disk writes, shares the next one. A commit that waits takes 0.3 ms on a fast disk and 10 ms on a slow one,
 * in which nothing else goes on in this process; three hundred jobs that arrive at once wait for a few.
 *
 * Failure: a body that throws undoes the commit of all, so each of them is then run by itself. A body must be one that
 * may run twice. Where another process has kept the lock for too long, all fail.
 */

import type { Kysely, Transaction } from 'kysely';
import { turnOfOthers } from '../shared/turn.ts';
import { isBusy } from './dialect.ts';
import type { Database } from './schema.ts';

type Body<Result> = (transaction: Transaction<Database>) => Promise<Result>;

interface Waiting {
  body: Body<unknown>;
  bytes: number;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

/** Bodies in one commit, and bytes that they write besides their rows: 20 ms, in which nobody else has the database. */
const TOGETHER_MAX = 50;
const BYTES_MAX = 4 * 2 ** 20;

export class DurableTransactions {
  readonly #db: Kysely<Database>;
  #waiting: Waiting[] = [];
  #running = false;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /**
   * Runs a body in a transaction; what it did is on the disk when this resolves.
   * @param bytes What it writes, where that may be large.
   */
  run<Result>(body: Body<Result>, bytes = 0): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#waiting.push({ body, bytes, resolve: resolve as (result: unknown) => void, reject });
      if (this.#running) return;
      this.#running = true;
      setImmediate(() => void this.#runAll());
    });
  }

  async #runAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#runGroup(this.#waiting.splice(0, this.#together()));
      await turnOfOthers();
    }
    this.#running = false;
  }

  /** How many of those that wait share the next commit. */
  #together(): number {
    let bytes = 0;
    const tooMuch = this.#waiting.slice(0, TOGETHER_MAX).findIndex((each, index) => {
      bytes += each.bytes;
      return index > 0 && bytes > BYTES_MAX;
    });
    return tooMuch === -1 ? TOGETHER_MAX : tooMuch;
  }

  async #runGroup(group: Waiting[]): Promise<void> {
    try {
      const results = await this.#db.transaction().execute(async (transaction) => {
        const done: unknown[] = [];
        for (const { body } of group) done.push(await body(transaction));
        return done;
      });
      for (const [index, { resolve }] of group.entries()) resolve(results[index]);
    } catch (error) {
      // By itself none would fare better while another process holds the lock, and each would wait as long again.
      if (group.length === 1 || isBusy(error)) {
        for (const { reject } of group) reject(error);
        return;
      }
      for (const each of group) await this.#runGroup([each]);
    }
  }
}
