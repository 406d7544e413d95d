/** `GET /v1/jobs`: the key's own, newest first, page by page. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runSchema } from '../../src/http/run-schema.ts';
import { ENDLESS, JobsApi } from '../support/jobs-api.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let jobs: JobsApi;
let ids: string[];
beforeAll(async () => {
  service = await startTestService({ settings: { CONCURRENCY: '1' } });
  jobs = new JobsApi(service.url, await service.addKey());
  const other = new JobsApi(service.url, await service.addKey());
  ids = [];
  for (let count = 0; count < 5; count++) {
    ids.unshift(await jobs.submit(count % 2 === 0 ? 'print(1)' : '1/0'));
    await other.ended(await other.submit('print("of another key")'));
  }
  for (const id of ids) await jobs.ended(id);
});
afterAll(() => service.stop());

describe('200', () => {
  it("has the key's own jobs alone, newest first", async () => {
    const { data, next_cursor } = await jobs.list();
    expect(data.map(({ id }) => id)).toEqual(ids);
    expect(next_cursor).toBeNull();
    expect((await new JobsApi(service.url, service.adminKey).list()).data).toEqual([]);
  });

  it('leaves out stdout, stderr, value, images and traceback', async () => {
    const { data } = await jobs.list();
    const left = ['stdout', 'stderr', 'value', 'images'];
    const kept = Object.keys(runSchema.properties).filter((name) => !left.includes(name));
    for (const item of data) expect(Object.keys(item).sort()).toEqual([...kept].sort());
    expect(data.find(({ status }) => status === 'failed')?.error).toEqual({
      type: 'ZeroDivisionError',
      message: 'division by zero',
      line: 1,
      hint: null,
    });
  });

  it('goes on where a page ended, also when jobs were added meanwhile', async () => {
    const seen: string[] = [];
    let cursor: string | null = null;
    const own = new JobsApi(service.url, await service.addKey());
    const made: string[] = [];
    for (let count = 0; count < 5; count++) made.unshift(await own.submit('1'));
    do {
      const page = await own.list(`?limit=2${cursor === null ? '' : `&cursor=${cursor}`}`);
      seen.push(...page.data.map(({ id }) => id));
      cursor = page.next_cursor;
      if (seen.length === 2) await own.submit('2');
    } while (cursor !== null);
    expect(seen).toEqual(made);
  });

  it('shows one status alone', async () => {
    const failed = await jobs.list('?status=failed');
    expect(failed.data.map(({ id }) => id)).toEqual([ids[1], ids[3]]);
    const own = new JobsApi(service.url, await service.addKey());
    const running = await own.submit(ENDLESS);
    await own.running(running);
    const queued = await own.submit('1');
    const idsOf = async (status: string) => (await own.list(`?status=${status}`)).data.map(({ id }) => id);
    expect(await idsOf('running')).toEqual([running]);
    expect(await idsOf('queued')).toEqual([queued]);
    expect(await idsOf('lost')).toEqual([]);
    await own.cancel(running);
    await own.ended(queued);
  });
});

describe('400', () => {
  it.each(['?status=done', '?limit=0', '?limit=101', '?cursor=x', '?cursor=', '?page=2'])(
    'refuses %s',
    async (query) => {
      const answer = await jobs.call('GET', query);
      expect([answer.status, problemOf(answer).errors]).toMatchObject([
        400,
        [{ path: /^\/\w+$/.exec(`/${query.slice(1).split('=')[0]}`)?.[0] }],
      ]);
    },
  );
});
