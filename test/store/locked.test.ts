/** Another process holds the write lock of the database. */

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { UsageStore } from '../../src/store/usage-store.ts';
import { charge } from '../support/charge.ts';
import { withFolder } from '../support/folder.ts';
import { problemOf, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** A connection of somebody else's, which holds the write lock. */
function lock(dataDir: string): { release: () => void } {
  const other = new DatabaseSync(join(dataDir, 'codecell.db'), { timeout: 5000 });
  other.exec('BEGIN IMMEDIATE');
  return {
    release: () => {
      other.exec('COMMIT');
      other.close();
    },
  };
}

describe('while another process writes', () => {
  it('writing waits, in turn, and reading goes on', () =>
    withFolder(async (folder) => {
      const db = await openDatabase(folder);
      const store = new UsageStore(db);
      const { release } = lock(folder);
      let written = 0;
      const writing = [1, 2, 3].map(() => store.add([charge()], []).then(() => written++));
      const single = db.deleteFrom('key_secrets').execute();
      for (let round = 0; round < 20; round++) {
        expect(await db.selectFrom('keys').select('id').execute()).toEqual([]);
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      expect(written).toBe(0);
      release();
      await Promise.all([...writing, single]);
      expect(written).toBe(3);
      await db.destroy();
    }));

  it('a run is answered once it is charged, and others are answered meanwhile', async () => {
    const service = await startTestService();
    try {
      const { release } = lock(service.dataDir);
      let answered = false;
      const running = service.execute({ code: 'print(1)' }).finally(() => {
        answered = true;
      });
      for (let round = 0; round < 100; round++) {
        const startMs = performance.now();
        const answer = await service.send('/v1/runtime', { headers: { 'X-API-Key': service.adminKey } });
        expect(answer.status).toBe(200);
        expect(performance.now() - startMs).toBeLessThan(2000);
      }
      expect(answered).toBe(false);
      release();
      expect((await running).stdout).toBe('1\n');
    } finally {
      await service.stop();
    }
  });

  it('for longer than the service waits, a run is answered 500 and not charged; then all is well again', async () => {
    const service = await startTestService();
    try {
      const { release } = lock(service.dataDir);
      const answer = await service.post({ code: 'print("lost")' });
      expect([answer.status, problemOf(answer).code]).toEqual([500, 'internal']);
      expect(problemOf(answer).detail).toContain('Nothing was charged');
      expect((await service.send('/readyz')).status).toBe(503);
      const refused = await service.post({ code: 'print("not run")' });
      expect(refused.status).toBe(500);
      release();
      await until(async () => (await service.send('/readyz')).status === 200);
      await service.execute({ code: 'print("charged")' });
      const usage = await service.send('/v1/usage', { headers: { 'X-API-Key': service.adminKey } });
      expect(JSON.parse(usage.text)).toMatchObject({ totals: { runs: { succeeded: 1 } } });
    } finally {
      await service.stop();
    }
  });
});
