import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawConnection, sendRaw } from '../support/raw-http.ts';
import { type Answer, problemOf, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ settings: { CONCURRENCY: '1', QUEUE_MAX: '0' } });
});
afterAll(() => service.stop());

const LONG = { code: 'import time; time.sleep(25)' };

/** Sends a program with an Idempotency-Key. */
function post(idempotencyKey: string, body: unknown, options: { key?: string; signal?: AbortSignal } = {}) {
  return service.post(body, { ...options, headers: { 'Idempotency-Key': idempotencyKey } });
}

function expectReplay(answer: Answer, first: Answer): void {
  expect([answer.status, answer.text]).toEqual([first.status, first.text]);
  expect(answer.headers.get('idempotent-replay')).toBe('true');
}

function expectRun(answer: Answer): void {
  expect([answer.status, answer.headers.get('idempotent-replay')]).toEqual([200, null]);
}

/** Takes the only slot, under an Idempotency-Key, until the caller hangs up. */
async function occupySlot(idempotencyKey: string, key = service.adminKey): Promise<() => Promise<void>> {
  const caller = new AbortController();
  const answer = post(idempotencyKey, LONG, { key, signal: caller.signal });
  await service.loaded(1, 0);
  return async () => {
    caller.abort();
    await expect(answer).rejects.toThrow();
    await service.loaded(0, 0);
  };
}

describe('the same request sent again', () => {
  it('gets the first answer, byte for byte, and a request id of its own', async () => {
    const body = { code: 'import random; print("ä€😀"); random.random()' };
    const first = await post('same', body);
    expectRun(first);
    for (const again of [await post('same', body), await post('same', body)]) {
      expectReplay(again, first);
      for (const name of ['content-type', 'content-length', 'cache-control']) {
        expect(again.headers.get(name)).toBe(first.headers.get(name));
      }
      expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
    }
  });

  it('gets the first answer also when the program failed', async () => {
    const first = await post('failed', { code: '1 / 0' });
    expect(JSON.parse(first.text).status).toBe('failed');
    expectReplay(await post('failed', { code: '1 / 0' }), first);
  });

  it('gets an answer of many megabytes as it was', async () => {
    const body = {
      code: `import matplotlib.pyplot as plt, numpy as np
for _ in range(3):
    plt.figure(figsize=(10, 10)); plt.imshow(np.random.rand(900, 900, 3), interpolation='nearest'); plt.show()
print('x' * 1_000_000)`,
    };
    const first = await post('large', body);
    expect(first.text.length).toBeGreaterThan(3_000_000);
    const again = await post('large', body);
    expectReplay(again, first);
    expect(again.headers.get('content-length')).toBe(first.headers.get('content-length'));
  });

  it('is 422 with another body, were it other in a space alone', async () => {
    const first = await post('other', '{"code": "print(1)"}');
    for (const body of ['{"code": "print(2)"}', '{"code":  "print(1)"}']) {
      const answer = await post('other', body);
      expect([answer.status, problemOf(answer).code]).toEqual([422, 'idempotency_mismatch']);
    }
    expectReplay(await post('other', '{"code": "print(1)"}'), first);
  });

  it('is 409 with Retry-After while the first is running, and 422 with another body', async () => {
    const leave = await occupySlot('running');
    const again = await post('running', LONG);
    expect([again.status, problemOf(again).code]).toEqual([409, 'idempotency_conflict']);
    expect(again.headers.get('retry-after')).toBe('1');
    expect((await post('running', { code: '' })).status).toBe(422);
    await leave();
  });

  it('waits for no slot, and is not refused by a full queue', async () => {
    const first = await post('full', { code: '' });
    const leave = await occupySlot('something-else');
    expectReplay(await post('full', { code: '' }), first);
    expect((await post('full', { code: '1' })).status).toBe(422);
    expect((await service.post({ code: '' })).status).toBe(503);
    await leave();
  });

  it('runs once, however many arrive at the same time', async () => {
    const key = await service.addKey();
    const body = { code: 'import time; time.sleep(0.2); print("once")' };
    const answers = await Promise.all(Array.from({ length: 50 }, () => post('fifty', body, { key })));
    const [first, ...others] = answers.filter(
      ({ status, headers }) => status === 200 && headers.get('idempotent-replay') === null,
    );
    expect(others).toEqual([]);
    const refused = answers.filter(({ status }) => status === 409);
    const replayed = answers.filter(({ headers }) => headers.get('idempotent-replay') === 'true');
    expect(refused.length + replayed.length).toBe(49);
    for (const answer of replayed) expectReplay(answer, first!);
    const usage = await service.send('/v1/usage', { headers: { 'X-API-Key': key } });
    expect(JSON.parse(usage.text).totals.runs).toMatchObject({ succeeded: 1 });
  });

  it('gets the first answer, however many arrive at the same time once that is given', async () => {
    const first = await post('many', { code: '' });
    const answers = await Promise.all(Array.from({ length: 50 }, () => post('many', { code: '' })));
    for (const answer of answers) expectReplay(answer, first);
  });
});

