import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../shared/errors.ts';
import { isBusy } from './dialect.ts';

const FILE_NAME = 'codecell.lock';

/**
 * Keeps a data folder for one service: a second one would not know the turns, the rates and the unfinished work that the
 * first has in memory, and would clear away what the first is writing. It is the kernel's lock on a file, which ends with
 * the process, whatever ends that; SQLite takes it, because Node.js has no call for it.
 * @returns what gives the folder back.
 * @throws OperatorError when another service has it; any other error when the file cannot be locked.
 */
export function lockFolder(dataDir: string): () => void {
  const lock = new DatabaseSync(join(dataDir, FILE_NAME), { timeout: 0 });
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw new Error(`${FILE_NAME}: ${(error as Error).message}`, { cause: error });
    throw new OperatorError(
      `Another codecell serve works on the data folder ${dataDir}: stop it first, or name another folder in CODECELL_DATA_DIR.`,
      { cause: error },
    );
  }
  return () => lock.close();
}
