import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawConnection, sendRaw } from '../support/raw-http.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({
    timeouts: { headersMs: 300, requestMs: 600, keepAliveMs: 300, checkMs: 50 },
  });
});
afterAll(() => service.stop());

/** The head of a request to /v1/execute with a valid key. */
function head(...headers: string[]): string {
  const lines = [
    'POST /v1/execute HTTP/1.1',
    'Host: x',
    `X-API-Key: ${service.adminKey}`,
    'Content-Type: application/json',
    ...headers,
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

const PROGRAM = '{"code": "print(1)"}';

describe('requests that two servers could read differently', () => {
  it.each([
    ['Content-Length with Transfer-Encoding', ['Content-Length: 20', 'Transfer-Encoding: chunked'], PROGRAM],
    ['Transfer-Encoding with Content-Length', ['Transfer-Encoding: chunked', 'Content-Length: 20'], PROGRAM],
    ['two Content-Lengths', ['Content-Length: 20', 'Content-Length: 21'], PROGRAM],
    ['a list of Content-Lengths', ['Content-Length: 20, 20'], PROGRAM],
    ['a negative Content-Length', ['Content-Length: -1'], PROGRAM],
    ['a Content-Length in hexadecimal', ['Content-Length: 0x14'], PROGRAM],
    ['chunked twice', ['Transfer-Encoding: chunked, chunked'], '14\r\n{"code": "print(1)"}\r\n0\r\n\r\n'],
    [
      'chunked, but not last',
      ['Transfer-Encoding: chunked, identity'],
      '14\r\n{"code": "print(1)"}\r\n0\r\n\r\n',
    ],
    ['a space before the colon', ['Content-Length : 20'], PROGRAM],
    ['a folded line', ['X-A: 1\r\n 2', 'Content-Length: 20'], PROGRAM],
    ['a chunk size that is none', ['Transfer-Encoding: chunked'], 'xyz\r\n{}\r\n0\r\n\r\n'],
    ['a chunk longer than it says', ['Transfer-Encoding: chunked'], '2\r\n{"code": "print(1)"}\r\n0\r\n\r\n'],
  ])('are refused: %s', async (_name, headers, body) => {
    const connection = new RawConnection(service.port);
    connection.write(head(...headers) + body);
    const [answer] = await connection.answers(1);
    expect([400, 415]).toContain(answer?.status);
    await connection.closed();
    expect(await connection.answers(2)).toHaveLength(1);
  });

  it.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['TLS', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown method', 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a control character in the path', 'GET /\u0001 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a control character in a header', 'GET / HTTP/1.1\r\nHost: x\r\nUser-Agent: a\u0007b\r\n\r\n'],
    ['a NUL in a header', 'GET / HTTP/1.1\r\nHost: x\r\nX-API-Key: a\u0000b\r\n\r\n'],
    ['a bare carriage return', 'GET / HTTP/1.1\r\nHost: x\r\nX-A: a\rX-B: b\r\n\r\n'],
  ])('are refused: %s', async (_name, text) => {
    const answer = await sendRaw(service.port, text);
    expect(answer.status).toBe(400);
    expect(answer.headers['content-type']).toBe('application/problem+json');
    expect(answer.headers.connection).toBe('close');
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'invalid_request', status: 400 });
  });

  it('is refused: no Host', async () => {
    const answer = await sendRaw(service.port, 'GET /healthz HTTP/1.1\r\n\r\n');
    expect(answer.status).toBe(400);
    expect(answer.headers['x-request-id']).toMatch(/^req_/);
  });

  it('is refused: two Hosts', async () => {
    const answer = await sendRaw(service.port, 'GET /healthz HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n');
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).detail).toBe('There is more than one Host header.');
  });

  it('is answered 404: CONNECT, which makes no tunnel', async () => {
    const connection = new RawConnection(service.port);
    connection.write('CONNECT elsewhere:443 HTTP/1.1\r\nHost: x\r\n\r\n');
    const [answer] = await connection.answers(1);
    expect(answer?.status).toBe(404);
    expect(JSON.parse(answer?.body ?? '').request_id).toBe(answer?.headers['x-request-id']);
    await connection.closed();
  });
});

describe('431 headers_too_large', () => {
  it('answers more than 16 KiB of header fields', async () => {
    const answer = await sendRaw(
      service.port,
      `GET / HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`,
    );
    expect(answer.status).toBe(431);
    expect(JSON.parse(answer.body).code).toBe('headers_too_large');
  });
});

