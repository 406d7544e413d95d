import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Kysely } from 'kysely';
import { OperatorError } from '../shared/errors.ts';
import { makeFolder } from '../shared/make-folder.ts';
import { NodeSqliteDialect } from './dialect.ts';
import { lockFolder } from './folder-lock.ts';
import { migrate, refuseOtherVersion } from './migrations.ts';
import type { Database } from './schema.ts';

const FILE_NAME = 'codecell.db';

/** Whether there is a database in a data folder. Throws OperatorError where this user may not look. */
export function hasDatabase(dataDir: string): boolean {
  try {
    return statSync(join(dataDir, FILE_NAME)).isFile();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw new OperatorError(
      `This user may not read the data folder ${dataDir} (${code}): run this as the user that the service runs as.`,
      { cause: error },
    );
  }
}

/**
 * Opens the database of a data folder, makes both where they are missing and brings the schema up to date.
 * The caller must call `destroy()` on what it gets.
 * @throws OperatorError when the folder cannot be used or belongs to a newer version of the service.
 */
export function openDatabase(dataDir: string): Promise<Kysely<Database>> {
  return open(dataDir, migrate);
}

/** The database of a service, which has its data folder for itself. */
export interface ServiceDatabase {
  db: Kysely<Database>;
  close(): Promise<void>;
}

/**
 * As `openDatabase`, for a service. The caller must call `close()` on what it gets.
 * @throws OperatorError also when another service works on the folder.
 */
export async function openForService(dataDir: string): Promise<ServiceDatabase> {
  let unlock = (): void => undefined;
  try {
    const db = await open(dataDir, async (opened) => {
      // Before the schema is touched.
      unlock = lockFolder(dataDir);
      await migrate(opened);
    });
    return {
      db,
      close: async () => {
        await db.destroy();
        unlock();
      },
    };
  } catch (error) {
    unlock();
    throw error;
  }
}

/**
 * As `openDatabase`, for commands, which make nothing and change no schema under a service that runs.
 * @throws OperatorError when there is no database in the folder, or it is of another version.
 */
export function openExistingDatabase(dataDir: string): Promise<Kysely<Database>> {
  return openAsItIs(dataDir, refuseOtherVersion);
}

/**
 * As `openExistingDatabase`, of whatever version it is.
 * @throws OperatorError when there is no database in the folder.
 */
export async function openAsItIs(
  dataDir: string,
  prepare: (db: Kysely<Database>) => Promise<void> = async () => undefined,
): Promise<Kysely<Database>> {
  if (!hasDatabase(dataDir)) {
    throw new OperatorError(
      `There is no database in ${dataDir}: name the data folder of the service in CODECELL_DATA_DIR.`,
    );
  }
  return open(dataDir, prepare);
}

async function open(
  dataDir: string,
  prepare: (db: Kysely<Database>) => Promise<void>,
): Promise<Kysely<Database>> {
  let db: Kysely<Database> | undefined;
  try {
    makeFolder(dataDir, 0o700);
    db = new Kysely<Database>({ dialect: new NodeSqliteDialect(join(dataDir, FILE_NAME)) });
    await prepare(db);
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
