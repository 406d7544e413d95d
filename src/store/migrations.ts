/**
 * The schema's history. A migration that has been released is never edited; a new one is added at the end.
 *
 * Names are numbered. One that ends in `-breaking` changes what an older version of the service relies on: an
 * older version refuses to open such a database, and accepts one with other newer migrations, so that going
 * back one version is possible wherever it is safe.
 */

import { type CreateTableBuilder, type Kysely, sql } from 'kysely';
import { type Migration, type MigrationProvider, Migrator } from 'kysely/migration';
import { OperatorError } from '../shared/errors.ts';
import type { Database } from './schema.ts';

const MIGRATIONS: Record<string, Migration> = {
  '0001-keys': {
    async up(db) {
      await db.schema
        .createTable('keys')
        .addColumn('id', 'text', (column) => column.primaryKey().notNull())
        .addColumn('name', 'text', (column) => column.notNull())
        .addColumn('team', 'text')
        .addColumn('role', 'text', (column) => column.notNull().check(sql`role in ('admin', 'user')`))
        .addColumn('limits', 'text', (column) => column.notNull())
        .addColumn('created_at', 'bigint', (column) => column.notNull())
        .addColumn('expires_at', 'bigint')
        .addColumn('revoked_at', 'bigint')
        .addColumn('last_used_at', 'bigint')
        .execute();
      await db.schema
        .createTable('key_secrets')
        .addColumn('hash', 'text', (column) => column.primaryKey().notNull())
        .addColumn('key_id', 'text', (column) => column.notNull().references('keys.id').onDelete('cascade'))
        .addColumn('created_at', 'bigint', (column) => column.notNull())
        .addColumn('expires_at', 'bigint')
        .execute();
      await db.schema.createIndex('key_secrets_key_id').on('key_secrets').column('key_id').execute();
    },
  },
  '0002-limits': {
    async up(db) {
      await db.schema.createIndex('keys_team').on('keys').columns(['team', 'id']).execute();
      await db.schema
        .createTable('rate_buckets')
        .addColumn('key_id', 'text', (column) => column.primaryKey().notNull())
        .addColumn('level', 'bigint', (column) => column.notNull())
        .addColumn('at', 'bigint', (column) => column.notNull())
        .execute();
    },
  },
  '0003-usage': {
    async up(db) {
      await withCharge(
        db.schema
          .createTable('usage_runs')
          .addColumn('id', 'text', (column) => column.primaryKey().notNull())
          .addColumn('key_id', 'text', (column) => column.notNull())
          .addColumn('status', 'text', (column) => column.notNull())
          .addColumn('ended_at', 'bigint', (column) => column.notNull()),
      ).execute();
      await withCharge(
        db.schema
          .createTable('usage_hours')
          .addColumn('hour', 'bigint', (column) => column.notNull())
          .addColumn('key_id', 'text', (column) => column.notNull())
          .addColumn('outcome', 'text', (column) => column.notNull())
          .addColumn('count', 'bigint', (column) => column.notNull())
          .addPrimaryKeyConstraint('usage_hours_key', ['hour', 'key_id', 'outcome']),
      ).execute();
      // For the hours of one key. An hour that is added to leaves it alone.
      await db.schema
        .createIndex('usage_hours_by_key')
        .on('usage_hours')
        .columns(['key_id', 'hour'])
        .execute();
    },
  },
  '0004-idempotency': {
    async up(db) {
      await db.schema
        .createTable('idempotency_answers')
        .addColumn('id', 'text', (column) => column.primaryKey().notNull())
        .addColumn('key_id', 'text', (column) => column.notNull())
        .addColumn('route', 'text', (column) => column.notNull())
        .addColumn('idempotency_key', 'text', (column) => column.notNull())
        .addColumn('request_hash', 'text', (column) => column.notNull())
        .addColumn('status', 'integer', (column) => column.notNull())
        .addColumn('location', 'text')
        .addColumn('created_at', 'bigint', (column) => column.notNull())
        .addColumn('body_bytes', 'bigint', (column) => column.notNull())
        .addColumn('body_start', 'bytea', (column) => column.notNull())
        .addUniqueConstraint('idempotency_answers_name', ['key_id', 'route', 'idempotency_key'])
        .execute();
      await db.schema
        .createIndex('idempotency_answers_by_key')
        .on('idempotency_answers')
        .columns(['key_id', 'id', 'body_bytes'])
        .execute();
      await db.schema
        .createTable('idempotency_parts')
        .addColumn('answer_id', 'text', (column) => column.notNull())
        .addColumn('position', 'integer', (column) => column.notNull())
        .addColumn('bytes', 'bytea', (column) => column.notNull())
        .addPrimaryKeyConstraint('idempotency_parts_key', ['answer_id', 'position'])
        .execute();
    },
  },
  '0005-jobs': {
    async up(db) {
      await db.schema
        .createTable('jobs')
        .addColumn('id', 'text', (column) => column.primaryKey().notNull())
        .addColumn('key_id', 'text', (column) => column.notNull())
        .addColumn('status', 'text', (column) => column.notNull())
        .addColumn('timeout_ms', 'integer', (column) => column.notNull())
        .addColumn('memory_mb', 'integer', (column) => column.notNull())
        .addColumn('created_at', 'bigint', (column) => column.notNull())
        .addColumn('started_at', 'bigint')
        .addColumn('finished_at', 'bigint')
        .addColumn('worker', 'text')
        .addColumn('lease_until', 'bigint')
        .addColumn('token', 'integer', (column) => column.notNull())
        .addColumn('losses', 'integer', (column) => column.notNull())
        .addColumn('cancel_requested', 'integer', (column) => column.notNull())
        .addColumn('code_bytes', 'integer', (column) => column.notNull())
        .addColumn('stdin_bytes', 'integer', (column) => column.notNull())
        .addColumn('inputs_bytes', 'integer', (column) => column.notNull())
        .addColumn('result_bytes', 'integer', (column) => column.notNull())
        .addColumn('summary', 'text')
        .execute();
      // For the next job of the next key. Only waiting jobs are in it.
      await db.schema
        .createIndex('jobs_waiting')
        .on('jobs')
        .columns(['key_id', 'id'])
        .where(sql<boolean>`status = 'queued'`)
        .execute();
      await db.schema
        .createIndex('jobs_running')
        .on('jobs')
        .columns(['lease_until'])
        .where(sql<boolean>`status = 'running'`)
        .execute();
      // For what is to be removed first.
      await db.schema
        .createIndex('jobs_ended')
        .on('jobs')
        .columns(['finished_at', 'id', 'result_bytes'])
        .where(sql<boolean>`finished_at is not null`)
        .execute();
      await db.schema.createIndex('jobs_by_key').on('jobs').columns(['key_id', 'id']).execute();
      await db.schema.createIndex('jobs_by_status').on('jobs').columns(['key_id', 'status', 'id']).execute();
      await db.schema
        .createTable('job_pieces')
        .addColumn('job_id', 'text', (column) => column.notNull())
        .addColumn('attempt', 'integer', (column) => column.notNull())
        .addColumn('part', 'integer', (column) => column.notNull())
        .addColumn('content', 'bytea', (column) => column.notNull())
        .addPrimaryKeyConstraint('job_pieces_key', ['job_id', 'attempt', 'part'])
        .execute();
      await db.schema
        .createTable('job_totals')
        .addColumn('jobs', 'bigint', (column) => column.notNull())
        .addColumn('bytes', 'bigint', (column) => column.notNull())
        .execute();
      await sql`insert into job_totals (jobs, bytes) values (0, 0)`.execute(db);
    },
  },
  '0006-jobs-kept': {
    async up(db) {
      // It is filled at each start of the service.
      await db.schema
        .createTable('jobs_kept')
        .addColumn('key_id', 'text', (column) => column.primaryKey().notNull())
        .addColumn('jobs', 'bigint', (column) => column.notNull())
        .addColumn('bytes', 'bigint', (column) => column.notNull())
        .execute();
      // For the key that keeps most.
      for (const name of ['jobs', 'bytes']) {
        await db.schema.createIndex(`jobs_kept_${name}`).on('jobs_kept').column(name).execute();
      }
    },
  },
};

