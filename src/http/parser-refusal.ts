/** Answers to what Node's HTTP parser refuses; no request object exists for it, so they are written by hand. */

import { invalidRequest, ServiceError } from '../shared/errors.ts';
import { headersOfEveryAnswer } from './answer-headers.ts';
import { PROBLEMS, problemAnswer } from './problems.ts';

/** The contract's error for an error of Node's HTTP parser. */
export function parserRefusal(error: NodeJS.ErrnoException): ServiceError {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ServiceError('request_timeout', 'The request did not arrive in time.');
    case 'HPE_HEADER_OVERFLOW':
      return new ServiceError('headers_too_large', 'The header fields are larger than 16 KiB.');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ServiceError('payload_too_large', 'The chunk extensions are too large.');
    default:
      return invalidRequest([{ path: '', message: 'The request is not valid HTTP/1.1.' }]);
  }
}

/** A whole HTTP/1.1 answer that closes the connection. */
export function rawAnswer(error: ServiceError, requestId: string): Buffer {
  const answer = problemAnswer(error, requestId);
  const headers = {
    ...answer.headers,
    'Content-Length': answer.body.length,
    ...headersOfEveryAnswer(requestId),
    Date: new Date().toUTCString(),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${answer.status} ${PROBLEMS[error.code].title}\r\n${lines.join('')}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), answer.body]);
}
