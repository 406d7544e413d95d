/** What the schema validator found, in words that say what to change. */

import type { FastifySchemaValidationError } from 'fastify/types/schema.js';
import { type FieldError, invalidRequest, type ServiceError } from '../shared/errors.ts';
import { nearestName } from '../shared/nearest.ts';
import { escapePointer } from './json-body.ts';

/** More than a caller reads; a body cannot have many more fields than that anyway. */
const ERRORS_MAX = 20;

/**
 * The 400 for a part of a request that does not fit its schema.
 * @param part `body`, `querystring`, `params` or `headers`.
 * @param fields The names that the schema knows.
 */
export function validationError(
  found: FastifySchemaValidationError[],
  part: string,
  fields: string[],
): ServiceError {
  return invalidRequest(found.slice(0, ERRORS_MAX).map((error) => fieldError(error, part, fields)));
}

function fieldError(error: FastifySchemaValidationError, part: string, fields: string[]): FieldError {
  const { instancePath: path, params } = error;
  switch (error.keyword) {
    case 'additionalProperties': {
      const name = String(params.additionalProperty);
      return { path: `${path}/${escapePointer(name)}`, message: unknownField(name, part, fields) };
    }
    case 'required':
      return { path: `${path}/${escapePointer(String(params.missingProperty))}`, message: 'is required' };
    case 'type':
      return { path, message: wrongType(String(params.type), path) };
    case 'minimum':
      return { path, message: `must be at least ${params.limit}` };
    case 'maximum':
      return { path, message: `must be at most ${params.limit}` };
    default:
      return { path, message: error.message ?? 'is not valid' };
  }
}

function unknownField(name: string, part: string, fields: string[]): string {
  const kind = part === 'querystring' ? 'query parameter' : 'field';
  if (fields.length === 0) return `is not a ${kind} of this endpoint: it has none`;
  const nearest = nearestName(name.slice(0, 100), fields);
  const remedy = nearest === undefined ? `it has ${fields.join(', ')}` : `did you mean ${nearest}?`;
  return `is not a ${kind} of this endpoint: ${remedy}`;
}

function wrongType(expected: string, path: string): string {
  if (path === '') return 'The body must be a JSON object.';
  switch (expected) {
    case 'integer':
      return 'must be a whole number, without quotes';
    case 'number':
      return 'must be a number, without quotes';
    case 'string':
      return 'must be a string';
    case 'object':
      return 'must be an object';
    default:
      return `must be of type ${expected}`;
  }
}
