/** 401: nobody learns why a key is refused. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateSecret } from '../../src/keys/secret.ts';
import { KeysApi } from '../support/keys-api.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let keys: KeysApi;
beforeAll(async () => {
  service = await startTestService({ settings: { TRUSTED_PROXIES: '127.0.0.1' } });
  keys = new KeysApi(service);
});
afterAll(() => service.stop());

/** Secrets that work no longer, or never did, by the reason for that. */
async function refusedSecrets(): Promise<Record<string, string | null>> {
  const [revoked, rotated] = [await keys.create(), await keys.create()];
  await keys.revoke(revoked.id);
  await keys.rotate(rotated.id, 0);
  return {
    missing: null,
    revoked: revoked.secret,
    'replaced by rotation': rotated.secret,
    expired: await service.addKey({ expiresAt: new Date(Date.now() - 1) }),
    unknown: generateSecret(),
    mistyped: `${rotated.secret.slice(0, -1)}!`,
    'of another form': 'password',
  };
}

describe('missing, wrong, revoked and expired keys', () => {
  it.each(['GET /v1/me', 'POST /v1/execute', 'GET /v1/keys', 'DELETE /v1/keys/key_1'])(
    'get the same 401 from %s, byte for byte but for the request id',
    async (call) => {
      const [method = '', path = ''] = call.split(' ');
      const seen = new Map<string, string[]>();
      for (const [reason, secret] of Object.entries(await refusedSecrets())) {
        const answer = await service.send(path, {
          method,
          headers: {
            'X-Forwarded-For': `192.0.2.${call.length}`,
            ...(secret === null ? {} : { 'X-API-Key': secret }),
          },
        });
        expect([reason, answer.status]).toEqual([reason, 401]);
        const requestId = answer.headers.get('x-request-id') ?? '';
        const headers = [...answer.headers].filter(([name]) => name !== 'x-request-id' && name !== 'date');
        const bytes = JSON.stringify({ headers, body: answer.text.replace(requestId, '') });
        seen.set(bytes, [...(seen.get(bytes) ?? []), reason]);
      }
      expect([...seen.values()]).toHaveLength(1);
    },
  );
});