const CHARGE = ['queue_ms', 'wall_ms', 'cpu_ms', 'memory_mb_ms', 'bytes_in', 'bytes_out', 'images'];

function withCharge<Table extends string>(table: CreateTableBuilder<Table, string>) {
  return CHARGE.reduce<CreateTableBuilder<Table, string>>(
    (builder, name) => builder.addColumn(name, 'bigint', (column) => column.notNull()),
    table,
  );
}

/** Where Kysely's migrator writes down what it has applied. */
const APPLIED_TABLE = 'kysely_migration';

/**
 * Brings the schema up to date. Two processes that start at once are safe: the one that comes second waits for
 * the first one's transaction and then finds nothing to do.
 * @throws OperatorError when a newer version of the service has made a breaking change.
 */
export async function migrate(db: Kysely<Database>): Promise<void> {
  const migrations = { ...MIGRATIONS };
  for (const name of await readableNames(db)) {
    // To the migrator, a newer migration that does not break us is one of ours that has nothing left to do.
    migrations[name] ??= { up: async () => undefined };
  }
  const provider: MigrationProvider = { getMigrations: async () => migrations };
  const migrator = new Migrator({ db, provider, migrationTableName: APPLIED_TABLE });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}

/**
 * For commands: a service of another version may be running on the database.
 * @throws OperatorError when it is of an older version, or of a newer one that has made a breaking change.
 */
export async function refuseOtherVersion(db: Kysely<Database>): Promise<void> {
  const applied = await readableNames(db);
  if (Object.keys(MIGRATIONS).every((name) => applied.includes(name))) return;
  throw new OperatorError(
    'The database is of an older version of Codecell: start the service of this version, which brings it up to date. "codecell backup" copies it as it is.',
  );
}

/** The migrations that have been applied, newer ones included that this version can live with. */
async function readableNames(db: Kysely<Database>): Promise<string[]> {
  const names = await appliedNames(db);
  const breaking = names.find((name) => !(name in MIGRATIONS) && name.endsWith('-breaking'));
  if (breaking === undefined) return names;
  throw new OperatorError(
    `The database was changed by a newer version of Codecell (migration ${breaking}), which this one cannot read: start the newer version.`,
  );
}

async function appliedNames(db: Kysely<Database>): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some((table) => table.name === APPLIED_TABLE)) return [];
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(APPLIED_TABLE)}`.execute(db);
  return rows.map((row) => row.name);
}
