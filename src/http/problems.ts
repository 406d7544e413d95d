/** The error catalogue: what each code of the contract looks like on the wire (RFC 9457). */

import { type ErrorCode, type FieldError, ServiceError } from '../shared/errors.ts';

/** Status and title of every code; a code that is missing here does not compile. */
export const PROBLEMS: Record<ErrorCode, { status: number; title: string }> = {
  invalid_request: { status: 400, title: 'Bad Request' },
  unauthorized: { status: 401, title: 'Unauthorized' },
  forbidden: { status: 403, title: 'Forbidden' },
  not_found: { status: 404, title: 'Not Found' },
  method_not_allowed: { status: 405, title: 'Method Not Allowed' },
  request_timeout: { status: 408, title: 'Request Timeout' },
  idempotency_conflict: { status: 409, title: 'Conflict' },
  payload_too_large: { status: 413, title: 'Content Too Large' },
  unsupported_media_type: { status: 415, title: 'Unsupported Media Type' },
  idempotency_mismatch: { status: 422, title: 'Unprocessable Content' },
  rate_limited: { status: 429, title: 'Too Many Requests' },
  concurrency_limited: { status: 429, title: 'Too Many Requests' },
  quota_exceeded: { status: 429, title: 'Too Many Requests' },
  headers_too_large: { status: 431, title: 'Request Header Fields Too Large' },
  internal: { status: 500, title: 'Internal Server Error' },
  overloaded: { status: 503, title: 'Service Unavailable' },
  shutting_down: { status: 503, title: 'Service Unavailable' },
};

/** The media type of every error. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/** `Retry-After` of a refusal that knows no better: it lifts as soon as some run ends. */
const RETRY_AFTER_SECONDS = 1;

/** The body of an error, as the contract has it. */
export interface Problem {
  type: 'about:blank';
  title: string;
  status: number;
  code: ErrorCode;
  detail: string;
  request_id: string;
  errors?: FieldError[];
}

/** An error ready to be written. */
export interface ProblemAnswer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

/** The answer to an error: status, headers of its own, body. */
export function problemAnswer(error: ServiceError, requestId: string): ProblemAnswer {
  const { status, title } = PROBLEMS[error.code];
  const problem: Problem = {
    type: 'about:blank',
    title,
    status,
    code: error.code,
    detail: error.detail,
    request_id: requestId,
    ...(error.errors === undefined ? {} : { errors: error.errors }),
  };
  const headers: Record<string, string> = { 'Content-Type': PROBLEM_MEDIA_TYPE, ...error.headers };
  const refusedForNow = status === 429 || status === 503;
  const retryAfterSeconds = error.retryAfterSeconds ?? (refusedForNow ? RETRY_AFTER_SECONDS : undefined);
  if (retryAfterSeconds !== undefined) headers['Retry-After'] = String(retryAfterSeconds);
  return { status, headers, body: Buffer.from(JSON.stringify(problem)) };
}

/** What a caller is told of an error that is nobody's but ours; the log has the rest. */
export function internalError(cause: unknown): ServiceError {
  const internal = cause instanceof Error ? cause.message : String(cause);
  return new ServiceError(
    'internal',
    'The service failed. Nothing was charged and the request can be sent again. The request id helps its operator to find the cause.',
    { internal, cause },
  );
}
