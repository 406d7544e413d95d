/** `DELETE /v1/keys/{id}`: for good, and with what the key is doing. */

import { afterEach, describe, expect, it } from 'vitest';
import { KeysApi } from '../support/keys-api.ts';
import { runCodecell } from '../support/process.ts';
import { type Answer, problemOf, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
let keys: KeysApi;
afterEach(() => service.stop());

async function start(settings: Record<string, string> = {}): Promise<void> {
  service = await startTestService({ settings });
  keys = new KeysApi(service);
}

const SLEEP = 'print("begun", flush=True)\nimport time; time.sleep(29)';

/** A running program of a key, and one that waits behind it. */
async function busyKey() {
  await start({ CONCURRENCY: '1' });
  const { id, secret } = await keys.create();
  const running = service.post({ code: SLEEP }, { key: secret });
  await service.loaded(1, 0);
  const waiting = service.post({ code: 'print("never")' }, { key: secret });
  await service.loaded(1, 1);
  return { id, running, waiting };
}

async function expectCancelled({ running, waiting }: { running: Promise<Answer>; waiting: Promise<Answer> }) {
  const answer = await running;
  expect(answer.status).toBe(200);
  const run = JSON.parse(answer.text);
  expect(run).toMatchObject({ status: 'cancelled', stdout: 'begun\n', error: { type: 'Cancelled' } });
  expect((await waiting).status).toBe(401);
  await service.loaded(0, 0);
}

describe('200', () => {
  it('answers the Key, which stays in the list, and ends it at once', async () => {
    await start();
    const { secret, ...key } = await keys.create({ team: 'ending' });
    expect(await keys.statusOf(secret)).toBe(200);
    const revoked = await keys.revoke(key.id);
    expect({ ...revoked, last_used_at: null }).toEqual({ ...key, state: 'revoked' });
    expect(await keys.statusOf(secret)).toBe(401);
    expect(await keys.get(key.id)).toEqual(revoked);
    expect(await keys.revoke(key.id)).toEqual(revoked);
  });

  it('ends both secrets of a key that is being rotated', async () => {
    await start();
    const { id, secret: old } = await keys.create();
    const { secret } = await keys.rotate(id, 3600);
    await keys.revoke(id);
    expect([await keys.statusOf(old), await keys.statusOf(secret)]).toEqual([401, 401]);
  });

  it('takes a DELETE that says what type its absent body is of', async () => {
    await start();
    const { id } = await keys.create();
    const headers = { 'X-API-Key': service.adminKey, 'Content-Type': 'application/json' };
    expect((await service.send(`/v1/keys/${id}`, { method: 'DELETE', headers })).status).toBe(200);
  });

  it("stops the key's running program, which is charged, and refuses what waits, which is not", async () => {
    const busy = await busyKey();
    await keys.revoke(busy.id);
    await expectCancelled(busy);
    const usage = await service.send(`/v1/usage?key_id=${busy.id}`, {
      headers: { 'X-API-Key': service.adminKey },
    });
    const { totals } = JSON.parse(usage.text) as { totals: { runs: Record<string, number> } };
    expect(Object.entries(totals.runs).filter(([, count]) => count > 0)).toEqual([['cancelled', 1]]);
  });

  it('leaves the work of other keys alone', async () => {
    await start();
    const [one, other] = [await keys.create(), await keys.create()];
    const run = service.execute({ code: 'import time; time.sleep(0.5); print(1)' }, { key: other.secret });
    await service.loaded(1, 0);
    await keys.revoke(one.id);
    expect(await run).toMatchObject({ status: 'succeeded', stdout: '1\n' });
  });

  it('refuses a request whose body was still arriving', async () => {
    await start();
    const { id, secret } = await keys.create();
    const body = Promise.withResolvers<void>();
    const sent = fetch(`${service.url}/v1/execute`, {
      method: 'POST',
      headers: { 'X-API-Key': secret, 'Content-Type': 'application/json' },
      duplex: 'half',
      body: ReadableStream.from(
        (async function* () {
          yield Buffer.from('{"code": ');
          await body.promise;
          yield Buffer.from('"print(1)"}');
        })(),
      ),
    } as RequestInit);
    await until(async () => (await keys.get(id)).last_used_at !== null);
    await keys.revoke(id);
    body.resolve();
    expect((await sent).status).toBe(401);
  });
});

describe('codecell keys revoke', () => {
  it('stops what the service runs for the key within a second or so, and lets nobody in at once', async () => {
    const busy = await busyKey();
    const startMs = performance.now();
    const { exit, stdout } = await runCodecell(['keys', 'revoke', busy.id], {
      environment: { CODECELL_DATA_DIR: service.dataDir },
    });
    expect(exit).toBe(0);
    expect(stdout).toContain('revoked');
    await expectCancelled(busy);
    // The program would have gone on for 29 s.
    expect(performance.now() - startMs).toBeLessThan(10_000);
  });
});

describe('403', () => {
  it('for the last admin key that works; with another one, a key may revoke itself', async () => {
    await start();
    const { data } = JSON.parse((await keys.call('GET')).text) as { data: { id: string }[] };
    const own = data[0]!.id;
    const answer = await keys.call('DELETE', `/${own}`);
    expect([answer.status, problemOf(answer).code]).toEqual([403, 'forbidden']);
    expect(problemOf(answer).detail).toContain('make another one first');
    await service.addKey({ role: 'admin', expiresAt: new Date(Date.now() - 1) });
    expect((await keys.call('DELETE', `/${own}`)).status).toBe(403);
    await keys.create({ role: 'admin' });
    expect((await keys.call('DELETE', `/${own}`)).status).toBe(200);
    expect((await keys.call('GET')).status).toBe(401);
  });

  it('leaves one of two admin keys that revoke each other at the same time', async () => {
    await start();
    const other = await keys.create({ role: 'admin' });
    const { data } = JSON.parse((await keys.call('GET')).text) as { data: { id: string }[] };
    const own = data.find(({ id }) => id !== other.id)!.id;
    const answers = await Promise.all([
      keys.call('DELETE', `/${other.id}`),
      keys.call('DELETE', `/${own}`, undefined, other.secret),
    ]);
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  });

  it('is no matter where CODECELL_ADMIN_KEY is set, which is always there', async () => {
    await start({ ADMIN_KEY: 'an-admin-key-of-more-than-32-characters' });
    const { id } = await keys.create({ role: 'admin' });
    expect((await keys.revoke(id)).state).toBe('revoked');
  });
});
