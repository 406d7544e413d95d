import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Kysely } from 'kysely';
import { OperatorError } from '../shared/errors.ts';
import { NodeSqliteDialect } from './dialect.ts';
import { migrate } from './migrations.ts';
import type { Database } from './schema.ts';

const FILE_NAME = 'codecell.db';

/**
 * Opens the database of a data folder, makes both where they are missing and brings the schema up to date.
 * The caller must call `destroy()` on what it gets.
 * @throws OperatorError when the folder cannot be used or belongs to a newer version of the service.
 */
export async function openDatabase(dataDir: string): Promise<Kysely<Database>> {
  let db: Kysely<Database> | undefined;
  try {
    makeFolder(dataDir);
    db = new Kysely<Database>({ dialect: new NodeSqliteDialect(join(dataDir, FILE_NAME)) });
    await migrate(db);
    return db;
  } catch (error) {
    await db?.destroy();
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `The data folder ${dataDir} cannot be used (${(error as Error).message}). It is set by CODECELL_DATA_DIR.`,
      { cause: error },
    );
  }
}

/**
 * As `openDatabase`, for commands that make nothing.
 * @throws OperatorError when there is no database in the folder.
 */
export async function openExistingDatabase(dataDir: string): Promise<Kysely<Database>> {
  if (!existsSync(join(dataDir, FILE_NAME))) {
    throw new OperatorError(
      `There is no database in ${dataDir}: name the data folder of the service in CODECELL_DATA_DIR.`,
    );
  }
  return openDatabase(dataDir);
}

/** With its parents. Node's own `recursive` never returns where a parent exists and still takes no folder (/proc). */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process that starts at the same time may have been first.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
