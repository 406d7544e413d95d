/** `codecell keys …` as a process of its own, on the data folder of a running service. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateSecret } from '../../src/keys/secret.ts';
import { withFolder } from '../support/folder.ts';
import { ENDLESS, JobsApi } from '../support/jobs-api.ts';
import { type KeyAnswer, KeysApi } from '../support/keys-api.ts';
import { CODECELL_MAIN, runCodecell } from '../support/process.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
let api: KeysApi;
beforeAll(async () => {
  service = await startTestService();
  api = new KeysApi(service);
});
afterAll(() => service.stop());

function keys(...args: string[]) {
  return runCodecell(['keys', ...args], { environment: { CODECELL_DATA_DIR: service.dataDir } });
}

/** What a command prints that is expected to succeed. */
async function printed(...args: string[]): Promise<string> {
  const { exit, stdout, stderr } = await keys(...args);
  expect([args, exit, exit === 0 ? '' : stderr]).toEqual([args, 0, '']);
  return stdout;
}

async function json<Value = KeyAnswer>(...args: string[]): Promise<Value> {
  return JSON.parse(await printed(...args, '--json')) as Value;
}

/** `codecell keys check` with this on standard input. */
async function check(input: string) {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', CODECELL_MAIN, 'keys', 'check'],
    {
      env: { PATH: process.env.PATH, CODECELL_DATA_DIR: service.dataDir },
    },
  );
  child.stdin.end(input);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { exit: child.exitCode, stdout, stderr };
}

