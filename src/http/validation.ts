/** What the schema validator found, in words that say what to change. */

import type { FastifySchemaValidationError } from 'fastify/types/schema.js';
import { type FieldError, invalidRequest, type ServiceError } from '../shared/errors.ts';
import { nearestName } from '../shared/nearest.ts';
import { escapePointer } from './json-body.ts';

interface ObjectSchema {
  properties?: Record<string, ObjectSchema>;
}

/** More than a caller reads; a body cannot have many more fields than that anyway. */
const ERRORS_MAX = 20;

/**
 * The 400 for a part of a request that does not fit its schema.
 * @param part `body`, `querystring`, `params` or `headers`.
 * @param schema What it does not fit.
 */
export function validationError(
  found: FastifySchemaValidationError[],
  part: string,
  schema: unknown,
): ServiceError {
  const wrongTypes = new Set(found.filter(isWrongType).map(({ instancePath }) => instancePath));
  // What is of the wrong type is none of the allowed values either, which need not be said.
  const told = found
    .filter((error) => isWrongType(error) || !wrongTypes.has(error.instancePath))
    // A misspelt field first: it is why another one is missing.
    .sort((one, other) => Number(isUnknownField(other)) - Number(isUnknownField(one)));
  return invalidRequest(
    told.slice(0, ERRORS_MAX).map((error) => fieldError(error, part, schema as ObjectSchema)),
  );
}

function isUnknownField({ keyword }: FastifySchemaValidationError): boolean {
  return keyword === 'additionalProperties';
}

function isWrongType({ keyword }: FastifySchemaValidationError): boolean {
  return keyword === 'type';
}

function fieldError(error: FastifySchemaValidationError, part: string, schema: ObjectSchema): FieldError {
  if (part === 'headers') return headerError(error);
  const { instancePath: path, params } = error;
  switch (error.keyword) {
    case 'additionalProperties': {
      const name = String(params.additionalProperty);
      return { path: `${path}/${escapePointer(name)}`, message: unknownField(name, part, path, schema) };
    }
    case 'required':
      return { path: `${path}/${escapePointer(String(params.missingProperty))}`, message: 'is required' };
    case 'type':
      return { path, message: wrongType([params.type].flat().map(String), path, part) };
    case 'enum':
      return { path, message: `must be one of ${[params.allowedValues].flat().join(', ')}` };
    case 'minLength':
      return { path, message: `must have at least ${characters(params.limit)}` };
    case 'maxLength':
      return { path, message: `must have at most ${characters(params.limit)}` };
    case 'minimum':
      return { path, message: `must be at least ${params.limit}` };
    case 'maximum':
      return { path, message: `must be at most ${params.limit}` };
    default:
      return { path, message: error.message ?? 'is not valid' };
  }
}

/** A header has no JSON Pointer: the message names it. What is in it is not repeated. */
function headerError({ instancePath, keyword, params }: FastifySchemaValidationError): FieldError {
  const name = instancePath.slice(1).replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
  const rules: Record<string, string> = {
    minLength: `must have at least ${characters(params.limit)}`,
    maxLength: `must have at most ${characters(params.limit)}`,
    pattern: 'must be visible ASCII characters without spaces, and be sent once',
  };
  return { path: '', message: `The header ${name} ${rules[keyword] ?? 'is not valid'}.` };
}

function unknownField(name: string, part: string, path: string, schema: ObjectSchema): string {
  const kind = part === 'querystring' ? 'query parameter' : 'field';
  const owner = path === '' ? 'this endpoint' : path.slice(1);
  const fields = fieldsAt(path, schema);
  if (fields.length === 0) return `is not a ${kind} of ${owner}: it has none`;
  const nearest = nearestName(name.slice(0, 100), fields);
  const remedy = nearest === undefined ? `it has ${fields.join(', ')}` : `did you mean ${nearest}?`;
  return `is not a ${kind} of ${owner}: ${remedy}`;
}

/** The names that the schema knows of the object at a JSON Pointer. */
function fieldsAt(path: string, schema: ObjectSchema): string[] {
  const names = path.split('/').slice(1);
  const found = names.reduce<ObjectSchema | undefined>((at, name) => at?.properties?.[name], schema);
  return Object.keys(found?.properties ?? {});
}

function characters(count: unknown): string {
  return count === 1 ? '1 character' : `${count} characters`;
}

function wrongType(expected: string[], path: string, part: string): string {
  if (path === '') return 'The body must be a JSON object.';
  if (part === 'querystring') {
    return expected[0] === 'integer' ? 'must be a whole number' : 'must be given once';
  }
  const orNull = expected.includes('null') ? ' or null' : '';
  switch (expected[0]) {
    case 'integer':
      return `must be a whole number${orNull}, without quotes`;
    case 'number':
      return `must be a number${orNull}, without quotes`;
    case 'string':
      return `must be a string${orNull}`;
    case 'object':
      return `must be an object${orNull}`;
    default:
      return `must be of type ${expected.join(' or ')}`;
  }
}