describe('408 request_timeout', () => {
  it('answers header fields that come one byte at a time', async () => {
    const connection = new RawConnection(service.port);
    connection.write('GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    const drip = setInterval(() => connection.write('a'), 20);
    const [answer] = await connection.answers(1);
    clearInterval(drip);
    expect(answer?.status).toBe(408);
    expect(JSON.parse(answer?.body ?? '')).toMatchObject({ code: 'request_timeout', status: 408 });
    await connection.closed();
  });

  it('answers a body that comes one byte at a time', async () => {
    const connection = new RawConnection(service.port);
    connection.write(head('Content-Length: 1000'));
    const drip = setInterval(() => connection.write(' '), 20);
    const answers = await connection.answers(1);
    await connection.closed();
    clearInterval(drip);
    expect(answers.map(({ status }) => status)).toEqual([408]);
  });

  it('does not answer twice when a refused request keeps sending its body', async () => {
    const connection = new RawConnection(service.port);
    connection.write('POST /v1/execute HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n');
    const drip = setInterval(() => connection.write(' '), 20);
    await connection.closed();
    clearInterval(drip);
    expect((await connection.answers(2)).map(({ status }) => status)).toEqual([401]);
  });

  it('does not answer a program that runs longer than requests may take to arrive', async () => {
    const run = await service.execute({ code: 'import time; time.sleep(1); print(1)' });
    expect(run.stdout).toBe('1\n');
  });
});

describe('a connection', () => {
  it('serves one request after the other, also after errors', async () => {
    const connection = new RawConnection(service.port);
    for (const [index, path] of ['/healthz', '/nothing', '/v1/runtime', '/healthz'].entries()) {
      connection.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      await connection.answers(index + 1);
    }
    expect((await connection.answers(4)).map(({ status }) => status)).toEqual([200, 404, 401, 200]);
    connection.destroy();
  });

  it.each([
    ['HTTP/1.1', '', 'keep-alive'],
    ['HTTP/1.1', 'Connection: close\r\n', 'close'],
    ['HTTP/1.0', '', 'close'],
  ])('says whether it is kept: %s, %j', async (version, field, expected) => {
    for (const path of ['/healthz', '/nothing', '/v1/runtime']) {
      const answer = await sendRaw(service.port, `GET ${path} ${version}\r\nHost: x\r\n${field}\r\n`);
      expect([path, answer.headers.connection]).toEqual([path, expected]);
    }
  });

  it('serves requests that were sent together in their order', async () => {
    const connection = new RawConnection(service.port);
    const program = (n: number) => `{"code": "import time; time.sleep(${0.2 / n}); print(${n})"}`;
    const requests = [1, 2, 3].map((n) => head(`Content-Length: ${program(n).length}`) + program(n));
    connection.write(requests.join(''));
    const answers = await connection.answers(3);
    expect(answers.map(({ body }) => JSON.parse(body).stdout)).toEqual(['1\n', '2\n', '3\n']);
    connection.destroy();
  });

  it('is closed without a further answer when nonsense follows a request that is still answered', async () => {
    const connection = new RawConnection(service.port);
    const program = '{"code": "import time; time.sleep(5)"}';
    connection.write(`${head(`Content-Length: ${program.length}`)}${program}`);
    connection.write('nonsense\r\n\r\n');
    await connection.closed();
    expect(await connection.answers(1)).toEqual([]);
  });

  it('is closed when nothing comes on it', async () => {
    const connection = new RawConnection(service.port);
    connection.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await connection.answers(1);
    await connection.closed();
  });

  it('may expect anything: 100-continue is answered, the rest ignored', async () => {
    const connection = new RawConnection(service.port);
    connection.write(head('Expect: 100-continue', `Content-Length: ${PROGRAM.length}`) + PROGRAM);
    expect((await connection.answers(1))[0]?.status).toBe(200);
    connection.write(head('Expect: a miracle', `Content-Length: ${PROGRAM.length}`) + PROGRAM);
    expect((await connection.answers(2))[1]?.status).toBe(200);
    connection.destroy();
  });

  it('may be of HTTP/1.0', async () => {
    const answer = await sendRaw(service.port, 'GET /healthz HTTP/1.0\r\n\r\n');
    expect(answer.status).toBe(200);
  });
});
