import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { loadConfig } from '../config.ts';
import { OperatorError } from '../shared/errors.ts';
import { openAsItIs } from '../store/database.ts';
import { copyDatabase } from '../store/dialect.ts';

/**
 * `codecell backup FILE`: a consistent copy of the database, also while the service runs on it. The file is there in
 * full and on disk, readable by its owner alone, or it is not there.
 * @throws OperatorError when there is no database, or the file cannot be made or exists.
 */
export async function backup(environment: NodeJS.ProcessEnv, file: string): Promise<void> {
  const { config } = loadConfig(environment);
  const path = resolve(file);
  const partial = `${path}.${process.pid}.partial`;
  if (existsSync(path)) throw new OperatorError(`${path} exists already: name another file.`);
  const db = await openAsItIs(config.dataDir);
  try {
    // An empty file is filled, and its mode stays.
    closeSync(openSync(partial, 'wx', 0o600));
    await copyDatabase(db, partial);
    sync(partial);
    renameSync(partial, path);
    sync(dirname(path));
  } catch (error) {
    rmSync(partial, { force: true });
    throw new OperatorError(`The backup could not be written to ${path} (${(error as Error).message}).`, {
      cause: error,
    });
  } finally {
    await db.destroy();
  }
  process.stdout.write(`${path}: ${Math.ceil(statSync(path).size / 1024).toLocaleString('en-US')} KiB\n`);
}

function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}
