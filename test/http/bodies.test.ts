import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawConnection, sendRaw } from '../support/raw-http.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

/** The head of a request to /v1/execute with a valid key. */
function head(...headers: string[]): string {
  const lines = ['POST /v1/execute HTTP/1.1', 'Host: x', `X-API-Key: ${service.adminKey}`, ...headers];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

describe('415 unsupported_media_type', () => {
  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/problem+json',
    'application/json; charset=latin1',
    'application/json; charset=utf-16',
    'json',
    '*/*',
  ])('answers Content-Type %s', async (type) => {
    const answer = await service.post('{"code": "print(1)"}', { headers: { 'Content-Type': type } });
    expect(answer.status).toBe(415);
    expect(problemOf(answer).code).toBe('unsupported_media_type');
  });

  it('answers a body without Content-Type', async () => {
    expect((await sendRaw(service.port, `${head('Content-Length: 2')}{}`)).status).toBe(415);
  });

  it.each(['gzip', 'br', 'identity', 'x'])('answers Content-Encoding %s', async (encoding) => {
    const answer = await service.send('/v1/execute', {
      method: 'POST',
      headers: {
        'X-API-Key': service.adminKey,
        'Content-Type': 'application/json',
        'Content-Encoding': encoding,
      },
      body: gzipSync('{"code": "print(1)"}'),
    });
    expect(answer.status).toBe(415);
  });

  it('answers a Transfer-Encoding that compresses', async () => {
    const answer = await sendRaw(
      service.port,
      `${head('Content-Type: application/json', 'Transfer-Encoding: gzip, chunked')}2\r\n{}\r\n0\r\n\r\n`,
    );
    expect(answer.status).toBe(415);
  });

  it('comes before the size and the body', async () => {
    const answer = await sendRaw(
      service.port,
      head('Content-Type: text/plain', 'Content-Length: 99999999999'),
    );
    expect(answer.status).toBe(415);
  });
});

describe('a media type that is accepted', () => {
  it.each([
    'application/json',
    'APPLICATION/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json ; charset=utf8',
    'application/json; profile=x',
  ])('is %s', async (type) => {
    const answer = await service.post('{"code": "print(1)"}', { headers: { 'Content-Type': type } });
    expect(answer.status).toBe(200);
  });
});

describe('413 payload_too_large', () => {
  it('answers a Content-Length over 16 MiB before the body has come', async () => {
    const length = 16 * 2 ** 20 + 1;
    const answer = await sendRaw(
      service.port,
      head('Content-Type: application/json', `Content-Length: ${length}`),
    );
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.body).code).toBe('payload_too_large');
  });

  it('answers a chunked body as soon as it is over, takes the rest and serves the next request', async () => {
    const connection = new RawConnection(service.port);
    connection.write(head('Content-Type: application/json', 'Transfer-Encoding: chunked'));
    const chunk = Buffer.alloc(2 ** 20, ' ');
    const framed = Buffer.concat([Buffer.from('100000\r\n'), chunk, Buffer.from('\r\n')]);
    for (let sent = 0; sent < 17; sent++) connection.write(framed);
    expect((await connection.answers(1))[0]?.status).toBe(413);

    const memoryBefore = process.memoryUsage().rss;
    for (let sent = 0; sent < 200; sent++) {
      if (!connection.socket.write(framed)) {
        await new Promise((resolve) => connection.socket.once('drain', resolve));
      }
    }
    connection.write('0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    expect((await connection.answers(2))[1]?.status).toBe(200);
    expect(process.memoryUsage().rss - memoryBefore).toBeLessThan(100 * 2 ** 20);
    connection.destroy();
  });

  it('does not answer a body of just 16 MiB', async () => {
    const body = '{"code": "print(1)"}'.padEnd(16 * 2 ** 20);
    expect((await service.post(body)).status).toBe(200);
  });

  it('can be read by a client that sends everything before it looks', async () => {
    const answer = await service.post(' '.repeat(40 * 2 ** 20));
    expect(answer.status).toBe(413);
  });
});

