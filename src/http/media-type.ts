import type { IncomingHttpHeaders } from 'node:http';
import { ServiceError } from '../shared/errors.ts';

/**
 * Checks that a body, if there is one, is `application/json` in UTF-8, sent as it is.
 * @throws ServiceError `unsupported_media_type`.
 */
export function checkMediaType(headers: IncomingHttpHeaders): void {
  if (headers['content-encoding'] !== undefined) {
    throw unsupported('The body must be sent without a Content-Encoding.');
  }
  const transferEncoding = headers['transfer-encoding'];
  if (transferEncoding !== undefined && transferEncoding.trim().toLowerCase() !== 'chunked') {
    throw unsupported('The only Transfer-Encoding is "chunked".');
  }
  const contentType = headers['content-type'];
  if (contentType === undefined) {
    const hasBody = transferEncoding !== undefined || Number(headers['content-length'] ?? 0) > 0;
    if (hasBody) throw unsupported('The Content-Type header is missing: send "application/json".');
    return;
  }
  const [mediaType = '', ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  if (mediaType !== 'application/json') throw unsupported('The Content-Type must be "application/json".');
  for (const parameter of parameters) {
    const [name, value = ''] = parameter.split('=', 2);
    if (name?.trim() === 'charset' && !/^"?utf-?8"?$/.test(value.trim())) {
      throw unsupported('The charset must be utf-8.');
    }
  }
}

function unsupported(detail: string): ServiceError {
  return new ServiceError('unsupported_media_type', detail);
}
