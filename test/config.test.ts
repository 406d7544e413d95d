import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../src/config.ts';
import { runCodecell } from './support/process.ts';

function problemsOf(environment: Record<string, string>): string[] {
  try {
    loadConfig(environment);
  } catch (error) {
    return (error as Error).message.split('\n');
  }
  return [];
}

describe('settings', () => {
  it("have the contract's defaults", () => {
    const { config } = loadConfig({});
    expect(config).toMatchObject({
      host: '127.0.0.1',
      port: 8000,
      dataDir: resolve('data'),
      adminKey: undefined,
      queueMax: 256,
      queueWaitMs: 10_000,
      memoryMbMax: 2048,
      trustedProxies: [],
    });
    expect(config.concurrency).toBeGreaterThan(0);
  });

  it.each([
    ['CODECELL_PORT', ['65536', '-1', '80.5', '0x50', ' 80', '', 'http', '1e3']],
    ['CODECELL_HOST', ['a b', 'http://x/', '']],
    ['CODECELL_CONCURRENCY', ['0', '1025', 'two']],
    ['CODECELL_QUEUE_MAX', ['-1', '100001']],
    ['CODECELL_QUEUE_WAIT_MS', ['600001', '10s']],
    ['CODECELL_MEMORY_MB_MAX', ['31', '2G']],
    [
      'CODECELL_ADMIN_KEY',
      ['short', 'a key with spaces that is long enough', 'ä'.repeat(40), 'x'.repeat(513), ''],
    ],
    ['CODECELL_TRUSTED_PROXIES', ['10.0.0.0/33', 'proxy', '::1/129', '10.0.0.1,', '1.2.3', '10.0.0.0/8/8']],
    ['CODECELL_LOG_LEVEL', ['verbose', 'INFO']],
  ])('refuse %s of %j, naming it', (name, values) => {
    for (const value of values) {
      const problems = problemsOf({ [name]: value });
      expect([value, problems.length]).toEqual([value, 1]);
      expect(problems[0]?.startsWith(`${name} `)).toBe(true);
    }
  });

  it.each([
    ['CODECELL_PORT', ['0', '65535']],
    ['CODECELL_HOST', ['::', '0.0.0.0', 'localhost']],
    ['CODECELL_ADMIN_KEY', ['x'.repeat(32), '!"#$%&\'()*+,-./0123456789:;<=>?@[\\]^_`']],
    ['CODECELL_TRUSTED_PROXIES', ['10.0.0.1', '10.0.0.0/8, ::1', 'fd00::/8']],
  ])('take %s of %j', (name, values) => {
    for (const value of values) expect(problemsOf({ [name]: value })).toEqual([]);
  });

  it('name every variable that is wrong at once, but never a secret', () => {
    const problems = problemsOf({ CODECELL_PORT: 'x', CODECELL_ADMIN_KEY: 'secret', CODECELL_NOTHING: '1' });
    expect(problems).toHaveLength(3);
    expect(problems.join()).not.toContain('secret');
  });

  it('name the nearest setting for one that is unknown', () => {
    expect(problemsOf({ CODECELL_QUEUE_MAXX: '1' })[0]).toContain('did you mean CODECELL_QUEUE_MAX?');
    for (const name of ['CODECELL_SOMETHING_ELSE_ENTIRELY', 'CODECELL_KEY', 'CODECELL_URL']) {
      expect(problemsOf({ [name]: '1' })[0]).not.toContain('did you mean');
    }
  });

  it('ignore what Kubernetes injects, and say what to do about a port that is an address', () => {
    expect(
      problemsOf({
        CODECELL_SERVICE_HOST: '10.0.0.1',
        CODECELL_SERVICE_PORT: '8000',
        CODECELL_PORT_8000_TCP: 'tcp://10.0.0.1:8000',
        CODECELL_PORT_8000_TCP_PROTO: 'tcp',
      }),
    ).toEqual([]);
    expect(problemsOf({ CODECELL_PORT: 'tcp://10.0.0.1:8000' })[0]).toContain('enableServiceLinks: false');
  });
});

describe('codecell config', () => {
  const environment = {
    CODECELL_QUEUE_MAX: '7',
    CODECELL_ADMIN_KEY: 'not-to-be-printed-anywhere-in-the-output',
  };

  it('prints every setting with value, source, bounds and meaning, and no secret', async () => {
    const { exit, stdout } = await runCodecell(['config'], { environment });
    expect(exit).toBe(0);
    expect(stdout).toContain('CODECELL_QUEUE_MAX = 7  (environment; default: 256)\n');
    expect(stdout).toContain('CODECELL_PORT = 8000  (default)\n');
    expect(stdout).toContain('Allowed: a whole number, 0 to 65535.\n');
    expect(stdout).toContain('CODECELL_ADMIN_KEY = [redacted]  (environment; default: none)\n');
    expect(stdout).not.toContain('not-to-be-printed');
  });

  it('prints the same as JSON', async () => {
    const { stdout } = await runCodecell(['config', '--json'], { environment });
    const settings = JSON.parse(stdout) as { variable: string; value: unknown; source: string }[];
    expect(settings).toContainEqual({
      variable: 'CODECELL_QUEUE_MAX',
      value: 7,
      source: 'environment',
      default: 256,
      bounds: 'a whole number, 0 to 100000',
      description: expect.any(String),
    });
    expect(settings.find(({ variable }) => variable === 'CODECELL_ADMIN_KEY')?.value).toBe('[redacted]');
  });

  it('ends with 1 and names what is wrong', async () => {
    const { exit, stdout, stderr } = await runCodecell(['config'], { environment: { CODECELL_PROT: '1' } });
    expect([exit, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      'codecell: CODECELL_PROT is not a setting of this version: did you mean CODECELL_PORT?\n',
    );
  });
});