describe('keys create', () => {
  it('prints the secret alone, of a key that the running service knows at once', async () => {
    const { exit, stdout, stderr } = await keys('create', '--name', 'grader');
    expect(exit).toBe(0);
    expect(stdout).toMatch(/^ck_[0-9A-Za-z]{36}\n$/);
    expect(stderr).toMatch(/^The secret of key key_[0-9a-f-]{36}, shown this once/);
    expect((await service.execute({ code: 'print(1)' }, { key: stdout.trim() })).stdout).toBe('1\n');
  });

  it('takes every field, and --json answers what the API would', async () => {
    const fields = ['--name', 'chat', '--team', 'web', '--expires-at', '2099-01-01T00:00:00Z'];
    const limits = ['--requests-per-minute', '60', '--burst', '5', '--max-queued-jobs', '0'];
    const { secret, ...key } = await json('create', ...fields, ...limits);
    expect(key).toEqual(await api.get(key.id));
    expect(key).toMatchObject({
      name: 'chat',
      team: 'web',
      role: 'user',
      limits: { requests_per_minute: 60, burst: 5, max_queued_jobs: 0 },
    });
    expect(await api.statusOf(secret ?? '')).toBe(200);
  });

  it.each([
    [['--name', ''], '--name must have at least one character'],
    [['--name', 'x', '--burst', '5'], '--burst needs --requests-per-minute'],
    [['--name', 'x', '--concurrency', '0'], '--concurrency must be a whole number, 1 to 10000'],
    [['--name', 'x', '--concurrency', '1.5'], '--concurrency must be a whole number, 1 to 10000'],
    [['--name', 'x', '--team', 'none'], '--team none is for "keys update"'],
    [['--name', 'x', '--expires-at', '2001-01-01T00:00:00Z'], '--expires-at must be in the future'],
  ])('refuses %j and says why', async (args, message) => {
    const { exit, stdout, stderr } = await keys('create', ...args);
    expect([exit, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });

  it('ends with 2 for an option that it does not have', async () => {
    const { exit, stdout, stderr } = await keys('create', '--name', 'x', '--colour', 'red');
    expect([exit, stdout]).toEqual([2, '']);
    expect(stderr).toBe(`error: unknown option '--colour'\n"--help" lists what there is.\n`);
  });
});

describe('keys list', () => {
  it('is an aligned table without colours where nobody looks, and JSON', async () => {
    await api.create({ name: 'first', team: 'listed' });
    const revoked = await api.create({
      name: 'a name that is longer than the column is wide',
      team: 'listed',
    });
    await api.revoke(revoked.id);
    const lines = (await printed('list', '--team', 'listed')).split('\n');
    expect(lines[0]).toMatch(/^id +name +team +role +state +created +last used$/);
    expect(lines[1]).toContain('a name that is long…');
    const stateColumn = lines[0]?.indexOf('state') ?? -1;
    expect(lines.slice(1, 3).map((line) => line.slice(stateColumn, stateColumn + 7))).toEqual([
      'revoked',
      'active ',
    ]);
    expect(lines.at(-2)).toBe('2 keys');
    expect(lines.join('')).not.toContain('\u001b');
    const listed = await json<KeyAnswer[]>('list', '--team', 'listed', '--state', 'revoked');
    expect(listed).toEqual([await api.get(revoked.id)]);
    expect(await printed('list', '--team', 'nobody')).toBe('There are no such keys.\n');
  });

  it('lets no name reach into the terminal', async () => {
    await service.addKey({ name: '\u001b[2Jgone\u202e', team: 'hostile' });
    const table = await printed('list', '--team', 'hostile');
    for (const character of ['\u001b', '\u202e']) expect(table).not.toContain(character);
    expect(table).toContain('?[2Jgone?');
  });

  it('lists more keys than a page has', async () => {
    const { length } = await json<KeyAnswer[]>('list');
    for (let count = 0; count < 25; count++) await api.create();
    expect(await json<KeyAnswer[]>('list')).toHaveLength(length + 25);
  });
});

describe('keys show and update', () => {
  it('show and change what the running service holds to at once', async () => {
    const { id, secret } = await api.create({ limits: { requests_per_minute: 60 }, team: 'blue' });
    const updated = await printed('update', id, '--max-timeout-ms', '100', '--requests-per-minute', 'none');
    expect(updated).toMatch(/max_timeout_ms +100\n/);
    expect(updated).not.toContain('requests_per_minute');
    expect((await service.post({ code: '', timeout_ms: 200 }, { key: secret })).status).toBe(400);
    expect(await printed('update', id, '--team', 'none', '--name', 'renamed', '--role', 'admin')).toMatch(
      /team +none\n/,
    );
    // The service writes down when a key was used a minute later at most.
    expect({ ...(await json('show', id)), last_used_at: null }).toEqual({
      ...(await api.get(id)),
      last_used_at: null,
    });
    expect(await printed('show', id)).toMatch(/^id +key_\S+\nname +renamed\n/);
  });

  it('name what is missing', async () => {
    expect(await keys('show', 'key_unknown')).toMatchObject({
      exit: 1,
      stderr: 'codecell: There is no key of this id.\n',
    });
    expect((await keys('update', 'key_unknown')).stderr).toContain('Nothing to change');
  });
});

describe('keys rotate and revoke', () => {
  it('take effect in the running service at once', async () => {
    const { id, secret: old } = await api.create();
    const secret = (await printed('rotate', id, '--overlap-seconds', '0')).trim();
    expect([await api.statusOf(old), await api.statusOf(secret)]).toEqual([401, 200]);
    expect(await printed('revoke', id)).toMatch(/state +revoked\n/);
    expect(await api.statusOf(secret)).toBe(401);
    expect((await keys('rotate', id, '--overlap-seconds', '0')).stderr).toContain(
      'revoked, which is for good',
    );
    expect((await keys('rotate', id)).stderr).toContain('--overlap-seconds');
  });

  it('end the jobs of a revoked key at once, those that wait and those that run', async () => {
    const { id, secret } = await api.create({ limits: { concurrency: 1 } });
    const jobs = new JobsApi(service.url, secret);
    const running = await jobs.submit(ENDLESS);
    await jobs.running(running);
    const queued = await jobs.submit('1');
    await printed('revoke', id);
    const environment = { CODECELL_DATA_DIR: service.dataDir };
    const status = async (job: string) =>
      JSON.parse((await runCodecell(['jobs', 'show', job, '--json'], { environment })).stdout).status;
    expect(await status(queued)).toBe('cancelled');
    await until(async () => (await status(running)) === 'cancelled');
  });

  it('may end the last admin key, since the owner of the folder can make another', async () => {
    const { data } = JSON.parse((await api.call('GET', '?state=active&limit=100')).text) as {
      data: KeyAnswer[];
    };
    const admins = data.filter(({ role }) => role === 'admin');
    for (const { id } of admins) await printed('revoke', id);
    expect((await api.call('GET')).status).toBe(401);
    const secret = (await printed('create', '--admin')).trim();
    expect((await api.call('GET', '', undefined, secret)).status).toBe(200);
  });
});

describe('keys check', () => {
  it('says whether a secret is mistyped, unknown, or whose it is', async () => {
    const secret = (await printed('create', '--name', 'checked')).trim();
    const { stdout: works, exit } = await check(`${secret}\n`);
    expect([exit, works]).toEqual([0, expect.stringMatching(/^works: key key_/)]);
    const wrong = secret.slice(0, 10) + (secret[10] === 'a' ? 'b' : 'a') + secret.slice(11);
    expect(await check(wrong)).toMatchObject({ exit: 1, stdout: expect.stringContaining('mistyped') });
    expect(await check(generateSecret())).toMatchObject({
      exit: 1,
      stdout: expect.stringContaining('unknown'),
    });
    expect(await check('password')).toMatchObject({ exit: 1, stdout: expect.stringContaining('no key') });
    expect(await check('')).toMatchObject({ exit: 1, stderr: expect.stringContaining('standard input') });
  });
});

describe('without a database', () => {
  it('makes none but to create a key in it', () =>
    withFolder(async (folder) => {
      const environment = { CODECELL_DATA_DIR: folder };
      const { exit, stderr } = await runCodecell(['keys', 'list'], { environment });
      expect([exit, stderr]).toEqual([1, expect.stringContaining('There is no database in')]);
      const created = await runCodecell(['keys', 'create', '--admin'], { environment });
      expect([created.exit, created.stderr]).toEqual([
        0,
        expect.stringContaining(`There is no database in ${folder}, so one is made`),
      ]);
    }));

  it.skipIf(process.getuid?.() !== 0)('says so where this user may not look for one', () =>
    withFolder(async (folder) => {
      const environment = { CODECELL_DATA_DIR: join(folder, 'closed') };
      await mkdir(join(folder, 'closed'), { mode: 0o700 });
      await chmod(folder, 0o755);
      const { exit, stderr } = await runCodecell(['keys', 'list'], { environment, userId: 61_234 });
      expect([exit, stderr]).toEqual([
        1,
        `codecell: This user may not read the data folder ${join(folder, 'closed')} (EACCES): run this as the user that the service runs as.\n`,
      ]);
    }),
  );
});
