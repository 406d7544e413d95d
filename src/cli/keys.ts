/**
 * `codecell keys …`: the keys in the data folder, also while the service runs on it. The service looks keys up at each
 * request, so a change holds at the next one; running programs of a revoked key are stopped within a second.
 */

import type { Kysely } from 'kysely';
import { loadConfig } from '../config.ts';
import type { KeyState, Role } from '../keys/key.ts';
import { type IssuedKey, KeyAdministration, OVERLAP_SECONDS_MAX } from '../keys/key-administration.ts';
import type { KeyFields } from '../keys/key-fields.ts';
import { keyResource } from '../keys/key-resource.ts';
import { LIMIT_BOUNDS, LIMIT_NAMES, type LimitName } from '../keys/limit-bounds.ts';
import { cancelJobsOf } from '../runs/jobs/jobs.ts';
import { systemClock } from '../shared/clock.ts';
import { ArgumentError, OperatorError, ServiceError } from '../shared/errors.ts';
import { hasDatabase, openDatabase, openExistingDatabase } from '../store/database.ts';
import { KeyStore } from '../store/key-store.ts';
import type { Database } from '../store/schema.ts';
import { commandJobs } from './command-jobs.ts';
import { keyDetails, keyTable } from './key-table.ts';

/** Options of a key's fields, as text; limits by their names in the contract. */
export type KeyFieldOptions = { [Name in LimitName]?: string } & {
  name?: string;
  team?: string;
  role?: Role;
  expires_at?: string;
};

export interface JsonOption {
  json: boolean;
}

/** What takes a limit, the team or the expiry away. */
const NONE = 'none';

const PAGE = 1000;

/** `codecell keys create`: prints the secret alone on standard output, and what it is on standard error. */
export async function createKey(
  environment: NodeJS.ProcessEnv,
  options: KeyFieldOptions & { name: string } & JsonOption,
): Promise<void> {
  const { config } = loadConfig(environment);
  const { name, json } = options;
  for (const field of ['team', 'expires_at', ...LIMIT_NAMES] as const) {
    if (options[field] !== NONE) continue;
    throw new ArgumentError(
      `${optionOf(field)} ${NONE} is for "keys update": a new key has none where the option is absent`,
    );
  }
  if (!hasDatabase(config.dataDir)) {
    process.stderr.write(
      `There is no database in ${config.dataDir}, so one is made: the key is for a service on that folder.\n`,
    );
  }
  const issued = await withKeys(await openDatabase(config.dataDir), (keys) =>
    keys.create({ ...fieldsOf(options), name }),
  );
  printSecret(issued, json);
}

/** `codecell keys list`: newest first. */
export async function listKeys(
  environment: NodeJS.ProcessEnv,
  { team, state, json }: { team?: string; state?: KeyState } & JsonOption,
): Promise<void> {
  await withExistingKeys(environment, async (keys) => {
    const found: ReturnType<typeof shown>[] = [];
    for (let beforeId: string | undefined; ; ) {
      const page = await keys.list({ team, state, beforeId, limit: PAGE });
      found.push(...page.map(shown));
      beforeId = page.at(-1)?.id;
      if (page.length < PAGE) break;
    }
    print(json ? found : keyTable(found));
  });
}

/** `codecell keys show`. */
export async function showKey(
  environment: NodeJS.ProcessEnv,
  id: string,
  { json }: JsonOption,
): Promise<void> {
  await withExistingKeys(environment, async (keys) => printKey(shown(await keys.find(id)), json));
}

/** `codecell keys update`: options that are absent leave things as they are. */
export async function updateKey(
  environment: NodeJS.ProcessEnv,
  id: string,
  options: KeyFieldOptions & JsonOption,
): Promise<void> {
  const fields = fieldsOf(options);
  if (Object.keys(fields).length === 0) {
    throw new ArgumentError('Nothing to change: "codecell keys update --help" lists what can be.');
  }
  await withExistingKeys(environment, async (keys) =>
    printKey(shown(await keys.change(id, fields)), options.json),
  );
}