describe('an Idempotency-Key', () => {
  it("of another API key is another's", async () => {
    const [one, two] = [await service.addKey(), await service.addKey()];
    const first = await post('shared', { code: 'print(1)' }, { key: one });
    const second = await post('shared', { code: 'print(2)' }, { key: two });
    expectRun(first);
    expectRun(second);
    expectReplay(await post('shared', { code: 'print(1)' }, { key: one }), first);
    expectReplay(await post('shared', { code: 'print(2)' }, { key: two }), second);
  });

  it.each([
    ['one character', '!'],
    ['255 characters', '~'.repeat(255)],
    ['quotes and letters', '"8e03978e-40d5-43dd-bc93-6894a57f9324"'],
  ])('may be %s', async (_name, idempotencyKey) => {
    const first = await post(idempotencyKey, { code: '' });
    expectRun(first);
    expectReplay(await post(idempotencyKey, { code: '' }), first);
  });

  it.each([
    ['empty', '', 'must have at least 1 character'],
    ['256 characters long', 'x'.repeat(256), 'must have at most 255 characters'],
    ['two words', 'a b', 'must be visible ASCII characters without spaces, and be sent once'],
    ['not ASCII', 'Schlüssel', 'must be visible ASCII characters without spaces, and be sent once'],
    ['with a tab in it', 'a\tb', 'must be visible ASCII characters without spaces, and be sent once'],
  ])('is 400 when it is %s, and named in the message', async (_name, idempotencyKey, rule) => {
    const answer = await post(idempotencyKey, { code: '' });
    expect(answer.status).toBe(400);
    expect(problemOf(answer)).toMatchObject({
      code: 'invalid_request',
      errors: [{ path: '', message: `The header Idempotency-Key ${rule}.` }],
    });
  });

  const raw = (...fields: (string | Buffer)[]) =>
    sendRaw(
      service.port,
      Buffer.concat([
        Buffer.from(`POST /v1/execute HTTP/1.1\r\nHost: x\r\nX-API-Key: ${service.adminKey}\r\n`),
        Buffer.from('Content-Type: application/json\r\nContent-Length: 11\r\n'),
        ...fields.map((field) => Buffer.concat([Buffer.from('Idempotency-Key: '), Buffer.from(field), CRLF])),
        Buffer.from('\r\n{"code":""}'),
      ]),
    );
  const CRLF = Buffer.from('\r\n');

  it('is 400 when it is sent twice', async () => {
    expect((await raw('a', 'b')).status).toBe(400);
    expect((await raw('a', 'a')).status).toBe(400);
  });

  it.each([0x00, 0x01, 0x08, 0x0a, 0x0d, 0x1b, 0x7f, 0x80, 0xff])(
    'is 400 with byte %i in it',
    async (byte) => {
      expect((await raw(Buffer.from([0x61, byte, 0x62]))).status).toBe(400);
    },
  );

  it('of a megabyte is 431', async () => {
    expect((await raw('x'.repeat(2 ** 20))).status).toBe(431);
    expect((await service.send('/healthz')).status).toBe(200);
  });

  it('is not looked at by routes that do no work', async () => {
    const headers = { 'X-API-Key': service.adminKey, 'Idempotency-Key': 'a b' };
    expect((await service.send('/v1/runtime', { headers })).status).toBe(200);
  });

  it('is described in the OpenAPI document', async () => {
    const { paths } = JSON.parse((await service.send('/openapi.json')).text);
    const { parameters, responses } = paths['/v1/execute'].post;
    expect(parameters).toContainEqual(
      expect.objectContaining({ in: 'header', name: 'Idempotency-Key', required: false }),
    );
    expect(responses['200'].headers['Idempotent-Replay'].schema).toMatchObject({ const: 'true' });
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(['409', '422']));
  });
});

describe('a key is free again', () => {
  it('after 400, for another body', async () => {
    expect((await post('after-400', '{')).status).toBe(400);
    expect((await post('after-400', { code: 1 })).status).toBe(400);
    expect((await post('after-400', { code: '', timeout_ms: 0 })).status).toBe(400);
    expectRun(await post('after-400', { code: '' }));
  });

  it('after 503, for another body', async () => {
    const leave = await occupySlot('busy');
    expect((await post('after-503', { code: '1' })).status).toBe(503);
    await leave();
    expectRun(await post('after-503', { code: '2' }));
  });

  it('after 429, for another body', async () => {
    const key = await service.addKey({ limits: { requests_per_minute: 20, burst: 1 } });
    expectRun(await post('before-429', { code: '' }, { key }));
    const refused = await post('after-429', { code: '1' }, { key });
    expect(refused.status).toBe(429);
    await until(async () => (await post('after-429', { code: '2' }, { key })).status === 200);
  });

  it('after a caller who hung up, and whose run was cancelled', async () => {
    const leave = await occupySlot('hung-up');
    await leave();
    const answer = await post('hung-up', { code: 'print(1)' });
    expectRun(answer);
    expect(JSON.parse(answer.text).stdout).toBe('1\n');
  });

  it('after a caller who hung up while sending the body', async () => {
    const connection = new RawConnection(service.port);
    connection.write(
      `POST /v1/execute HTTP/1.1\r\nHost: x\r\nX-API-Key: ${service.adminKey}\r\nContent-Type: application/json\r\nIdempotency-Key: half\r\nContent-Length: 99\r\n\r\n{"code`,
    );
    await service.send('/healthz');
    connection.destroy();
    expectRun(await post('half', { code: '' }));
  });
});

describe('a caller who hung up after the end of the run', () => {
  it('gets its answer by sending again', async () => {
    const text = '{"code":"print(1)"}';
    const connection = new RawConnection(service.port);
    connection.write(
      `POST /v1/execute HTTP/1.1\r\nHost: x\r\nX-API-Key: ${service.adminKey}\r\nContent-Type: application/json\r\nIdempotency-Key: lost\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
    );
    const [first] = await connection.answers(1);
    connection.destroy();
    const again = await post('lost', text);
    expect([again.text, again.headers.get('idempotent-replay')]).toEqual([first?.body, 'true']);
  });
});
