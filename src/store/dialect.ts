/**
 * Kysely on Node's own SQLite (`node:sqlite`), so that nothing native is compiled. Everything that is specific to
 * SQLite is in this file; the queries are those of any database.
 *
 * Concurrency: the driver is synchronous and owns one connection, which a transaction keeps to itself until its
 * end; everybody else waits in line. Other processes on the same file (`codecell keys` while the service runs)
 * are kept apart by WAL and `BEGIN IMMEDIATE`: a transaction takes the write lock at its start, so it never fails
 * half-way because another one wrote in between. It waits for that lock at most BUSY_TIMEOUT_MS.
 *
 * Durability: synchronous=FULL, so that what was committed survives a loss of power.
 */

import { chmodSync, closeSync, openSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import {
  CompiledQuery,
  type DatabaseConnection,
  type DatabaseIntrospector,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryCompiler,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';

const BUSY_TIMEOUT_MS = 10_000;

/** Prepared statements kept; the service has a few dozen different ones. */
const STATEMENTS_MAX = 200;

export class NodeSqliteDialect implements Dialect {
  readonly #path: string;

  /** @param path Database file, made with mode 0600 where it is missing. */
  constructor(path: string) {
    this.#path = path;
  }

  createDriver(): Driver {
    return new NodeSqliteDriver(this.#path);
  }

  createQueryCompiler(): QueryCompiler {
    return new SqliteQueryCompiler();
  }

  createAdapter(): SqliteAdapter {
    return new TransactionalSqliteAdapter();
  }

  // biome-ignore lint/suspicious/noExplicitAny: the type is Kysely's
  createIntrospector(db: Kysely<any>): DatabaseIntrospector {
    return new SqliteIntrospector(db);
  }
}

/** SQLite does roll back changes of the schema, so each start migrates in one transaction or not at all. */
class TransactionalSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class NodeSqliteDriver implements Driver {
  readonly #path: string;
  #connection: NodeSqliteConnection | undefined;
  #busy = false;
  readonly #waiting: (() => void)[] = [];

  constructor(path: string) {
    this.#path = path;
  }

  async init(): Promise<void> {
    // SQLite would make the file with the process's umask; its journal files take their mode from it.
    closeSync(openSync(this.#path, 'a', 0o600));
    chmodSync(this.#path, 0o600);
    const database = new DatabaseSync(this.#path, {
      timeout: BUSY_TIMEOUT_MS,
      enableForeignKeyConstraints: true,
    });
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    this.#connection = new NodeSqliteConnection(database);
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    if (this.#connection === undefined) throw new Error('The database is closed.');
    if (this.#busy) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#busy = true;
    return this.#connection;
  }

  async releaseConnection(): Promise<void> {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#busy = false;
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('BEGIN IMMEDIATE'));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('COMMIT'));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('ROLLBACK'));
  }

  async destroy(): Promise<void> {
    this.#connection?.close();
    this.#connection = undefined;
  }
}

/** A prepared statement; asking each time whether it returns rows would cost as much as running it. */
interface Prepared {
  statement: StatementSync;
  returnsRows: boolean;
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync;
  /** By their text, least recently used first. Preparing costs more than running a look-up by key. */
  readonly #prepared = new Map<string, Prepared>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const { statement, returnsRows } = this.#prepare(query.sql);
    const parameters = query.parameters as SQLInputValue[];
    if (returnsRows) return { rows: statement.all(...parameters) as Row[] };
    const { changes, lastInsertRowid } = statement.run(...parameters);
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  }

  // biome-ignore lint/correctness/useYield: the interface asks for a generator; no caller streams
  async *streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('This dialect does not stream.');
  }

  close(): void {
    this.#prepared.clear();
    this.#database.close();
  }

  #prepare(sql: string): Prepared {
    let prepared = this.#prepared.get(sql);
    if (prepared === undefined) {
      const statement = this.#database.prepare(sql);
      prepared = { statement, returnsRows: statement.columns().length > 0 };
    }
    this.#prepared.delete(sql);
    this.#prepared.set(sql, prepared);
    if (this.#prepared.size > STATEMENTS_MAX) {
      const oldest = this.#prepared.keys().next();
      if (!oldest.done) this.#prepared.delete(oldest.value);
    }
    return prepared;
  }
}
