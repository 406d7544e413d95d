/**
 * Errors that a caller of the API may see. An error carries a code of the contract, a public text for the
 * caller (`detail`) and, apart from it, an internal text for the log (`message`).
 */

/** Every error code of the contract. `src/http/problems.ts` must give each of them a status. */
export const ERROR_CODES = [
  'invalid_request',
  'unauthorized',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'idempotency_conflict',
  'idempotency_mismatch',
  'payload_too_large',
  'unsupported_media_type',
  'headers_too_large',
  'rate_limited',
  'concurrency_limited',
  'quota_exceeded',
  'internal',
  'overloaded',
  'shutting_down',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** One thing wrong with a request. */
export interface FieldError {
  /** JSON Pointer into the body; for a query parameter, its name behind a slash. */
  path: string;
  /** What is wrong and how to put it right. */
  message: string;
}

export interface ServiceErrorOptions {
  /** Text for the log where it says more than the caller may read. */
  internal?: string;
  /** Only for `invalid_request`. */
  errors?: FieldError[];
  /** Of a refusal that lifts at a time that is known; other 429 and 503 say 1. */
  retryAfterSeconds?: number;
  /** Further headers of the answer. */
  headers?: Record<string, string>;
  cause?: unknown;
}

/** An error with an answer of its own in the contract. Anything else that is thrown is answered 500 `internal`. */
export class ServiceError extends Error {
  override name = 'ServiceError';
  readonly code: ErrorCode;
  /** The text that the caller reads. */
  readonly detail: string;
  readonly errors: FieldError[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, detail: string, options: ServiceErrorOptions = {}) {
    super(options.internal ?? detail, { cause: options.cause });
    this.code = code;
    this.detail = detail;
    this.errors = options.errors;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.headers = options.headers ?? {};
  }
}

/** A request that says something the contract does not allow: 400, naming each place. */
export function invalidRequest(errors: FieldError[]): ServiceError {
  const first = errors[0];
  const where = first?.path ? `${first.path}: ` : '';
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return new ServiceError(
    'invalid_request',
    `${where}${first?.message ?? 'The request is not valid.'}${more}`,
    {
      errors,
    },
  );
}

/** An operator's mistake that stops a command: printed without a stack, exit code 1. */
export class OperatorError extends Error {
  override name = 'OperatorError';
}

/** Something wrong with how a command was called: nothing was done. Exit code 2. */
export class ArgumentError extends OperatorError {
  override name = 'ArgumentError';
}
