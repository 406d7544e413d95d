import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateSecret } from '../../src/keys/secret.ts';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  // A trusted proxy lets each test come from an address of its own.
  service = await startTestService({ settings: { TRUSTED_PROXIES: '127.0.0.1' } });
});
afterAll(() => service.stop());

let lastAddress = 0;
/** Headers of a caller that nobody has seen before. */
function fromNewAddress(): Record<string, string> {
  lastAddress++;
  return { 'X-Forwarded-For': `192.0.2.${lastAddress}` };
}

function runtime(headers: Record<string, string>) {
  return service.send('/v1/runtime', { headers });
}

describe('a valid key', () => {
  it.each(['Bearer', 'bearer', 'BEARER'])('travels as Authorization: %s', async (scheme) => {
    expect((await runtime({ Authorization: `${scheme} ${service.adminKey}` })).status).toBe(200);
  });

  it('travels as X-API-Key', async () => {
    expect((await runtime({ 'X-API-Key': service.adminKey })).status).toBe(200);
  });

  it('may travel as both when both are the same', async () => {
    const { adminKey } = service;
    expect((await runtime({ 'X-API-Key': adminKey, Authorization: `Bearer ${adminKey}` })).status).toBe(200);
  });

  it('of a user runs programs', async () => {
    const key = await service.addKey({ role: 'user' });
    expect((await service.execute({ code: 'print(1)' }, { key })).stdout).toBe('1\n');
  });

  it('works until the moment it expires', async () => {
    const key = await service.addKey({ expiresAt: new Date(Date.now() + 3_600_000) });
    expect((await runtime({ 'X-API-Key': key })).status).toBe(200);
  });
});

describe('401 unauthorized', () => {
  it('is the same for every reason', async () => {
    const revoked = await service.addKey({ revokedAt: new Date() });
    const expired = await service.addKey({ expiresAt: new Date(Date.now() - 1) });
    const other = await service.addKey();
    const presented: Record<string, string>[] = [
      {},
      { Authorization: '' },
      { Authorization: 'Bearer' },
      { Authorization: 'Bearer ' },
      { Authorization: `Basic ${btoa(`user:${service.adminKey}`)}` },
      { Authorization: service.adminKey },
      { Authorization: `Bearer ${service.adminKey} ${service.adminKey}` },
      { Authorization: `Bearer ${service.adminKey}x` },
      { 'X-API-Key': '' },
      { 'X-API-Key': 'x'.repeat(8000) },
      { 'X-API-Key': generateSecret() },
      { 'X-API-Key': revoked },
      { 'X-API-Key': expired },
      { 'X-API-Key': other, Authorization: `Bearer ${service.adminKey}` },
      { 'X-API-Key': service.adminKey, Authorization: `Basic ${btoa('user:password')}` },
    ];
    const address = fromNewAddress();
    const answers = await Promise.all(presented.map((headers) => runtime({ ...address, ...headers })));
    for (const [index, answer] of answers.entries()) {
      expect([presented[index], answer.status]).toEqual([presented[index], 401]);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
      expect({ ...problemOf(answer), request_id: '' }).toEqual({ ...problemOf(answers[0]!), request_id: '' });
    }
  });

  it('comes before the media type, the size and the body', async () => {
    const answer = await service.send('/v1/execute?x=1', {
      method: 'POST',
      headers: fromNewAddress(),
      body: 'x'.repeat(2 ** 20),
    });
    expect(answer.status).toBe(401);
  });
});

describe('429 rate_limited', () => {
  it('answers the 31st failure of an address within a minute, and never a valid key', async () => {
    const address = fromNewAddress();
    const failures = await Promise.all(Array.from({ length: 30 }, () => runtime(address)));
    expect(new Set(failures.map(({ status }) => status))).toEqual(new Set([401]));

    const refused = await runtime({ ...address, 'X-API-Key': 'wrong' });
    expect(refused.status).toBe(429);
    expect(problemOf(refused).code).toBe('rate_limited');
    const retryAfter = Number(refused.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(50);
    expect(retryAfter).toBeLessThanOrEqual(60);

    expect((await runtime({ ...address, 'X-API-Key': service.adminKey })).status).toBe(200);
    expect((await runtime(fromNewAddress())).status).toBe(401);
  });

  it('counts the address that the trusted proxy saw, not what the caller says of itself', async () => {
    const { 'X-Forwarded-For': address } = fromNewAddress();
    const answers = await Promise.all(
      Array.from({ length: 31 }, (_, index) => runtime({ 'X-Forwarded-For': `10.0.0.${index}, ${address}` })),
    );
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(1);
  });
});
