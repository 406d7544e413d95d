import { loadConfig } from '../config.ts';
import { createAdminKey } from '../keys/create-key.ts';
import { systemClock } from '../shared/clock.ts';
import { openDatabase } from '../store/database.ts';
import { KeyStore } from '../store/key-store.ts';

/**
 * `codecell keys create --admin`: makes an admin key in the data folder, also while the service runs on it, and
 * prints its secret alone on standard output.
 * @throws OperatorError when the data folder cannot be used.
 */
export async function createAdminKeyCommand(
  environment: NodeJS.ProcessEnv,
  options: { name: string },
): Promise<void> {
  const { config } = loadConfig(environment);
  const db = await openDatabase(config.dataDir);
  try {
    const secret = await createAdminKey(new KeyStore(db), systemClock, options.name);
    process.stderr.write('The admin key, shown this once (only its hash is stored):\n');
    process.stdout.write(`${secret}\n`);
  } finally {
    await db.destroy();
  }
}
