import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sendRaw } from '../support/raw-http.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ settings: { LOG_LEVEL: 'debug', TRUSTED_PROXIES: '127.0.0.1' } });
});
afterAll(() => service.stop());

/** The line of the request with this id, once it is there. */
async function lineOf(requestId: string | null | undefined): Promise<Record<string, unknown>> {
  const find = () => service.log.find((line) => line.request_id === requestId && 'duration_ms' in line);
  await until(() => find() !== undefined);
  return find() ?? {};
}

describe('the log', () => {
  it('has one line for a run, with what it cost', async () => {
    const answer = await service.post({ code: 'print(1)' });
    const run = JSON.parse(answer.text);
    expect(await lineOf(answer.headers.get('x-request-id'))).toMatchObject({
      level: 'info',
      method: 'POST',
      route: '/v1/execute',
      status: 200,
      key_id: expect.stringMatching(/^key_/),
      address: '127.0.0.1',
      run_id: run.id,
      run_status: 'succeeded',
      wall_ms: run.usage.wall_ms,
    });
  });

  it('never has code, input, output, or keys, whatever happens to them', async () => {
    const secret = 'PLEASE-DO-NOT-LOG-THIS';
    const answers = [
      await service.post({ code: `print("${secret}")` }),
      await service.post({
        code: `raise ValueError("${secret}")`,
        stdin: secret,
        inputs: { [secret]: secret },
      }),
      await service.post({ code: secret, [secret]: 1 }),
      await service.post(`{"code": "${secret}`),
      await service.post(`${secret}`),
      await service.post({ code: 1 }, { key: secret }),
      await service.post({ code: '1' }, { headers: { 'Content-Type': secret, 'X-Other': secret } }),
      await service.send(`/v1/runtime?api_key=${secret}`),
      await service.send('/v1/runtime', {
        headers: { 'X-API-Key': secret, Authorization: `Bearer ${secret}2` },
      }),
    ];
    for (const answer of answers) await lineOf(answer.headers.get('x-request-id'));
    const text = JSON.stringify(service.log);
    expect(text).not.toContain(secret);
    expect(text).not.toContain(service.adminKey);
  });

  it('names the error code of a request that was refused', async () => {
    const answer = await service.post('{');
    expect(await lineOf(answer.headers.get('x-request-id'))).toMatchObject({
      status: 400,
      code: 'invalid_request',
    });
  });

  it('holds no control character, wherever a caller puts one', async () => {
    const control = '\u009b31m\u0085\u007f';
    const raw = `GET /a${control} HTTP/1.1\r\nHost: x${control}\r\nUser-Agent: ${control}\r\nX-Forwarded-For: ${control}\r\nX-API-Key: ${control}\r\n\r\n`;
    const answer = await sendRaw(service.port, Buffer.from(raw, 'latin1'));
    expect([400, 404]).toContain(answer.status);
    await sendRaw(service.port, `GET /b%1b%0a%00 HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.1.1.1\n2\r\n\r\n`);
    const last = await service.send('/c%1b%0d');
    await lineOf(last.headers.get('x-request-id'));
    const printable = /^[\x20-\x7e]*$/;
    for (const text of service.log.flatMap((line) => Object.values(line))) {
      if (typeof text === 'string') expect(text).toMatch(printable);
    }
  });

  it('names the address that a trusted proxy saw', async () => {
    const answer = await service.send('/v1/runtime', { headers: { 'X-Forwarded-For': '203.0.113.9' } });
    expect((await lineOf(answer.headers.get('x-request-id'))).address).toBe('203.0.113.9');
  });

  it('has a request id on every line that is about a request', () => {
    const others = service.log.filter((line) => line.request_id === undefined);
    expect(others.map(({ message }) => message)).toEqual(['the service is ready']);
  });
});