/** `codecell keys rotate`. */
export async function rotateKey(
  environment: NodeJS.ProcessEnv,
  id: string,
  options: { overlapSeconds: string } & JsonOption,
): Promise<void> {
  const overlapSeconds = numberOf('--overlap-seconds', options.overlapSeconds, {
    min: 0,
    max: OVERLAP_SECONDS_MAX,
  });
  await withExistingKeys(environment, async (keys) =>
    printSecret(await keys.rotate(id, overlapSeconds), options.json),
  );
}

/** `codecell keys revoke`: for good. Jobs that wait end here, and a service stops those that run. */
export async function revokeKey(
  environment: NodeJS.ProcessEnv,
  id: string,
  { json }: JsonOption,
): Promise<void> {
  await withExistingKeys(environment, async (keys, db) => {
    const key = await keys.revoke(id);
    const jobs = commandJobs(db);
    await cancelJobsOf(id, jobs);
    // The programs of jobs that never ran.
    await jobs.queue.purge();
    printKey(shown(key), json);
  });
}

async function withExistingKeys(
  environment: NodeJS.ProcessEnv,
  body: (keys: KeyAdministration, db: Kysely<Database>) => Promise<void>,
): Promise<void> {
  const { config } = loadConfig(environment);
  await withKeys(await openExistingDatabase(config.dataDir), body);
}

async function withKeys<Result>(
  db: Kysely<Database>,
  body: (keys: KeyAdministration, db: Kysely<Database>) => Promise<Result>,
): Promise<Result> {
  try {
    // Whoever owns the data folder can make another admin key at any time.
    const administration = { keys: new KeyStore(db), clock: systemClock, lastAdminMayGo: true };
    return await body(new KeyAdministration(administration), db);
  } catch (error) {
    throw error instanceof ServiceError ? inOptions(error) : error;
  } finally {
    await db.destroy();
  }
}

/** The fields that the options name. */
function fieldsOf(options: KeyFieldOptions): KeyFields {
  const { name, team, role, expires_at } = options;
  const fields: KeyFields = {};
  if (name !== undefined) fields.name = name;
  if (team !== undefined) fields.team = team === NONE ? null : team;
  if (role !== undefined) fields.role = role;
  if (expires_at !== undefined) fields.expires_at = expires_at === NONE ? null : expires_at;
  for (const limit of LIMIT_NAMES) {
    const text = options[limit];
    if (text === undefined) continue;
    fields.limits ??= {};
    fields.limits[limit] = text === NONE ? null : numberOf(optionOf(limit), text, LIMIT_BOUNDS[limit]);
  }
  return fields;
}

function numberOf(option: string, text: string, { min, max }: { min: number; max: number }): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new ArgumentError(`${option} must be a whole number, ${min} to ${max}`);
}

/** An error over HTTP names fields; here they are options. */
function inOptions({ errors, detail }: ServiceError): OperatorError {
  if (errors === undefined) return new OperatorError(detail);
  const lines = errors.map(({ path, message }) => {
    const field = path.split('/').at(-1) ?? '';
    const text = LIMIT_NAMES.reduce((said, name) => said.replaceAll(name, optionOf(name)), message);
    return field === '' ? text : `${optionOf(field)} ${text}`;
  });
  return new ArgumentError(lines.join('\n'));
}

function optionOf(field: string): string {
  return `--${field.replaceAll('_', '-')}`;
}

function shown(key: IssuedKey['key']) {
  return keyResource(key, systemClock.now());
}

function printSecret({ key, secret }: IssuedKey, json: boolean): void {
  if (json) {
    print({ ...shown(key), secret });
    return;
  }
  const kind = key.role === 'admin' ? 'admin key' : 'key';
  process.stderr.write(`The secret of ${kind} ${key.id}, shown this once (only its hash is stored):\n`);
  print(`${secret}\n`);
}

function printKey(key: ReturnType<typeof shown>, json: boolean): void {
  print(json ? key : keyDetails(key));
}

function print(value: string | object): void {
  process.stdout.write(typeof value === 'string' ? value : `${JSON.stringify(value, null, 2)}\n`);
}
