import { exec } from 'node:child_process';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { withFolder } from '../support/folder.ts';
import { CodecellProcess, runCodecell } from '../support/process.ts';

const KEY_PATTERN = /ck_[0-9A-Za-z]{36}/;

/** Starts the service on a data folder, calls `body` once it listens, and stops it. */
async function served<Result>(
  dataDir: string,
  body: (codecell: CodecellProcess, url: string) => Promise<Result>,
  environment: Record<string, string> = {},
): Promise<Result> {
  const codecell = new CodecellProcess(['serve'], {
    environment: { CODECELL_PORT: '0', CODECELL_DATA_DIR: dataDir, ...environment },
  });
  try {
    return await body(codecell, await codecell.url());
  } finally {
    codecell.child.kill('SIGTERM');
    await codecell.ended();
  }
}

async function runtimeStatus(url: string, key: string): Promise<number> {
  return (await fetch(`${url}/v1/runtime`, { headers: { 'X-API-Key': key } })).status;
}

describe('the first start', () => {
  it('prints the admin key once, with a line that works when pasted; the second does not', () =>
    withFolder(async (folder) => {
      const key = await served(folder, async (codecell, url) => {
        const [printed = ''] = KEY_PATTERN.exec(codecell.stdout) ?? [];
        const [command = ''] = /^ +(curl .*)$/m.exec(codecell.stdout)?.slice(1) ?? [];
        const { stdout } = await promisify(exec)(command);
        expect(JSON.parse(stdout)).toMatchObject({ status: 'succeeded', stdout: '42\n' });
        expect(await runtimeStatus(url, printed)).toBe(200);
        expect(codecell.stderr).not.toMatch(KEY_PATTERN);
        return printed;
      });
      await served(folder, async (codecell, url) => {
        expect(codecell.stdout).toBe(
          `Codecell listens on ${url}\nThere is an admin key already; "codecell keys create --admin" makes another.\n`,
        );
        expect(await runtimeStatus(url, key)).toBe(200);
      });
      const stored = await readFile(join(folder, 'codecell.db'), 'latin1');
      expect(stored).not.toContain(key);
    }));

  it('prints nothing with CODECELL_ADMIN_KEY, which is an admin key only as long as it is set', () =>
    withFolder(async (folder) => {
      const key = 'free form, but without spaces, is what a key may be'.replaceAll(' ', '-');
      await served(
        folder,
        async (codecell, url) => {
          expect(codecell.stdout).not.toMatch(KEY_PATTERN);
          expect(await runtimeStatus(url, key)).toBe(200);
        },
        { CODECELL_ADMIN_KEY: key },
      );
      await served(folder, async (codecell, url) => {
        expect(codecell.stdout).toMatch(KEY_PATTERN);
        expect(await runtimeStatus(url, key)).toBe(401);
      });
    }));
});

describe('codecell keys create --admin', () => {
  it('makes another admin key, also while the service runs, which knows it at once', () =>
    withFolder((folder) =>
      served(folder, async (_codecell, url) => {
        const { exit, stdout, stderr } = await runCodecell(['keys', 'create', '--admin'], {
          environment: { CODECELL_DATA_DIR: folder },
        });
        expect(exit).toBe(0);
        expect(stdout).toMatch(/^ck_[0-9A-Za-z]{36}\n$/);
        expect(stderr).toContain('shown this once');
        expect(await runtimeStatus(url, stdout.trim())).toBe(200);
      }),
    ));

  it('does not guess what kind of key is meant', async () => {
    const { exit, stderr } = await runCodecell(['keys', 'create']);
    expect(exit).toBe(2);
    expect(stderr).toContain('--name <name>, or --admin');
  });
});

