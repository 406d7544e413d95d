/** `GET /v1/usage` that is not answered with usage: 400, 401, 403, 405. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let userKey: string;
beforeAll(async () => {
  service = await startTestService();
  userKey = await service.addKey({ id: 'key_own', team: 'blue' });
  await service.addKey({ id: 'key_other', team: 'blue' });
});
afterAll(() => service.stop());

const get = (query: string, key = service.adminKey) =>
  service.send(`/v1/usage${query}`, { headers: { 'X-API-Key': key } });

describe('400 invalid_request', () => {
  it.each([
    ['from=yesterday', '/from'],
    ['from=', '/from'],
    ['from=2026-02-30', '/from'],
    ['from=2026-13-01', '/from'],
    ['from=2026-01-31T24:00:00Z', '/from'],
    ['from=2026-01-31T12:00:00', '/from'],
    ['from=2026-01-31T12:00:00+01:00', '/from'],
    ['from=2026-01-31T12:00Z', '/from'],
    ['from=1969-12-31', '/from'],
    ['from=1769862000', '/from'],
    ['to=now', '/to'],
    ['from=2026-01-31&to=2026-01-31', '/from'],
    ['from=2026-01-31T12:10:00Z&to=2026-01-31T12:50:00Z', '/from'],
    ['from=2999-01-01', '/from'],
    ['from=2026-01-01&from=2026-01-02', '/from'],
    ['group_by=week', '/group_by'],
    ['group_by=', '/group_by'],
    ['key_id=', '/key_id'],
    ['team=', '/team'],
    ['groupby=day', '/groupby'],
    ['limit=10', '/limit'],
  ])('for %s', async (query, path) => {
    const answer = await get(`?${query}`);
    expect(answer.status).toBe(400);
    const problem = problemOf(answer);
    expect(problem.code).toBe('invalid_request');
    expect(problem.errors?.map((error) => error.path)).toEqual([path]);
  });

  it('names each place and the remedy', async () => {
    const { errors } = problemOf(await get('?from=2026-02-30&to=x'));
    expect(errors?.map(({ path }) => path)).toEqual(['/from', '/to']);
    expect(errors?.[0]?.message).toContain('2026-01-31T12:00:00Z');
    expect(problemOf(await get('?groupby=day')).detail).toContain('did you mean group_by?');
  });
});

describe('401 unauthorized', () => {
  it('without a key', async () => {
    expect((await service.send('/v1/usage')).status).toBe(401);
  });
});

describe('403 forbidden', () => {
  it.each(['key_id=key_other', 'key_id=key_that_does_not_exist', 'team=red', 'key_id=key_own&team=red'])(
    'for a user key that asks for %s',
    async (query) => {
      const answer = await get(`?${query}`, userKey);
      expect([answer.status, problemOf(answer).code]).toEqual([403, 'forbidden']);
    },
  );

  it('comes before what is wrong with the query', async () => {
    expect((await get('?key_id=key_other&from=x&y=1', userKey)).status).toBe(403);
  });
});

describe('405 method_not_allowed', () => {
  it('for anything but GET and HEAD', async () => {
    const answer = await service.send('/v1/usage', { method: 'POST', headers: { 'X-API-Key': userKey } });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });
});