describe('a body that is not JSON', () => {
  it.each([
    ['nothing', ''],
    ['a half', '{"code": "print(1)"'],
    ['a comma too many', '{"code": "print(1)",}'],
    ['NaN', '{"code": "1", "timeout_ms": NaN}'],
    ['Infinity', '{"code": "1", "timeout_ms": -Infinity}'],
    ['single quotes', "{'code': 'print(1)'}"],
    ['a comment', '{"code": "1" /* x */}'],
    ['a second value', '{"code": "1"} {}'],
    ['a control character in a string', '{"code": "\u0001"}'],
    ['a NUL behind it', '{"code": "1"}\u0000'],
  ])('is 400: %s', async (_name, body) => {
    const answer = await service.post(body);
    expect(answer.status).toBe(400);
    expect(problemOf(answer)).toMatchObject({ code: 'invalid_request', errors: [{ path: '' }] });
  });

  it.each([
    ['a byte that is never in UTF-8', [0xff]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['half a surrogate pair', [0xed, 0xa0, 0x80]],
    ['half a character', [0xe2, 0x82]],
  ])('is 400 when it is not UTF-8: %s', async (_name, bytes) => {
    const answer = await service.send('/v1/execute', {
      method: 'POST',
      headers: { 'X-API-Key': service.adminKey, 'Content-Type': 'application/json' },
      body: Buffer.concat([Buffer.from('{"code": "'), Buffer.from(bytes), Buffer.from('"}')]),
    });
    expect(answer.status).toBe(400);
    expect(problemOf(answer).errors?.[0]?.message).toContain('UTF-8');
  });

  it('is told apart from JSON that is no object', async () => {
    for (const body of ['[]', '"code"', '1', 'null', 'true']) {
      const answer = await service.post(body);
      expect(answer.status).toBe(400);
      expect(problemOf(answer).errors).toEqual([{ path: '', message: 'The body must be a JSON object.' }]);
    }
  });
});

describe('JSON that is a trap', () => {
  it.each([
    ['a million [', '['.repeat(1_000_000)],
    ['sixteen million [', '['.repeat(16 * 2 ** 20)],
    ['a million pairs of []', '['.repeat(1_000_000) + ']'.repeat(1_000_000)],
    ['a million {"a":', '{"a":'.repeat(1_000_000)],
    ['a million fields', `{${'"a":1,'.repeat(1_000_000)}"code":"1"}`],
    [
      'a million unknown fields',
      `{${Array.from({ length: 1_000_000 }, (_, i) => `"a${i}":1,`).join('')}"code":"1"}`,
    ],
  ])('is 400 at once: %s', async (_name, body) => {
    const startMs = performance.now();
    const answer = await service.post(body);
    expect(answer.status).toBe(400);
    expect(answer.text.length).toBeLessThan(2000);
    expect(performance.now() - startMs).toBeLessThan(2000);
  });

  it('is 400 at /inputs when that nests deeper than 200', async () => {
    const nested = (depth: number) =>
      `{"code": "print(1)", "inputs": {"a": ${'['.repeat(depth)}${']'.repeat(depth)}}}`;
    expect((await service.post(nested(198))).status).toBe(200);
    const answer = await service.post(nested(199));
    expect(answer.status).toBe(400);
    expect(problemOf(answer).errors?.[0]?.path).toBe('/inputs');
  });

  it('takes the last of a field that is given twice', async () => {
    const run = await service.execute(
      '{"code": "print(1)", "code": "print(inputs)", "inputs": {"a": 1}, "inputs": {"b": 2}}',
    );
    expect(run.stdout).toBe("{'b': 2}\n");
    const escaped = await service.execute(
      '{"code": "print(inputs)", "inputs": {"a": 1}, "\\u0069nputs": {"b": 2.0}}',
    );
    expect(escaped.stdout).toBe("{'b': 2.0}\n");
  });

  it('has __proto__ as an ordinary unknown field at the top, and as data in inputs', async () => {
    const answer = await service.post('{"code": "print(1)", "__proto__": {"timeout_ms": 1}}');
    expect(answer.status).toBe(400);
    expect(problemOf(answer).errors?.[0]?.path).toBe('/__proto__');
    const run = await service.execute(
      '{"code": "print(inputs)", "inputs": {"__proto__": {"a": 1}, "constructor": 2}}',
    );
    expect(run.stdout).toBe("{'__proto__': {'a': 1}, 'constructor': 2}\n");
  });
});
