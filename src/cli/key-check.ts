import { text } from 'node:stream/consumers';
import { loadConfig } from '../config.ts';
import { keyState } from '../keys/key.ts';
import { hashSecret, isWellFormedSecret } from '../keys/secret.ts';
import { systemClock } from '../shared/clock.ts';
import { OperatorError } from '../shared/errors.ts';
import { openExistingDatabase } from '../store/database.ts';
import { KeyStore } from '../store/key-store.ts';

/**
 * `codecell keys check`: says of a secret on standard input whether it is mistyped, and whose it is. A secret as an
 * argument could be read by every user of the machine.
 * @returns the exit code: 0 for a secret that works.
 */
export async function checkSecret(environment: NodeJS.ProcessEnv): Promise<number> {
  const { config } = loadConfig(environment);
  const secret = (await text(process.stdin)).trim();
  if (secret === '') throw new OperatorError('Send the secret on standard input: codecell keys check < FILE');
  const [verdict, works] = await verdictOf(secret, config);
  process.stdout.write(`${verdict}\n`);
  return works ? 0 : 1;
}

async function verdictOf(
  secret: string,
  { adminKey, dataDir }: { adminKey: string | undefined; dataDir: string },
): Promise<[verdict: string, works: boolean]> {
  if (secret === adminKey) return ['works: it is CODECELL_ADMIN_KEY', true];
  if (!secret.startsWith('ck_')) return ['no key: keys begin with ck_', false];
  if (!isWellFormedSecret(secret)) return ['mistyped: its checksum does not fit the rest', false];
  const db = await openExistingDatabase(dataDir);
  try {
    const found = await new KeyStore(db).findBySecretHash(hashSecret(secret));
    if (found === null) return ['unknown: well formed, but of no key in this data folder', false];
    const { key, secretExpiresAt } = found;
    const nowMs = systemClock.now();
    const state = keyState(key, nowMs);
    if (state !== 'active') return [`${state}: key ${key.id}`, false];
    if (secretExpiresAt === null) return [`works: key ${key.id}`, true];
    const until = secretExpiresAt.toISOString();
    return secretExpiresAt.getTime() > nowMs
      ? [`works until ${until}: an earlier secret of key ${key.id}`, true]
      : [`replaced, and ended on ${until}: an earlier secret of key ${key.id}`, false];
  } finally {
    await db.destroy();
  }
}
