import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CodecellProcess } from '../support/process.ts';
import { type Answer, problemOf, startTestService, type TestService } from '../support/service.ts';

function requestInit(key: string, idempotencyKey: string, code: string): RequestInit {
  return {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey },
    body: JSON.stringify({ code }),
  };
}

describe('POST /v1/jobs under an Idempotency-Key', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.stop());

  function post(idempotencyKey: string, code: string, key = service.adminKey): Promise<Answer> {
    return service.send('/v1/jobs', requestInit(key, idempotencyKey, code));
  }

  async function jobIds(key: string): Promise<string[]> {
    const answer = await service.send('/v1/jobs?limit=100', { headers: { 'X-API-Key': key } });
    return JSON.parse(answer.text).data.map(({ id }: { id: string }) => id);
  }

  it('gives the first answer again, with its Location, also once the job has ended', async () => {
    const first = await post('same', 'print(1)');
    expect([first.status, first.headers.get('idempotent-replay')]).toEqual([202, null]);
    const location = first.headers.get('location') ?? '';
    expect(location).toMatch(/^\/v1\/jobs\/run_/);
    const headers = { 'X-API-Key': service.adminKey };
    const ended = await service.send(`${location}?wait=30`, { headers });
    expect(JSON.parse(ended.text).status).toBe('succeeded');
    const again = await post('same', 'print(1)');
    expect([again.status, again.text, again.headers.get('location')]).toEqual([202, first.text, location]);
    expect(again.headers.get('idempotent-replay')).toBe('true');
    expect(problemOf(await post('same', 'print(2)')).code).toBe('idempotency_mismatch');
  });

  it('makes one job, however many arrive at the same time', async () => {
    const key = await service.addKey();
    const answers = await Promise.all(Array.from({ length: 50 }, () => post('fifty', 'print(1)', key)));
    const accepted = answers.filter(({ status }) => status === 202);
    expect(new Set(accepted.map(({ text }) => text)).size).toBe(1);
    expect(accepted.filter(({ headers }) => headers.get('idempotent-replay') === null)).toHaveLength(1);
    expect(answers.filter(({ status }) => status !== 202 && status !== 409)).toEqual([]);
    expect(await jobIds(key)).toHaveLength(1);
  });

  it('is apart from the same key at POST /v1/execute', async () => {
    const headers = { 'Idempotency-Key': 'both' };
    const executed = await service.post({ code: 'print(1)' }, { headers });
    const accepted = await post('both', 'print(2)');
    expect([executed.status, accepted.status]).toEqual([200, 202]);
    expect(accepted.headers.get('idempotent-replay')).toBeNull();
  });

  it('is free again for a job that the key may not have', async () => {
    const key = await service.addKey({ limits: { max_timeout_ms: 1000 } });
    const refused = await service.send('/v1/jobs', {
      ...requestInit(key, 'free', ''),
      body: '{"code": "", "timeout_ms": 2000}',
    });
    expect(refused.status).toBe(400);
    expect((await post('free', '', key)).status).toBe(202);
  });
});

describe('a service that is killed while jobs arrive', () => {
  it('has each of them once, after all were sent again', async () => {
    const adminKey = 'an-admin-key-of-more-than-32-characters';
    const folder = await mkdtemp(join(tmpdir(), 'codecell-test-'));
    const start = () =>
      new CodecellProcess(['serve'], {
        environment: { CODECELL_PORT: '0', CODECELL_DATA_DIR: folder, CODECELL_ADMIN_KEY: adminKey },
      });
    const names = Array.from({ length: 40 }, (_, index) => `job-${index}`);
    let codecell = start();
    try {
      const known = new Map<string, string>();
      for (let round = 0; round < 3; round++) {
        const url = await codecell.url();
        let answered = 0;
        const sent = names.map(async (name) => {
          const response = await fetch(`${url}/v1/jobs`, requestInit(adminKey, name, 'print(1)'));
          const text = await response.text();
          expect(response.status).toBe(202);
          // What was answered once is what is answered ever after.
          expect(known.get(name) ?? text).toBe(text);
          known.set(name, text);
          // The first round ends in the middle, the others a little later, when some are replays.
          if (++answered === 5 + 10 * round) codecell.child.kill('SIGKILL');
        });
        const outcomes = await Promise.allSettled(sent);
        for (const outcome of outcomes) {
          if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(TypeError);
        }
        await codecell.ended();
        codecell = start();
      }
      const url = await codecell.url();
      for (const name of names) {
        const response = await fetch(`${url}/v1/jobs`, requestInit(adminKey, name, 'print(1)'));
        const text = await response.text();
        expect(known.get(name) ?? text).toBe(text);
        known.set(name, text);
      }
      const list = await fetch(`${url}/v1/jobs?limit=100`, { headers: { 'X-API-Key': adminKey } });
      const { data } = (await list.json()) as { data: { id: string }[] };
      const ids = [...known.values()].map((text) => JSON.parse(text).id as string);
      expect(data.map(({ id }) => id).sort()).toEqual(ids.sort());
    } finally {
      codecell.child.kill('SIGKILL');
      await codecell.ended();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
