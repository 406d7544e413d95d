import { ServiceError } from '../shared/errors.ts';

/** The refusal of whoever presents no valid key. It is the same for every reason, so that nobody learns which. */
export function unauthorized(): ServiceError {
  return new ServiceError(
    'unauthorized',
    'A valid key is needed: send it as "Authorization: Bearer KEY" or as "X-API-Key: KEY".',
    { headers: { 'WWW-Authenticate': 'Bearer' } },
  );
}
