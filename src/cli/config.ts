import { type Config, loadConfig, SETTINGS, type SettingName } from '../config.ts';

/** One setting as `codecell config --json` prints it. */
interface DescribedSetting {
  variable: string;
  value: unknown;
  source: 'default' | 'environment';
  default: unknown;
  bounds: string;
  description: string;
}

/**
 * Prints every setting with its value, where that comes from, bounds and meaning. Secrets are never printed.
 * @throws OperatorError when the environment does not make a valid configuration.
 */
export function printConfig(environment: NodeJS.ProcessEnv, options: { json: boolean }): void {
  const { config, sources } = loadConfig(environment);
  const described = (Object.keys(SETTINGS) as SettingName[]).map((name): DescribedSetting => {
    const { variable, bounds, description, defaultValue } = SETTINGS[name];
    return {
      variable,
      value: shownValue(name, config),
      source: sources[name],
      default: defaultValue() ?? null,
      bounds,
      description,
    };
  });
  process.stdout.write(
    options.json ? `${JSON.stringify(described, null, 2)}\n` : described.map(settingText).join('\n'),
  );
}

function shownValue(name: SettingName, config: Config): unknown {
  const value = config[name];
  if (value === undefined) return null;
  return SETTINGS[name].secret ? '[redacted]' : value;
}

function settingText(setting: DescribedSetting): string {
  const origin = setting.source === 'default' ? 'default' : `environment; default: ${plain(setting.default)}`;
  return `${setting.variable} = ${plain(setting.value)}  (${origin})
    ${setting.description}
    Allowed: ${setting.bounds}.
`;
}

function plain(value: unknown): string {
  if (value === null || (Array.isArray(value) && value.length === 0)) return 'none';
  return Array.isArray(value) ? value.join(',') : String(value);
}
