import type { FastifyRequest } from 'fastify';
import type { Authenticator } from '../keys/authenticator.ts';
import type { FailedAttempts } from '../keys/failed-attempts.ts';
import type { Key } from '../keys/key.ts';
import type { LastUse } from '../keys/last-use.ts';
import { unauthorized } from '../keys/unauthorized.ts';
import { ServiceError } from '../shared/errors.ts';
import { presentedKey } from './presented-key.ts';

/** Who may call a route: anybody, any valid key, or an admin key. */
export type Access = 'open' | 'key' | 'admin';

/** Lets requests through by their key. */
export class AccessControl {
  readonly #authenticator: Authenticator;
  readonly #failedAttempts: FailedAttempts;
  readonly #lastUse: LastUse;

  constructor(options: {
    authenticator: Authenticator;
    failedAttempts: FailedAttempts;
    lastUse: LastUse;
  }) {
    this.#authenticator = options.authenticator;
    this.#lastUse = options.lastUse;
    this.#failedAttempts = options.failedAttempts;
  }

  /**
   * The key of a request to a route that is not open.
   * @throws ServiceError `unauthorized`, the same for every reason; `forbidden`; or `rate_limited` when too many
   * authentications have failed from this address, which a valid key is never refused for.
   */
  async check(request: FastifyRequest, access: Exclude<Access, 'open'>): Promise<Key> {
    const secret = presentedKey(request.headers);
    const key = secret === null ? null : await this.#authenticator.authenticate(secret);
    if (key === null) throw this.#refusal(clientAddress(request));
    this.#lastUse.note(key.id);
    if (access === 'admin' && key.role !== 'admin') {
      throw new ServiceError('forbidden', 'This needs an admin key.');
    }
    return key;
  }

  #refusal(address: string): ServiceError {
    const waitMs = this.#failedAttempts.record(address);
    if (waitMs === 0) return unauthorized();
    return new ServiceError('rate_limited', 'Too many failed authentications from this address.', {
      retryAfterSeconds: Math.ceil(waitMs / 1000),
    });
  }
}

/**
 * The caller's address: the connection's, or what trusted proxies say of it. A proxy that passes on text that is
 * no address shares one account with everybody it does that for.
 */
export function clientAddress(request: FastifyRequest): string {
  return /^[0-9A-Fa-f:.%]{1,64}$/.test(request.ip)
    ? request.ip
    : (request.raw.socket.remoteAddress ?? 'unknown');
}
