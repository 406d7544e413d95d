import type { Kysely } from 'kysely';
import { quickTransaction } from './quick-transaction.ts';
import type { Database } from './schema.ts';

/** What is left of a key's requests per minute, in 60,000ths of a request, at a moment. */
export interface StoredBucket {
  level: number;
  atMs: number;
}

/** The buckets of keys with a limit of requests per minute. */
export class RateBucketStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async all(): Promise<Map<string, StoredBucket>> {
    const rows = await this.#db.selectFrom('rate_buckets').selectAll().execute();
    return new Map(rows.map(({ key_id, level, at }) => [key_id, { level, atMs: at }]));
  }

  async save(buckets: [keyId: string, bucket: StoredBucket][]): Promise<void> {
    await quickTransaction(this.#db, async (transaction) => {
      for (const [keyId, { level, atMs }] of buckets) {
        await transaction
          .insertInto('rate_buckets')
          .values({ key_id: keyId, level, at: atMs })
          .onConflict((conflict) => conflict.column('key_id').doUpdateSet({ level, at: atMs }))
          .execute();
      }
    });
  }
}
