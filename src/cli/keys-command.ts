/** The arguments of `codecell keys …`. */

import { type Command, Option } from 'commander';
import { KEY_STATES, type KeyState, ROLES, type Role } from '../keys/key.ts';
import { LIMIT_BOUNDS, LIMIT_NAMES } from '../keys/limit-bounds.ts';
import type { JsonOption, KeyFieldOptions } from './keys.ts';

/** Commander's names of options; those of a key's fields are the contract's. */
type Options = Record<string, string | undefined> & JsonOption;

/** Adds `keys` and what is below it. */
export function addKeysCommand(program: Command): void {
  const keys = program.command('keys').description('make, list, change and revoke keys');
  const command = (name: string, description: string) =>
    keys.command(name).description(description).option('--json', 'as JSON');

  withFields(
    command('create', 'make a key and print its secret, once')
      .option('--name <name>', 'what to call it; needed, but for an admin key')
      .option('--admin', 'an admin key: it may call everything'),
  ).action(async (options: Options & { admin: boolean }, create: Command) => {
    const name = options.name ?? (options.admin ? 'admin' : undefined);
    if (name === undefined) {
      return create.error('error: a key needs --name <name>, or --admin for an admin key');
    }
    const { createKey } = await import('./keys.ts');
    const role = options.admin ? 'admin' : 'user';
    await createKey(process.env, { ...fieldOptions(options), name, role, json: options.json });
  });

  command('list', 'list keys, newest first')
    .option('--team <team>', 'of this team alone')
    .addOption(new Option('--state <state>', 'in this state alone').choices(KEY_STATES))
    .action(async (options: { team?: string; state?: KeyState } & JsonOption) => {
      const { listKeys } = await import('./keys.ts');
      await listKeys(process.env, options);
    });

  command('show', 'show a key')
    .argument('<id>')
    .action(async (id: string, options: JsonOption) => {
      const { showKey } = await import('./keys.ts');
      await showKey(process.env, id, options);
    });

  withFields(
    command('update', 'change a key')
      .argument('<id>')
      .option('--name <name>', 'what to call it')
      .addOption(new Option('--role <role>', 'what it may do').choices(ROLES)),
    '; "none" takes it away',
  ).action(async (id: string, options: Options & { role?: Role }) => {
    const { updateKey } = await import('./keys.ts');
    const { name, role, json } = options;
    await updateKey(process.env, id, {
      ...fieldOptions(options),
      ...(name === undefined ? {} : { name }),
      ...(role === undefined ? {} : { role }),
      json,
    });
  });

  command('rotate', 'give a key a new secret and print it, once')
    .argument('<id>')
    .requiredOption(
      '--overlap-seconds <number>',
      'how long the secret before goes on to work: 0 to 604800, a week',
    )
    .action(async (id: string, options: { overlapSeconds: string } & JsonOption) => {
      const { rotateKey } = await import('./keys.ts');
      await rotateKey(process.env, id, options);
    });

  command('revoke', 'end a key for good')
    .argument('<id>')
    .action(async (id: string, options: JsonOption) => {
      const { revokeKey } = await import('./keys.ts');
      await revokeKey(process.env, id, options);
    });

  keys
    .command('check')
    .description('say of a secret on standard input whether it is mistyped, and whose it is')
    .action(async () => {
      const { checkSecret } = await import('./key-check.ts');
      process.exitCode = await checkSecret(process.env);
    });
}

function withFields(command: Command, none = ''): Command {
  command
    .option('--team <team>', `whom its usage is added up for${none}`)
    .option('--expires-at <time>', `when it ends, as RFC 3339 has it: 2030-12-31T23:59:59Z${none}`);
  for (const limit of LIMIT_NAMES) {
    const { min, max, description } = LIMIT_BOUNDS[limit];
    command.option(`${flagOf(limit)} <number>`, `${withFlags(description)} ${min} to ${max}${none}`);
  }
  return command;
}

/** The options by the contract's names. */
function fieldOptions(options: Options): KeyFieldOptions {
  const fields: KeyFieldOptions = {};
  for (const field of ['team', 'expires_at', ...LIMIT_NAMES] as const) {
    const value = options[camelCase(field)];
    if (value !== undefined) fields[field] = value;
  }
  return fields;
}

/** A text that names limits, with the options that set them instead. */
function withFlags(text: string): string {
  return LIMIT_NAMES.reduce((said, name) => said.replaceAll(name, flagOf(name)), text);
}

function flagOf(field: string): string {
  return `--${field.replaceAll('_', '-')}`;
}

function camelCase(field: string): string {
  return field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
