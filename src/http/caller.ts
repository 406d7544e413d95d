import type { FastifyRequest } from 'fastify';
import type { Key } from '../keys/key.ts';

/** The key of a request to a route that is not open. */
export function callersKey({ key }: Pick<FastifyRequest, 'key'>): Key {
  if (key === null) throw new Error('A request to a route that is not open has a key.');
  return key;
}
