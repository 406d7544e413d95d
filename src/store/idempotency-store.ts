/**
 * First answers under an Idempotency-Key, in the database. An answer is one row with the first PART_BYTES of its body,
 * and a row for each further part: tens of MB that are written or deleted at once would stall the one thread that
 * everything runs on (45 MB: 530 ms); a part takes 0.4 ms, and others get their turn in between.
 *
 * The row of an answer is written last and deleted first, so an answer that can be found is whole. Parts without a row,
 * which a crash leaves behind, are deleted at the next start. No two rows have the same name: of two processes on one
 * database, only one can record.
 */

import type { Kysely, Transaction } from 'kysely';
import { turnOfOthers } from '../shared/turn.ts';
import { quickTransaction } from './quick-transaction.ts';
import type { Database, IdempotencyAnswersTable } from './schema.ts';

export const PART_BYTES = 256 * 1024;

/** What a row counts besides its body: its columns, and its share of the indexes. */
const ROW_BYTES = 1024;

/** Parts that are deleted at once: 4 MiB. */
const PARTS_AT_ONCE = 16;

/** What an answer is found by. */
export interface AnswerName {
  keyId: string;
  /** Method and path, as in `POST /v1/jobs`. */
  route: string;
  idempotencyKey: string;
}

/** An answer without its body. */
export interface StoredAnswer {
  /** The id of the request that was answered. */
  id: string;
  /** SHA-256 of that request's body, in hexadecimal. */
  requestHash: string;
  status: number;
  location: string | null;
  createdAtMs: number;
  bodyBytes: number;
}

/** An answer that is to be stored. */
export interface NewAnswer extends AnswerName, Omit<StoredAnswer, 'bodyBytes'> {
  body: Buffer;
}

/** The bytes that an answer counts. */
export function storedBytes(bodyBytes: number): number {
  return ROW_BYTES + bodyBytes;
}

export class IdempotencyStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async find({ keyId, route, idempotencyKey }: AnswerName): Promise<StoredAnswer | null> {
    const row = await this.#db
      .selectFrom('idempotency_answers')
      .where('key_id', '=', keyId)
      .where('route', '=', route)
      .where('idempotency_key', '=', idempotencyKey)
      .select(['id', 'request_hash', 'status', 'location', 'created_at', 'body_bytes'])
      .executeTakeFirst();
    if (row === undefined) return null;
    return {
      id: row.id,
      requestHash: row.request_hash,
      status: row.status,
      location: row.location,
      createdAtMs: row.created_at,
      bodyBytes: row.body_bytes,
    };
  }

  /** A part of an answer's body, counted from 0; null when it has been deleted meanwhile. */
  async part(id: string, position: number): Promise<Uint8Array | null> {
    if (position === 0) {
      const row = await this.#db
        .selectFrom('idempotency_answers')
        .where('id', '=', id)
        .select('body_start')
        .executeTakeFirst();
      return row?.body_start ?? null;
    }
    const row = await this.#db
      .selectFrom('idempotency_parts')
      .where('answer_id', '=', id)
      .where('position', '=', position)
      .select('bytes')
      .executeTakeFirst();
    return row?.bytes ?? null;
  }

  /** Stores an answer in transactions of its own, whose commits do not wait for the disk. */
  async insert(answer: NewAnswer): Promise<void> {
    try {
      for (const part of furtherParts(answer)) {
        await quickTransaction(this.#db, (transaction) => insertPart(transaction, part));
        await turnOfOthers();
      }
      await quickTransaction(this.#db, (transaction) => insertRow(transaction, answer));
    } catch (error) {
      // Where that fails too, the next start does it.
      await this.#deleteParts(answer.id).catch(() => undefined);
      throw error;
    }
  }

  /** Stores an answer in a transaction of the caller's; meant for small ones. */
  async insertWithin(transaction: Transaction<Database>, answer: NewAnswer): Promise<void> {
    for (const part of furtherParts(answer)) await insertPart(transaction, part);
    await insertRow(transaction, answer);
  }

  /** Deletes answers: at first what they are found by, then their parts. Returns those that were there. */
  async delete(ids: string[]) {
    if (ids.length === 0) return [];
    const deleted = await quickTransaction(this.#db, (transaction) =>
      transaction
        .deleteFrom('idempotency_answers')
        .where('id', 'in', ids)
        .returning(['key_id as keyId', 'body_bytes as bodyBytes'])
        .execute(),
    );
    for (const id of ids) await this.#deleteParts(id);
    return deleted;
  }

  /** The bytes that the answers of each key count. */
  async bytesByKey(): Promise<Map<string, number>> {
    const rows = await this.#db
      .selectFrom('idempotency_answers')
      .groupBy('key_id')
      .select(({ fn }) => [
        'key_id',
        fn.sum<number>('body_bytes').as('bytes'),
        fn.countAll<number>().as('rows'),
      ])
      .execute();
    return new Map(rows.map((row) => [row.key_id, row.bytes + row.rows * ROW_BYTES]));
  }

  /** The oldest answers; of one key, where it is named. */
  async oldest(count: number, keyId?: string) {
    return this.#db
      .selectFrom('idempotency_answers')
      .$if(keyId !== undefined, (query) => query.where('key_id', '=', keyId ?? ''))
      .orderBy('id')
      .limit(count)
      .select(['id', 'key_id as keyId', 'created_at as createdAtMs', 'body_bytes as bodyBytes'])
      .execute();
  }

  /** Deletes parts whose answer is not there: at a start, when no answer is being written. */
  async deleteOrphans(): Promise<void> {
    const orphans = await this.#db
      .selectFrom('idempotency_parts')
      .where('answer_id', 'not in', (answers) => answers.selectFrom('idempotency_answers').select('id'))
      .select('answer_id')
      .distinct()
      .execute();
    for (const { answer_id: id } of orphans) await this.#deleteParts(id);
  }

  async #deleteParts(id: string): Promise<void> {
    for (let deleted = PARTS_AT_ONCE; deleted === PARTS_AT_ONCE; ) {
      const [result] = await quickTransaction(this.#db, (transaction) =>
        transaction
          .deleteFrom('idempotency_parts')
          .where('answer_id', '=', id)
          .where('position', 'in', (parts) =>
            parts
              .selectFrom('idempotency_parts')
              .where('answer_id', '=', id)
              .select('position')
              .orderBy('position')
              .limit(PARTS_AT_ONCE),
          )
          .execute(),
      );
      deleted = Number(result?.numDeletedRows ?? 0);
      await turnOfOthers();
    }
  }
}

interface Part {
  answer_id: string;
  position: number;
  bytes: Uint8Array;
}

function* furtherParts({ id, body }: NewAnswer): Generator<Part> {
  for (let start = PART_BYTES; start < body.length; start += PART_BYTES) {
    const bytes = body.subarray(start, start + PART_BYTES);
    yield { answer_id: id, position: start / PART_BYTES, bytes };
  }
}

async function insertPart(transaction: Transaction<Database>, part: Part): Promise<void> {
  await transaction.insertInto('idempotency_parts').values(part).execute();
}

async function insertRow(transaction: Transaction<Database>, answer: NewAnswer): Promise<void> {
  const row: IdempotencyAnswersTable = {
    id: answer.id,
    key_id: answer.keyId,
    route: answer.route,
    idempotency_key: answer.idempotencyKey,
    request_hash: answer.requestHash,
    status: answer.status,
    location: answer.location,
    created_at: answer.createdAtMs,
    body_bytes: answer.body.length,
    body_start: answer.body.subarray(0, PART_BYTES),
  };
  await transaction.insertInto('idempotency_answers').values(row).execute();
}
