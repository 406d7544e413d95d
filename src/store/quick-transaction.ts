import { CompiledQuery, type Kysely, type Transaction } from 'kysely';
import type { Database } from './schema.ts';

const WITHOUT_DISK = CompiledQuery.raw('set synchronous_commit = off');
const WITH_DISK = CompiledQuery.raw('set synchronous_commit = on');

/**
 * A transaction whose commit does not wait for the disk: 0.03 ms instead of 0.3 ms on a fast one, and 10 ms on a slow
 * one. What it commits survives the death of the process, SIGKILL included, and every later commit that waits takes it
 * along. When the machine itself stops, the last seconds may be missing; what is there is whole and in order.
 */
export async function quickTransaction<Result>(
  db: Kysely<Database>,
  body: (transaction: Transaction<Database>) => Promise<Result>,
): Promise<Result> {
  return db.connection().execute(async (connection) => {
    await connection.executeQuery(WITHOUT_DISK);
    try {
      return await connection.transaction().execute(body);
    } finally {
      await connection.executeQuery(WITH_DISK);
    }
  });
}
