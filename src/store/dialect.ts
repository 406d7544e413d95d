/**
 * Kysely on Node's own SQLite (`node:sqlite`), so that nothing native is compiled. Everything that is specific to
 * SQLite is in this file; the queries are those of any database.
 *
 * Concurrency: the driver is synchronous and owns one connection, which a transaction keeps to itself until its
 * end; everybody else waits in line. Other processes on the same file (`codecell keys` while the service runs)
 * are kept apart by WAL and `BEGIN IMMEDIATE`: a transaction takes the write lock at its start, so it never fails
 * half-way because another one wrote in between. It waits for that lock at most BUSY_TIMEOUT_MS. SQLite itself would
 * wait on the one thread that everything runs on; the driver asks again instead, and lets others have the connection
 * meanwhile, since reading goes on while another process writes.
 *
 * Durability: synchronous=FULL, so that what was committed survives a loss of power; but see `quick-transaction.ts`,
 * whose `set synchronous_commit`, in PostgreSQL's words, chooses between FULL and NORMAL here.
 *
 * Failure: a full disk fails the statement or the commit, and undoes the transaction. What was committed before is
 * in the write-ahead log and is not touched by it.
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

/** The longest pause before the write lock is asked for again; the first ones are shorter. */
const BUSY_PAUSE_MS_MAX = 25;

/**
 * Pages of 4 KiB in the write-ahead log until they are moved to the database, which waits for the disk. One commit in a
 * thousand pays for that, where SQLite's own 1000 pages would make it one in 250.
 */
const CHECKPOINT_PAGES = 4000;

/** SQLite's result code for a lock that another process holds; extended codes have it in their low byte. */
const SQLITE_BUSY = 5;

/** What durability is asked for with, and SQLite's name for it. */
const SYNCHRONOUS: Record<string, 'FULL' | 'NORMAL'> = {
  'set synchronous_commit = on': 'FULL',
  'set synchronous_commit = off': 'NORMAL',
};

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
    return new NodeSqliteAdapter();
  }

  // biome-ignore lint/suspicious/noExplicitAny: the type is Kysely's
  createIntrospector(db: Kysely<any>): DatabaseIntrospector {
    return new SqliteIntrospector(db);
  }
}

class NodeSqliteAdapter extends SqliteAdapter {
  /** The driver has turns of its own, which it may give away; Kysely's would be kept. */
  override get supportsMultipleConnections(): boolean {
    return true;
  }

  /** SQLite does roll back changes of the schema, so each start migrates in one transaction or not at all. */
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
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 0');
    database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    this.#connection = new NodeSqliteConnection(database, (pauseMs) => this.#letOthers(pauseMs));
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    if (this.#connection === undefined) throw new Error('The database is closed.');
    await this.#takeTurn();
    return this.#connection;
  }

  async releaseConnection(): Promise<void> {
    this.#endTurn();
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('BEGIN IMMEDIATE'));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('COMMIT'));
  }

  async rollbackTransaction(): Promise<void> {
    this.#connection?.rollBack();
  }

  async destroy(): Promise<void> {
    this.#connection?.close();
    this.#connection = undefined;
  }

  async #takeTurn(): Promise<void> {
    if (this.#busy) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#busy = true;
  }

  #endTurn(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#busy = false;
  }

  /** Gives the connection away for a while, and waits for the next turn. */
  async #letOthers(pauseMs: number): Promise<void> {
    this.#endTurn();
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    await this.#takeTurn();
  }
}

/** Statements that are known beforehand and run as one transaction. */
interface Batch extends CompiledQuery {
  batch: readonly CompiledQuery[];
}

/**
 * A query that runs all of `queries`, which return no rows, as one transaction whose commit does not wait for the disk.
 * For what is written with every request: a transaction of Kysely's takes a dozen promises and a third more time.
 */
export function batchWithoutDisk(queries: readonly CompiledQuery[]): CompiledQuery {
  const query: Batch = { ...CompiledQuery.raw('batch'), batch: queries };
  return query;
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
  readonly #letOthers: (pauseMs: number) => Promise<void>;
  /** What SQLite has been told, and what has been asked for: it is told before the next write. */
  #synchronous: 'FULL' | 'NORMAL' = 'FULL';
  #wanted: 'FULL' | 'NORMAL' = 'FULL';

  /** @param letOthers Gives the connection to whoever waits for it, and comes back after a pause. */
  constructor(database: DatabaseSync, letOthers: (pauseMs: number) => Promise<void>) {
    this.#database = database;
    this.#letOthers = letOthers;
  }

  /** Waits while another process holds the write lock; within a transaction that cannot be, since it has the lock. */
  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const deadlineMs = performance.now() + BUSY_TIMEOUT_MS;
    for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, BUSY_PAUSE_MS_MAX)) {
      try {
        return this.#execute(query);
      } catch (error) {
        if (!isBusy(error) || this.#database.isTransaction || performance.now() >= deadlineMs) throw error;
      }
      const wanted = this.#wanted;
      this.#wanted = 'FULL';
      await this.#letOthers(pauseMs);
      this.#wanted = wanted;
    }
  }

  /** Undoes the transaction, unless SQLite has done so already, as it does when the disk is full. */
  rollBack(): void {
    if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
  }

  #execute<Row>(query: CompiledQuery): QueryResult<Row> {
    if ('batch' in query) return this.#executeBatch((query as Batch).batch);
    const synchronous = SYNCHRONOUS[query.sql];
    if (synchronous !== undefined) {
      this.#wanted = synchronous;
      return { rows: [] };
    }
    if (this.#wanted !== this.#synchronous && !query.sql.startsWith('select')) {
      this.#setSynchronous(this.#wanted);
    }
    const { statement, returnsRows } = this.#prepare(query.sql);
    const parameters = query.parameters as SQLInputValue[];
    if (returnsRows) return { rows: statement.all(...parameters) as Row[] };
    const { changes, lastInsertRowid } = statement.run(...parameters);
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  }

  #executeBatch<Row>(queries: readonly CompiledQuery[]): QueryResult<Row> {
    this.#setSynchronous('NORMAL');
    this.#prepare('BEGIN IMMEDIATE').statement.run();
    try {
      for (const { sql, parameters } of queries) {
        this.#prepare(sql).statement.run(...(parameters as SQLInputValue[]));
      }
      this.#prepare('COMMIT').statement.run();
    } catch (error) {
      this.rollBack();
      throw error;
    }
    return { rows: [] };
  }

  // biome-ignore lint/correctness/useYield: the interface asks for a generator; no caller streams
  async *streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('This dialect does not stream.');
  }

  close(): void {
    this.#prepared.clear();
    this.#database.close();
  }

  /** A prepared statement would not do: SQLite reads this pragma when it prepares it. */
  #setSynchronous(level: 'FULL' | 'NORMAL'): void {
    if (level === this.#synchronous || this.#database.isTransaction) return;
    this.#database.exec(`PRAGMA synchronous = ${level}`);
    this.#synchronous = level;
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

/** Whether another process holds the lock that was asked for. */
export function isBusy(error: unknown): boolean {
  const { errcode } = error as { errcode?: number };
  return errcode !== undefined && (errcode & 0xff) === SQLITE_BUSY;
}

/**
 * Writes a consistent copy of the database to a file that must be empty or missing. Others read and write meanwhile:
 * the copy is of one moment, and goes through all pages in one read transaction.
 */
export async function copyDatabase(db: Pick<Kysely<unknown>, 'executeQuery'>, path: string): Promise<void> {
  await db.executeQuery(CompiledQuery.raw('VACUUM INTO ?', [path]));
}
