/**
 * Every setting of the service, in one schema: name, meaning, default and bounds. `codecell config` prints it and
 * `loadConfig` reads the environment by it. What is not here is not a setting: an unknown CODECELL_ variable
 * stops the start, because a misspelt limit that is silently ignored is worse than a service that says so.
 */

import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { OperatorError } from './shared/errors.ts';
import { nearestName } from './shared/nearest.ts';

const PREFIX = 'CODECELL_';

/** One setting. `parse` throws an Error whose message says what is allowed. */
interface Setting<Value> {
  variable: `CODECELL_${string}`;
  description: string;
  /** What is allowed, unit included. */
  bounds: string;
  defaultValue: () => Value;
  parse: (text: string) => Value;
  /** Never printed or logged. */
  secret?: boolean;
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

export const ISOLATIONS = ['bubblewrap'] as const;

export type Isolation = (typeof ISOLATIONS)[number];

/** The fewest characters of a CODECELL_ADMIN_KEY. */
const ADMIN_KEY_MIN_LENGTH = 32;
const ADMIN_KEY_MAX_LENGTH = 512;

export const SETTINGS = {
  host: setting({
    variable: 'CODECELL_HOST',
    description: 'Address to listen on. 0.0.0.0 listens on every IPv4 address, :: on every address.',
    bounds: 'an IP address or a host name',
    defaultValue: () => '127.0.0.1',
    parse: (text) => {
      if (!/^[A-Za-z0-9.:_-]+$/.test(text)) throw new Error('must be an IP address or a host name');
      return text;
    },
  }),
  port: setting({
    variable: 'CODECELL_PORT',
    description: 'TCP port to listen on; 0 takes any free one.',
    defaultValue: () => 8000,
    ...wholeNumber({ min: 0, max: 65_535 }),
  }),
  dataDir: setting({
    variable: 'CODECELL_DATA_DIR',
    description: 'Folder of the database. Made at the first start, readable by its owner alone.',
    bounds: 'a path; a relative one starts at the current folder',
    defaultValue: () => resolve('data'),
    parse: (text) => resolve(text),
  }),
  adminKey: setting<string | undefined>({
    variable: 'CODECELL_ADMIN_KEY',
    description:
      'A secret that is an admin key as long as it is set. Without it one is made at the first start and printed once.',
    bounds: `${ADMIN_KEY_MIN_LENGTH} to ${ADMIN_KEY_MAX_LENGTH} visible ASCII characters, no spaces`,
    defaultValue: () => undefined,
    parse: (text) => {
      if (!/^[\x21-\x7e]*$/.test(text)) throw new Error('must be visible ASCII characters without spaces');
      if (text.length < ADMIN_KEY_MIN_LENGTH || text.length > ADMIN_KEY_MAX_LENGTH) {
        throw new Error(`must have ${ADMIN_KEY_MIN_LENGTH} to ${ADMIN_KEY_MAX_LENGTH} characters`);
      }
      return text;
    },
    secret: true,
  }),
  concurrency: setting({
    variable: 'CODECELL_CONCURRENCY',
    description: 'Programs that run at the same time. The default is the number of processor cores.',
    defaultValue: () => availableParallelism(),
    ...wholeNumber({ min: 1, max: 1024 }),
  }),
  queueMax: setting({
    variable: 'CODECELL_QUEUE_MAX',
    description:
      'Requests that may wait for a free slot. Beyond it the key with most waiting is answered 503.',
    defaultValue: () => 256,
    ...wholeNumber({ min: 0, max: 100_000 }),
  }),
  queueWaitMs: setting({
    variable: 'CODECELL_QUEUE_WAIT_MS',
    description: 'Longest time a request waits for a free slot before it is answered 503.',
    defaultValue: () => 10_000,
    ...wholeNumber({ min: 0, max: 600_000, unit: 'ms' }),
  }),
  memoryMbMax: setting({
    variable: 'CODECELL_MEMORY_MB_MAX',
    description: 'Highest memory_mb that a request may ask for.',
    defaultValue: () => 2048,
    ...wholeNumber({ min: 32, max: 1_048_576, unit: 'MB of 2^20 bytes' }),
  }),
  jobRetentionHours: setting({
    variable: 'CODECELL_JOB_RETENTION_HOURS',
    description: 'How long an ended job is kept with its result.',
    defaultValue: () => 24,
    ...wholeNumber({ min: 1, max: 8760, unit: 'hours' }),
  }),
  jobsMax: setting({
    variable: 'CODECELL_JOBS_MAX',
    description:
      'Jobs that are kept, ended or not. Beyond it the oldest ended job of the key that keeps most is removed; with none ended a new one is answered 503.',
    defaultValue: () => 10_000,
    ...wholeNumber({ min: 1, max: 1_000_000 }),
  }),
  resultsMbMax: setting({
    variable: 'CODECELL_RESULTS_MB_MAX',
    description:
      'Disk space of results of jobs that are kept and of programs that wait, together. Beyond it as for CODECELL_JOBS_MAX.',
    defaultValue: () => 4096,
    ...wholeNumber({ min: 64, max: 1_048_576, unit: 'MB of 2^20 bytes' }),
  }),
  trustedProxies: setting<string[]>({
    variable: 'CODECELL_TRUSTED_PROXIES',
    description:
      'Reverse proxies whose X-Forwarded-For is believed when failed authentications are counted by address.',
    bounds: 'IP addresses and CIDR ranges, separated by commas',
    defaultValue: () => [],
    parse: parseProxies,
  }),
  isolation: setting<Isolation>({
    variable: 'CODECELL_ISOLATION',
    description: 'What launches the sandbox.',
    bounds: `one of ${ISOLATIONS.join(', ')}`,
    defaultValue: () => 'bubblewrap',
    parse: (text) => oneOf(ISOLATIONS, text),
  }),
  logLevel: setting<LogLevel>({
    variable: 'CODECELL_LOG_LEVEL',
    description: 'Least severe log lines that are written, as JSON, to standard error.',
    bounds: `one of ${LOG_LEVELS.join(', ')}`,
    defaultValue: () => 'info',
    parse: (text) => oneOf(LOG_LEVELS, text),
  }),
};

type Settings = typeof SETTINGS;

export type SettingName = keyof Settings;

/** The value of every setting. */
export type Config = { [Name in SettingName]: ReturnType<Settings[Name]['parse']> };

/** Where a value comes from. */
export type Source = 'default' | 'environment';

export interface LoadedConfig {
  config: Config;
  sources: Record<SettingName, Source>;
}

/**
 * Reads every setting from `environment`.
 * @throws OperatorError naming every variable that is unknown or not valid.
 */
export function loadConfig(environment: Record<string, string | undefined>): LoadedConfig {
  const problems = unknownVariables(environment);
  const values: Record<string, unknown> = {};
  const sources: Record<string, Source> = {};
  for (const [name, definition] of Object.entries(SETTINGS) as [string, Setting<unknown>][]) {
    const text = environment[definition.variable];
    sources[name] = text === undefined ? 'default' : 'environment';
    try {
      values[name] = text === undefined ? definition.defaultValue() : parseSetting(definition, text);
    } catch (error) {
      problems.push(`${definition.variable} ${(error as Error).message}`);
    }
  }
  if (problems.length > 0) throw new OperatorError(problems.join('\n'));
  return { config: values as Config, sources: sources as Record<SettingName, Source> };
}

function parseSetting(definition: Setting<unknown>, text: string): unknown {
  if (text === '') throw new Error('is empty: give it a value or unset it');
  return definition.parse(text);
}

/** Kubernetes injects CODECELL_SERVICE_* and CODECELL_PORT_* into pods beside a service named codecell. */
function unknownVariables(environment: Record<string, string | undefined>): string[] {
  const known = Object.values(SETTINGS).map((definition): string => definition.variable);
  return Object.keys(environment)
    .filter((name) => name.startsWith(PREFIX) && !known.includes(name))
    .filter((name) => !name.startsWith('CODECELL_SERVICE_') && !name.startsWith('CODECELL_PORT_'))
    .map((name) => {
      // What all have in common says nothing of what was meant.
      const nearest = nearestName(
        name.slice(PREFIX.length),
        known.map((each) => each.slice(PREFIX.length)),
      );
      const remedy =
        nearest === undefined
          ? 'docs/reference/settings.md lists those there are'
          : `did you mean ${PREFIX}${nearest}?`;
      return `${name} is not a setting of this version: ${remedy}`;
    });
}

function oneOf<Value extends string>(known: readonly Value[], text: string): Value {
  const value = known.find((each) => each === text);
  if (value === undefined) throw new Error(`must be one of ${known.join(', ')}`);
  return value;
}

/** Infers the value's type; an object literal alone would not. */
function setting<Value>(definition: Setting<Value>): Setting<Value> {
  return definition;
}

function wholeNumber(limits: { min: number; max: number; unit?: string }) {
  const range = `${limits.min} to ${limits.max}${limits.unit ? ` ${limits.unit}` : ''}`;
  return {
    bounds: `a whole number, ${range}`,
    parse: (text: string): number => {
      if (text.startsWith('tcp://')) {
        throw new Error(
          'is an address that Kubernetes injects for a service named codecell: set enableServiceLinks: false in the pod spec',
        );
      }
      const value = Number(text);
      if (!/^\d{1,15}$/.test(text) || value < limits.min || value > limits.max) {
        throw new Error(`must be a whole number, ${range}`);
      }
      return value;
    },
  };
}

function parseProxies(text: string): string[] {
  const proxies = text.split(',').map((part) => part.trim());
  for (const proxy of proxies) {
    const [address = '', prefix, ...rest] = proxy.split('/');
    const version = isIP(address);
    const prefixMax = version === 4 ? 32 : 128;
    const prefixValid = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= prefixMax);
    if (version === 0 || !prefixValid || rest.length > 0) {
      throw new Error(`must be IP addresses and CIDR ranges, separated by commas; "${proxy}" is neither`);
    }
  }
  return proxies;
}