describe('a start that cannot be', () => {
  it('ends with 1 and names the variable that is unknown', () =>
    withFolder(async (folder) => {
      const { exit, stdout, stderr } = await runCodecell(['serve'], {
        environment: { CODECELL_DATA_DIR: folder, CODECELL_CONCURENCY: '2' },
      });
      expect([exit, stdout]).toEqual([1, '']);
      expect(stderr).toContain(
        'CODECELL_CONCURENCY is not a setting of this version: did you mean CODECELL_CONCURRENCY?',
      );
    }));

  it('ends with 1 and names the port that is taken', () =>
    withFolder(async (folder) => {
      const other = createServer().listen(0, '127.0.0.1');
      await new Promise((resolve) => other.once('listening', resolve));
      const { port } = other.address() as { port: number };
      const { exit, stdout, stderr } = await runCodecell(['serve'], {
        environment: { CODECELL_DATA_DIR: folder, CODECELL_PORT: String(port) },
      });
      other.close();
      expect([exit, stdout]).toEqual([1, '']);
      expect(stderr).toContain(`Cannot listen on 127.0.0.1, port ${port}`);
      expect(stderr).not.toContain('    at ');
    }));

  it('ends with 1 where another service works on the data folder, until that has gone, however it went', () =>
    withFolder(async (folder) => {
      const environment = { CODECELL_DATA_DIR: folder, CODECELL_PORT: '0', CODECELL_LOG_LEVEL: 'silent' };
      const first = new CodecellProcess(['serve'], { environment });
      await first.url();
      const { exit, stdout, stderr } = await runCodecell(['serve'], { environment });
      expect([exit, stdout]).toEqual([1, '']);
      expect(stderr).toBe(
        `codecell: Another codecell serve works on the data folder ${folder}: stop it first, or name another folder in CODECELL_DATA_DIR.\n`,
      );
      first.child.kill('SIGKILL');
      await first.ended();
      await served(folder, async (codecell) => expect(codecell.stdout).toContain('listens on'));
    }));

  it('ends with 1 and names the data folder that cannot be used', () =>
    withFolder(async (folder) => {
      await writeFile(join(folder, 'file'), '');
      const { exit, stderr } = await runCodecell(['serve'], {
        environment: { CODECELL_DATA_DIR: join(folder, 'file', 'data'), CODECELL_PORT: '0' },
      });
      expect(exit).toBe(1);
      expect(stderr).toContain(join(folder, 'file', 'data'));
    }));

  it('ends with 1 and says what is wrong with the lock of the data folder, where no other service has it', () =>
    withFolder(async (folder) => {
      await writeFile(join(folder, 'codecell.lock'), 'this is no lock of ours');
      const { exit, stderr } = await runCodecell(['serve'], {
        environment: { CODECELL_DATA_DIR: folder, CODECELL_PORT: '0' },
      });
      expect(exit).toBe(1);
      expect(stderr).toContain(
        `The data folder ${folder} cannot be used (codecell.lock: file is not a database)`,
      );
    }));

  it('ends with 1 without bubblewrap, and says what is missing', () =>
    withFolder(async (folder) => {
      const bin = join(folder, 'bin');
      await mkdir(bin);
      // The sandbox of a root service is started by a user who must be able to find it.
      await chmod(folder, 0o755);
      await writeFile(join(bin, 'bwrap'), '#!/bin/sh\necho no such luck >&2\nexit 1\n');
      await chmod(join(bin, 'bwrap'), 0o755);
      const { exit, stdout, stderr } = await runCodecell(['serve'], {
        environment: { CODECELL_DATA_DIR: folder, CODECELL_PORT: '0', PATH: `${bin}:${process.env.PATH}` },
      });
      expect([exit, stdout]).toEqual([1, '']);
      expect(stderr).toContain('The isolation is not complete on this host');
    }));
});

describe('codecell', () => {
  it('says its version and lists its commands', async () => {
    const { version } = JSON.parse(
      await readFile(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8'),
    ) as { version: string };
    expect((await runCodecell(['--version'])).stdout).toBe(`${version}\n`);
    const { exit, stdout } = await runCodecell(['--help']);
    expect(exit).toBe(0);
    for (const command of ['serve', 'config', 'keys', 'doctor', 'bench'])
      expect(stdout).toContain(`  ${command}`);
  });

  it('ends with 2 for a command that it does not know, naming the nearest', async () => {
    const { exit, stderr } = await runCodecell(['server']);
    expect(exit).toBe(2);
    expect(stderr).toContain('Did you mean serve?');
  });
});
