import type { IncomingHttpHeaders } from 'node:http';

/**
 * The secret that a request presents, as `Authorization: Bearer KEY` or `X-API-Key: KEY`. Null when there is none,
 * when Authorization is of another scheme, and when the two say different things: nobody can tell which was meant.
 */
export function presentedKey(headers: IncomingHttpHeaders): string | null {
  const { authorization } = headers;
  const apiKey = headers['x-api-key'];
  if (authorization === undefined) return typeof apiKey === 'string' && apiKey !== '' ? apiKey : null;
  const bearer = /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1] ?? null;
  return apiKey === undefined || apiKey === bearer ? bearer : null;
}
