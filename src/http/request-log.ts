import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AnsweredRequest } from '../metrics/metrics.ts';
import { clientAddress } from './access.ts';

/**
 * Writes one line for a request once its answer has been written or its caller has gone. It holds no body, no query,
 * no header and no key. Requests to open routes that went well are written at debug level, since probes send many.
 * `onAnswered` is told what the metrics count.
 */
export function logRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  onAnswered: (answer: AnsweredRequest) => void,
): void {
  const startMs = performance.now();
  // Taken now, because a connection that has closed no longer knows its peer.
  const address = clientAddress(request);
  reply.raw.once('close', () => {
    const answered = reply.raw.writableFinished;
    const { method } = request;
    const route = request.is404 ? null : (request.routeOptions.url ?? null);
    const status = answered ? reply.raw.statusCode : null;
    const durationMs = performance.now() - startMs;
    onAnswered({ method, route, status, durationMs });
    const fields = {
      method,
      route: route ?? printable(request.url),
      status,
      duration_ms: Math.round(durationMs * 10) / 10,
      address,
      key_id: request.key?.id ?? null,
      ...request.logFields,
    };
    const message = answered ? 'request answered' : 'caller hung up';
    const routine = answered && reply.raw.statusCode < 400 && request.key === null;
    if (routine) request.log.debug(fields, message);
    else request.log.info(fields, message);
  });
}

/** A path from outside, made harmless for whoever reads the log in a terminal, without its query. */
function printable(url: string): string {
  return url
    .replace(/\?.*$/s, '')
    .slice(0, 200)
    .replace(/[^\x21-\x7e]/g, '?');
}
