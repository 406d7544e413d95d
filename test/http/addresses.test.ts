import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sendRaw } from '../support/raw-http.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

describe('404 not_found', () => {
  it.each([
    '/nothing',
    '/v1',
    '/v1/',
    '/v1/execute/',
    '/v1/keys/',
    '/v1/jobs/',
    '/v1/keys//rotate',
    '/v1/execute/x',
    '//v1/execute',
    '/healthz/',
    '/V1/execute',
    '/%zz',
    '/v1/execute;x=1',
  ])('answers %s', async (path) => {
    const answer = await service.send(path);
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(problemOf(answer)).toMatchObject({ type: 'about:blank', status: 404, code: 'not_found' });
  });

  it('answers for a run under /v1/jobs, since a synchronous one is never found there', async () => {
    const { id } = await service.execute({ code: 'print(1)' });
    const headers = { 'X-API-Key': service.adminKey };
    expect((await service.send(`/v1/jobs/${id}`, { headers })).status).toBe(404);
  });

  it('comes before the key, the media type and the body', async () => {
    const answer = await service.send('/v1/nothing', {
      method: 'POST',
      body: '{',
      headers: { 'X-API-Key': 'x' },
    });
    expect(answer.status).toBe(404);
  });

  it('answers a path of 10,000 characters', async () => {
    expect((await service.send(`/${'a'.repeat(10_000)}`)).status).toBe(404);
  });
});

describe('405 method_not_allowed', () => {
  it.each([
    ['GET', '/v1/execute', 'POST'],
    ['OPTIONS', '/v1/execute', 'POST'],
    ['PUT', '/v1/execute', 'POST'],
    ['PROPFIND', '/v1/execute', 'POST'],
    ['POST', '/v1/runtime', 'GET, HEAD'],
    ['OPTIONS', '/v1/runtime', 'GET, HEAD'],
    ['DELETE', '/healthz', 'GET, HEAD'],
    ['POST', '/', 'GET, HEAD'],
    ['QUERY', '/openapi.json', 'GET, HEAD'],
  ])('answers %s %s with what is allowed', async (method, path, allowed) => {
    const answer = await sendRaw(service.port, `${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toBe(allowed);
    expect(JSON.parse(answer.body).code).toBe('method_not_allowed');
  });

  it('answers HEAD where there is no GET', async () => {
    const answer = await service.send('/v1/execute', { method: 'HEAD' });
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('POST');
  });

  it('comes before the key and the body', async () => {
    const answer = await service.send('/v1/runtime?x=1', { method: 'POST', body: '{' });
    expect(answer.status).toBe(405);
  });

  it('finds the path behind the query, escapes and an absolute address', async () => {
    for (const target of ['/healthz?a=1', '/%68ealthz', 'http://x/healthz']) {
      const answer = await sendRaw(
        service.port,
        `POST ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`,
      );
      expect([target, answer.status]).toEqual([target, 405]);
    }
  });
});

describe('HEAD', () => {
  it.each(['/healthz', '/readyz', '/openapi.json', '/docs', '/'])(
    'answers %s as GET does, without a body',
    async (path) => {
      const get = await service.send(path);
      const head = await service.send(path, { method: 'HEAD' });
      expect(head.status).toBe(200);
      expect(head.text).toBe('');
      expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(get.text)));
      expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'));
    },
  );
});

describe('query parameters that a route does not have', () => {
  it.each(['/healthz', '/readyz', '/openapi.json', '/', '/v1/runtime'])('are 400 at %s', async (path) => {
    const answer = await service.send(`${path}?verbose=1`, { headers: { 'X-API-Key': service.adminKey } });
    expect(answer.status).toBe(400);
    expect(problemOf(answer).errors).toEqual([
      { path: '/verbose', message: 'is not a query parameter of this endpoint: it has none' },
    ]);
  });

  it('are 400 at /v1/execute, whose program then does not run', async () => {
    const answer = await service.send('/v1/execute?timeout_ms=5', {
      method: 'POST',
      headers: { 'X-API-Key': service.adminKey, 'Content-Type': 'application/json' },
      body: '{"code": "print(1)"}',
    });
    expect(answer.status).toBe(400);
    expect(problemOf(answer).errors?.[0]?.path).toBe('/timeout_ms');
  });
});
