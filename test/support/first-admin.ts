/** A process that does what a first start does with the data folder named in its argument. */

import { createFirstAdminKey } from '../../src/keys/first-admin-key.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { openDatabase } from '../../src/store/database.ts';
import { KeyStore } from '../../src/store/key-store.ts';

const db = await openDatabase(process.argv[2] ?? '');
const secret = await createFirstAdminKey(new KeyStore(db), systemClock);
process.stdout.write(secret === null ? 'found\n' : 'made\n');
await db.destroy();
