import { copyFile, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { Run } from '../../src/runs/run.ts';
import { openAsItIs, openDatabase } from '../../src/store/database.ts';
import type { UsageSums } from '../../src/usage/report.ts';
import { withFolder } from '../support/folder.ts';
import { CodecellProcess, runCodecell } from '../support/process.ts';

const backup = (dataDir: string, file: string) =>
  runCodecell(['backup', file], { environment: { CODECELL_DATA_DIR: dataDir } });

const json = { 'Content-Type': 'application/json' };

async function served(dataDir: string, body: (url: string, stdout: string) => Promise<void>): Promise<void> {
  const environment = { CODECELL_PORT: '0', CODECELL_DATA_DIR: dataDir, CODECELL_LOG_LEVEL: 'error' };
  const service = new CodecellProcess(['serve'], { environment });
  try {
    await body(await service.url(), service.stdout);
  } finally {
    service.child.kill('SIGTERM');
    await service.ended();
  }
}

async function charged(url: string, key: string): Promise<number> {
  const answer = await fetch(`${url}/v1/usage`, { headers: { 'X-API-Key': key } });
  return ((await answer.json()) as { totals: UsageSums }).totals.runs.succeeded;
}

describe('codecell backup', () => {
  it('copies what a busy service has stored, and a service starts from the copy', () =>
    withFolder(async (folder) => {
      const file = join(folder, 'backup.db');
      let key = '';
      let answeredBefore = 0;
      await served(join(folder, 'data'), async (url, stdout) => {
        key = /ck_[0-9A-Za-z]{36}/.exec(stdout)?.[0] ?? '';
        let answered = 0;
        let stopped = false;
        const caller = async (): Promise<void> => {
          while (!stopped) {
            const headers = { ...json, 'X-API-Key': key };
            const body = JSON.stringify({ code: '1' });
            const answer = await fetch(`${url}/v1/execute`, { method: 'POST', headers, body });
            expect(((await answer.json()) as Run).status).toBe('succeeded');
            answered++;
          }
        };
        const callers = [caller(), caller()];
        while (answered < 20) await new Promise((resolve) => setImmediate(resolve));
        answeredBefore = answered;
        const { exit, stdout: said, stderr } = await backup(join(folder, 'data'), file);
        expect([exit, stderr]).toEqual([0, '']);
        expect(said).toMatch(/backup\.db: \d+ KiB\n$/);
        stopped = true;
        await Promise.all(callers);
      });
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      expect((await readdir(folder)).sort()).toEqual(['backup.db', 'data']);

      // As the guide says: into a new folder.
      await mkdir(join(folder, 'restored'), { mode: 0o700 });
      await copyFile(file, join(folder, 'restored', 'codecell.db'));
      await served(join(folder, 'restored'), async (url, stdout) => {
        expect(stdout).not.toContain('ck_');
        expect(await charged(url, key)).toBeGreaterThanOrEqual(answeredBefore);
      });
    }));

  it('copies a database of an older version as it is, which other commands do not touch', () =>
    withFolder(async (folder) => {
      const dataDir = join(folder, 'data');
      const db = await openDatabase(dataDir);
      await sql`delete from kysely_migration where name like '0005%'`.execute(db);
      await db.destroy();
      const { exit, stderr } = await runCodecell(['usage'], { environment: { CODECELL_DATA_DIR: dataDir } });
      expect([exit, stderr]).toEqual([1, expect.stringContaining('of an older version of Codecell')]);
      expect((await backup(dataDir, join(folder, 'backup.db'))).exit).toBe(0);
      await copyFile(join(folder, 'backup.db'), join(folder, 'codecell.db'));
      const copy = await openAsItIs(folder);
      const { rows } = await sql`select name from kysely_migration where name like '0005%'`.execute(copy);
      await copy.destroy();
      expect(rows).toEqual([]);
    }));

  it('overwrites nothing, and leaves nothing half done', () =>
    withFolder(async (folder) => {
      const file = join(folder, 'backup.db');
      const without = await backup(join(folder, 'data'), file);
      expect([without.exit, without.stderr]).toEqual([1, expect.stringContaining('There is no database')]);
      await served(join(folder, 'data'), async () => undefined);
      await writeFile(file, 'precious');
      const existing = await backup(join(folder, 'data'), file);
      expect([existing.exit, existing.stderr]).toEqual([1, expect.stringContaining('exists already')]);
      const nowhere = await backup(join(folder, 'data'), join(folder, 'no', 'folder.db'));
      expect([nowhere.exit, nowhere.stderr]).toEqual([1, expect.stringContaining('could not be written')]);
      expect((await readdir(folder)).sort()).toEqual(['backup.db', 'data']);
    }));
});
