import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sendRaw } from '../support/raw-http.ts';
import { type Answer, problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const REQUEST_ID = /^req_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** One answer of every status that a lone caller can bring about. */
function answersOfEveryKind(headers: Record<string, string> = {}): Promise<Answer[]> {
  const key = { 'X-API-Key': service.adminKey };
  const json = { 'Content-Type': 'application/json' };
  return Promise.all([
    service.send('/healthz', { headers }),
    service.send('/', { headers }),
    service.send('/v1/runtime', { headers: { ...headers, ...key } }),
    service.send('/v1/execute', {
      method: 'POST',
      headers: { ...headers, ...key, ...json },
      body: '{"code": ""}',
    }),
    service.send('/v1/execute', { method: 'POST', headers: { ...headers, ...key, ...json }, body: '{' }),
    service.send('/v1/execute', { method: 'POST', headers: { ...headers, ...key }, body: '{' }),
    service.send('/v1/execute', { method: 'POST', headers }),
    service.send('/v1/execute', { headers }),
    service.send('/nothing', { headers }),
    service.send('/%zz', { headers }),
  ]);
}

describe('X-Request-Id', () => {
  it('is on every answer, new each time, and in the body of every error', async () => {
    const answers = await answersOfEveryKind();
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 400, 415, 401, 405, 404, 404]);
    const ids = answers.map(({ headers }) => headers.get('x-request-id') ?? '');
    for (const id of ids) expect(id).toMatch(REQUEST_ID);
    expect(new Set(ids).size).toBe(ids.length);
    for (const answer of answers.filter(({ status }) => status >= 400)) {
      expect(problemOf(answer).request_id).toBe(answer.headers.get('x-request-id'));
    }
  });

  it("is never the caller's", async () => {
    for (const answer of await answersOfEveryKind({ 'X-Request-Id': 'mine', 'Request-Id': 'mine' })) {
      expect(answer.headers.get('x-request-id')).toMatch(REQUEST_ID);
    }
  });

  it('is also on what the HTTP parser refuses', async () => {
    const answer = await sendRaw(service.port, 'nonsense\r\n\r\n');
    expect(answer.headers['x-request-id']).toMatch(REQUEST_ID);
    expect(JSON.parse(answer.body).request_id).toBe(answer.headers['x-request-id']);
  });
});

describe('X-Content-Type-Options', () => {
  it('is nosniff on every answer, on what the HTTP parser refuses too', async () => {
    for (const { headers } of await answersOfEveryKind()) {
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
    const answer = await sendRaw(service.port, 'nonsense\r\n\r\n');
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
  });
});

describe('errors', () => {
  it('are problem details with exactly the fields of the contract', async () => {
    const [, , , , invalid, unsupported] = await answersOfEveryKind();
    expect(Object.keys(problemOf(invalid!)).sort()).toEqual([
      'code',
      'detail',
      'errors',
      'request_id',
      'status',
      'title',
      'type',
    ]);
    expect(Object.keys(problemOf(unsupported!)).sort()).toEqual([
      'code',
      'detail',
      'request_id',
      'status',
      'title',
      'type',
    ]);
  });
});

describe('Cache-Control', () => {
  it('is no-store on everything under /v1, errors included', async () => {
    const json = { 'Content-Type': 'application/json' };
    for (const answer of [
      await service.send('/v1/runtime', { headers: { 'X-API-Key': service.adminKey } }),
      await service.post({ code: '' }),
      await service.send('/v1/execute', { method: 'POST', headers: json, body: '{}' }),
      await service.send('/v1/execute'),
      await service.send('/v1/nothing'),
      await service.send('/v1'),
    ]) {
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([answer.status, 'no-store']);
    }
  });

  it('lets the two pages be kept, to be asked for again each time', async () => {
    for (const path of ['/', '/docs']) {
      expect((await service.send(path)).headers.get('cache-control')).toBe('no-cache');
    }
  });
});

describe('CORS', () => {
  it('does not exist: nothing is allowed to other origins', async () => {
    for (const answer of await answersOfEveryKind({ Origin: 'https://elsewhere.example' })) {
      expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
  });
});
