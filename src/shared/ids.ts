import { v7 as uuidv7 } from 'uuid';

/** `run_` and a UUIDv7: unique, and sorted by the time it was made. */
export function newRunId(): string {
  return `run_${uuidv7()}`;
}

/** `key_` and a UUIDv7. It names a key without revealing anything of its secret. */
export function newKeyId(): string {
  return `key_${uuidv7()}`;
}

/** `req_` and a UUIDv7: sent as `X-Request-Id` and written in every log line of the request. */
export function newRequestId(): string {
  return `req_${uuidv7()}`;
}
