/**
 * The large parts of jobs: programs and results, cut into pieces. A result may be 45 MB. Written in one statement it
 * would hold the one thread of the service for a third of a second; in pieces, with others' turns in between, a
 * pause is that of one piece, or of a checkpoint of SQLite's. Small ones, which is nearly all, are one piece in the
 * transaction of their job.
 *
 * A piece belongs to an attempt: the program to attempt 0, a result to the token of its claim. Pieces without a job,
 * and of an ended job those that are not its result, are rubbish: left behind by a crash or on purpose, since deleting
 * them takes as long as writing. They are removed one by one.
 */

import { type Kysely, sql, type Transaction } from 'kysely';
import { turnOfOthers } from '../shared/turn.ts';
import { quickTransaction } from './quick-transaction.ts';
import type { Database } from './schema.ts';

/** Bytes of a piece: 2 to 4 ms. */
export const PIECE_BYTES = 2 ** 20;

/** A content whose last piece, which is often the only one, is still to be stored. */
export interface PreparedContent {
  bytes: number;
  /** Bytes that `store` writes. */
  lastBytes: number;
  store: (transaction: Transaction<Database>) => Promise<boolean>;
}

/** The attempt that the program of a job is stored under. */
export const PROGRAM = 0;

export class JobPieces {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /**
   * Prepares to store a content: what is large is written at once, piece by piece, and made piece by piece as well.
   * @returns its size, and what has to be called in the transaction that makes it count: false when a piece is missing.
   */
  async prepare(jobId: string, attempt: number, content: Iterable<Buffer>): Promise<PreparedContent> {
    let bytes = 0;
    let parts = 0;
    const store = async (transaction: Transaction<Database>, piece: Buffer) =>
      insert(transaction, { job_id: jobId, attempt, part: parts, content: piece });
    let last: Buffer = Buffer.alloc(0);
    for (const piece of joined(content)) {
      if (last.length > 0) {
        const full = last;
        await quickTransaction(this.#db, (transaction) => store(transaction, full));
        parts++;
        await turnOfOthers();
      }
      bytes += piece.length;
      last = piece;
    }
    return {
      bytes,
      lastBytes: last.length,
      store: async (transaction) => {
        await store(transaction, last);
        return (await countOf(transaction, jobId, attempt)) === parts + 1;
      },
    };
  }

  /** Reads a content of this length, in its pieces. Throws when one of them is not there. */
  async *read(jobId: string, attempt: number, length: number): AsyncGenerator<Buffer> {
    let received = 0;
    for (let part = 0; received < length; part++) {
      const row = await this.#db
        .selectFrom('job_pieces')
        .where('job_id', '=', jobId)
        .where('attempt', '=', attempt)
        .where('part', '=', part)
        .select('content')
        .executeTakeFirst();
      if (row === undefined) throw new Error(`A part of ${jobId} has been removed.`);
      received += row.content.byteLength;
      yield Buffer.from(row.content.buffer, row.content.byteOffset, row.content.byteLength);
    }
  }

  /** Removes rubbish: of a job or, without an id, of all. */
  async clear(jobId?: string): Promise<void> {
    let query = this.#db
      .selectFrom('job_pieces')
      .leftJoin('jobs', 'jobs.id', 'job_pieces.job_id')
      .where((where) =>
        where.or([
          where('jobs.id', 'is', null),
          where.and([
            where('jobs.finished_at', 'is not', null),
            where('jobs.token', '!=', sql<number>`job_pieces.attempt`),
          ]),
        ]),
      )
      .select(['job_pieces.job_id', 'job_pieces.attempt', 'job_pieces.part']);
    if (jobId !== undefined) query = query.where('job_pieces.job_id', '=', jobId);
    for (const piece of await query.execute()) {
      await quickTransaction(this.#db, (transaction) =>
        transaction
          .deleteFrom('job_pieces')
          .where('job_id', '=', piece.job_id)
          .where('attempt', '=', piece.attempt)
          .where('part', '=', piece.part)
          .execute(),
      );
      await turnOfOthers();
    }
  }
}

/** The same bytes in pieces of PIECE_BYTES, but for the last. */
function* joined(content: Iterable<Buffer>): Generator<Buffer> {
  let collected: Buffer[] = [];
  let missing = PIECE_BYTES;
  for (const part of content) {
    for (let start = 0; start < part.length; ) {
      const taken = part.subarray(start, start + missing);
      collected.push(taken);
      start += taken.length;
      missing -= taken.length;
      if (missing > 0) continue;
      yield collected.length === 1 ? taken : Buffer.concat(collected);
      collected = [];
      missing = PIECE_BYTES;
    }
  }
  if (collected.length > 0) yield Buffer.concat(collected);
}

async function countOf(transaction: Transaction<Database>, jobId: string, attempt: number): Promise<number> {
  const { count } = await transaction
    .selectFrom('job_pieces')
    .where('job_id', '=', jobId)
    .where('attempt', '=', attempt)
    .select((select) => select.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

async function insert(
  transaction: Transaction<Database>,
  piece: { job_id: string; attempt: number; part: number; content: Buffer },
): Promise<void> {
  await transaction
    .insertInto('job_pieces')
    .values(piece)
    .onConflict((conflict) =>
      conflict.columns(['job_id', 'attempt', 'part']).doUpdateSet({ content: piece.content }),
    )
    .execute();
}
