import type { FastifyError, FastifySchema } from 'fastify';
import { ServiceError } from '../shared/errors.ts';
import { internalError } from './problems.ts';
import { validationError } from './validation.ts';

/** What was thrown while a request was handled, in the contract's terms. */
export function toServiceError(error: FastifyError | Error, schema: FastifySchema | undefined): ServiceError {
  if (error instanceof ServiceError) return error;
  if ('validation' in error && error.validation !== undefined) {
    const part = error.validationContext ?? 'body';
    return validationError(error.validation, part, schema?.[part as keyof FastifySchema]);
  }
  return internalError(error);
}
