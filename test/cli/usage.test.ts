import { describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../src/shared/clock.ts';
import { openDatabase } from '../../src/store/database.ts';
import { type Refusals, type RunCharge, UsageStore } from '../../src/store/usage-store.ts';
import { charge, NOON } from '../support/charge.ts';
import { withFolder } from '../support/folder.ts';
import { runCodecell } from '../support/process.ts';
import { addKey } from '../support/service.ts';

const DAY = ['--from', '2026-01-31', '--to', '2026-02-01'];

async function stored(dataDir: string, runs: Partial<RunCharge>[], refusals: Refusals[] = []): Promise<void> {
  const db = await openDatabase(dataDir);
  await new UsageStore(db).add(
    runs.map((run) => charge(run)),
    refusals,
  );
  await db.destroy();
}

function usage(dataDir: string, args: string[], environment: Record<string, string> = {}) {
  return runCodecell(['usage', ...args], { environment: { CODECELL_DATA_DIR: dataDir, ...environment } });
}

describe('codecell usage', () => {
  it('shows who has used most first, with bars, and then when', () =>
    withFolder(async (folder) => {
      await addKey(folder, { id: 'key_a', name: 'agents', team: 'research' });
      await addKey(folder, { id: 'key_b', name: 'a class of three hundred', team: 'teaching' });
      await stored(
        folder,
        [
          { key_id: 'key_a', cpu_ms: 250, ended_at: NOON },
          { key_id: 'key_b', cpu_ms: 500, ended_at: NOON },
          { key_id: 'key_b', cpu_ms: 250, ended_at: NOON + HOUR_MS, status: 'failed' },
        ],
        [{ key_id: 'key_a', hour: NOON, outcome: 'rate_limited', count: 12_345 }],
      );
      const { exit, stdout } = await usage(folder, [...DAY, '--group-by', 'hour']);
      expect(exit).toBe(0);
      expect(stdout).toBe(`Usage from 2026-01-31T00:00:00Z to 2026-02-01T00:00:00Z

key                team         runs not ok refused      CPU
a class of three … teaching        2      1       0    0.8 s  ████████████  75%
agents             research        1      0  12,345    0.3 s  ████          25%

period                          runs not ok refused      CPU
2026-01-31T12:00:00Z               2      0  12,345    0.8 s  ████████████  75%
2026-01-31T13:00:00Z               1      1       0    0.3 s  ████          25%
`);
    }));

  it('fits 80 columns, and lets no name disturb the terminal', () =>
    withFolder(async (folder) => {
      const names = [
        '\u001b[31mred\u001b[0m',
        'x'.repeat(100),
        '漢字漢字漢字漢字漢字漢字',
        'right\u202eleft',
        'a\nb',
      ];
      for (const [index, name] of names.entries()) {
        await addKey(folder, { id: `key_${index}`, name, team: name });
      }
      const runs = names.map((_, index) => ({
        key_id: `key_${index}`,
        cpu_ms: 10 ** (index * 3),
        ended_at: NOON + index * 31 * 24 * HOUR_MS,
      }));
      const refusals = [{ key_id: 'key_0', hour: NOON, outcome: 'overloaded', count: 123_456_789 }];
      await stored(folder, runs, refusals);
      const { stdout } = await usage(folder, [
        '--from',
        '2026-01-01',
        '--to',
        '2027-01-01',
        '--group-by',
        'hour',
      ]);
      const lines = stdout.split('\n');
      expect(lines.length).toBeGreaterThan(12);
      for (const line of lines) {
        const wide = line.match(/[漢字]/g)?.length ?? 0;
        expect([line, [...line].length + wide <= 80]).toEqual([line, true]);
      }
      for (const hidden of ['\u001b', '\u202e']) expect(stdout).not.toContain(hidden);
    }));

  it('has colours only on a terminal', () =>
    withFolder(async (folder) => {
      await stored(folder, [{ cpu_ms: 5 }]);
      expect((await usage(folder, DAY)).stdout).not.toContain('\u001b');
      expect((await usage(folder, DAY, { FORCE_COLOR: '1' })).stdout).toContain('\u001b[');
    }));

  it('names twenty keys, and says how many more there are', () =>
    withFolder(async (folder) => {
      await stored(
        folder,
        Array.from({ length: 25 }, (_, index) => ({ key_id: `key_${index}`, cpu_ms: index })),
      );
      const { stdout } = await usage(folder, DAY);
      expect(stdout.match(/^key_/gm)).toHaveLength(20);
      expect(stdout).toContain('and 5 more keys');
    }));

  it('is chosen by key and team, and written as JSON and CSV', () =>
    withFolder(async (folder) => {
      await addKey(folder, { id: 'key_a', name: 'one', team: 'blue' });
      await addKey(folder, { id: 'key_b', name: 'two', team: 'red' });
      await stored(folder, [
        { key_id: 'key_a', cpu_ms: 1 },
        { key_id: 'key_b', cpu_ms: 2 },
      ]);
      const json = async (...args: string[]) =>
        (
          JSON.parse((await usage(folder, [...DAY, '--json', ...args])).stdout) as {
            totals: { cpu_ms: number };
          }
        ).totals.cpu_ms;
      expect(await json()).toBe(3);
      expect(await json('--key', 'key_a')).toBe(1);
      expect(await json('--team', 'red')).toBe(2);
      const { stdout } = await usage(folder, [...DAY, '--csv', '--group-by', 'month']);
      expect(stdout).toMatch(
        /^period,key_id,.*\r\n2026-01,key_a,one,blue,.*\r\n2026-01,key_b,two,red,.*\r\n$/,
      );
    }));

  it('says that there is none', () =>
    withFolder(async (folder) => {
      await stored(folder, []);
      expect((await usage(folder, DAY)).stdout).toBe(
        'Usage from 2026-01-31T00:00:00Z to 2026-02-01T00:00:00Z: none.\n',
      );
    }));

  it('ends with 1 for what it cannot do, with 2 for wrong options, and makes no database', () =>
    withFolder(async (folder) => {
      const none = await usage(folder, []);
      expect([none.exit, none.stdout]).toEqual([1, '']);
      expect(none.stderr).toContain('CODECELL_DATA_DIR');
      const range = await usage(folder, ['--from', '2026-02-01', '--to', '2026-01-01']);
      expect([range.exit, range.stderr]).toEqual([2, expect.stringContaining('--from must be before')]);
      expect((await usage(folder, ['--group-by', 'week'])).stderr).toContain('hour, day, month');
      expect((await usage(folder, ['--json', '--csv'])).exit).toBe(2);
    }));
});
