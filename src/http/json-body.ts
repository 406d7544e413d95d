/** From the bytes of a body to its JSON value, or to a 400 that says what to change. */

import { invalidRequest } from '../shared/errors.ts';
import { scanJson } from './json-scan.ts';

/** A parsed body. */
export interface JsonBody {
  value: unknown;
  /** The text of each member of the top-level object, exactly as it was sent. */
  members: Map<string, string>;
  /** Size of the body as it was sent. */
  byteLength: number;
}

/** Deep enough for any data; Python's own JSON parser gives up at about a thousand. */
const DEPTH_MAX = 200;

/** No request has a tenth as many. */
const MEMBERS_MAX = 100;

/**
 * Parses `bytes` as JSON in UTF-8. A byte order mark is dropped.
 * @throws ServiceError `invalid_request`.
 */
export function parseJsonBody(bytes: Uint8Array): JsonBody {
  if (bytes.length === 0) throw bodyError('The body is empty: send a JSON object.');
  const text = decodeUtf8(bytes);
  const { members, refused } = scanJson(text, { depthMax: DEPTH_MAX, membersMax: MEMBERS_MAX });
  if (refused?.reason === 'too many members') {
    throw bodyError(`The body has more than ${MEMBERS_MAX} fields.`);
  }
  if (refused?.reason === 'too deep') {
    const path = refused.member === null ? '' : `/${escapePointer(refused.member)}`;
    const message = `Arrays and objects are nested more than ${DEPTH_MAX} deep: send flatter data.`;
    throw invalidRequest([{ path, message }]);
  }
  return { value: parseText(text), members, byteLength: bytes.length };
}

/** One step of a JSON Pointer (RFC 6901). */
export function escapePointer(step: string): string {
  return step.replaceAll('~', '~0').replaceAll('/', '~1').toWellFormed();
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw bodyError('The body is not valid UTF-8: encode it as UTF-8.');
  }
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw bodyError(`The body is not valid JSON: ${(error as Error).message.toWellFormed()}.`);
  }
}

function bodyError(message: string) {
  return invalidRequest([{ path: '', message }]);
}
