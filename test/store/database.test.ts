import { execFile } from 'node:child_process';
import { chmod, mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { Key } from '../../src/keys/key.ts';
import { openDatabase } from '../../src/store/database.ts';
import { KeyStore } from '../../src/store/key-store.ts';
import { withFolder } from '../support/folder.ts';

const execute = promisify(execFile);

const KEY: Key = {
  id: 'key_1',
  name: 'one',
  team: 'blue',
  role: 'user',
  limits: { concurrency: 2 },
  createdAt: new Date(1000),
  expiresAt: new Date(2000),
  revokedAt: null,
  lastUsedAt: null,
};

describe('the database', () => {
  it('is made in a folder of mode 0700, in files of mode 0600', () =>
    withFolder(async (folder) => {
      const dataDir = join(folder, 'a', 'b');
      const db = await openDatabase(dataDir);
      expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
      for (const name of ['codecell.db', 'codecell.db-wal', 'codecell.db-shm']) {
        expect([name, (await stat(join(dataDir, name))).mode & 0o777]).toEqual([name, 0o600]);
      }
      await db.destroy();
    }));

  it('keeps what was committed, with foreign keys enforced and every commit on disk', () =>
    withFolder(async (folder) => {
      const db = await openDatabase(folder);
      const setting = async (name: string) =>
        Object.values(
          (await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(db)).rows[0] ?? {},
        )[0];
      expect([
        await setting('journal_mode'),
        await setting('synchronous'),
        await setting('foreign_keys'),
      ]).toEqual(['wal', 2, 1]);
      await new KeyStore(db).insert(KEY, 'hash');
      await db.destroy();

      const again = await openDatabase(folder);
      const found = await new KeyStore(again).findBySecretHash('hash');
      expect(found).toEqual({ key: KEY, secretHash: 'hash', secretExpiresAt: null });
      expect(await new KeyStore(again).findBySecretHash('another')).toBeNull();
      await again.destroy();
    }));

  it('undoes a transaction that fails', () =>
    withFolder(async (folder) => {
      const db = await openDatabase(folder);
      const keys = new KeyStore(db);
      await keys.insert(KEY, 'hash');
      await expect(keys.insert({ ...KEY, id: 'key_2' }, 'hash')).rejects.toThrow();
      expect(await db.selectFrom('keys').select('id').execute()).toEqual([{ id: 'key_1' }]);
      await db.destroy();
    }));

  it('keeps transactions apart, and queries out of them', () =>
    withFolder(async (folder) => {
      const db = await openDatabase(folder);
      const keys = new KeyStore(db);
      await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          keys.insert({ ...KEY, id: `key_${index}` }, `hash ${index}`),
        ),
      );
      expect(await db.selectFrom('keys').select('id').execute()).toHaveLength(50);
      await db.destroy();
    }));

  it('is migrated once and gets one first admin key, however many processes start at once', () =>
    withFolder(async (folder) => {
      const script = join(import.meta.dirname, '..', 'support', 'first-admin.ts');
      const starts = Array.from({ length: 6 }, () =>
        execute(process.execPath, ['--disable-warning=ExperimentalWarning', script, join(folder, 'data')]),
      );
      const answers = (await Promise.all(starts)).map(({ stdout, stderr }) => stdout + stderr);
      expect(answers.sort()).toEqual(['found\n', 'found\n', 'found\n', 'found\n', 'found\n', 'made\n']);
    }));

  it('refuses one that a newer version has changed in a breaking way, and takes other changes', () =>
    withFolder(async (folder) => {
      const add = async (name: string) => {
        const db = await openDatabase(folder);
        await sql`insert into kysely_migration (name, timestamp) values (${name}, '2999-01-01T00:00:00.000Z')`.execute(
          db,
        );
        await db.destroy();
      };
      await add('9998-a-column');
      await (await openDatabase(folder)).destroy();
      await add('9999-breaking');
      await expect(openDatabase(folder)).rejects.toThrow(
        'newer version of Codecell (migration 9999-breaking)',
      );
    }));

  it('says which folder it cannot use, and which setting that is', () =>
    withFolder(async (folder) => {
      await writeFile(join(folder, 'file'), '');
      await expect(openDatabase(join(folder, 'file'))).rejects.toThrow(
        /file cannot be used .*CODECELL_DATA_DIR/,
      );
      await expect(openDatabase('/proc/nothing/here')).rejects.toThrow('/proc/nothing/here cannot be used');
      await mkdir(join(folder, 'broken'));
      await writeFile(
        join(folder, 'broken', 'codecell.db'),
        'this is no database, but long enough to be one',
      );
      await chmod(join(folder, 'broken', 'codecell.db'), 0o600);
      await expect(openDatabase(join(folder, 'broken'))).rejects.toThrow('not a database');
    }));
});
