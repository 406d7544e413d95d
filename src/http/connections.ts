/**
 * What the server knows of each connection beyond what Fastify tells: when a caller hangs up, whether anybody is
 * still being answered, and how to answer what Node's parser refuses before it is a request at all.
 *
 * A caller has hung up when the socket closes before the answer was written. The socket is watched, not the
 * request or response: a request is closed once its body is read, and the response of a pipelined request has
 * no socket to close until it is its turn.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ServiceError } from '../shared/errors.ts';
import { newRequestId } from '../shared/ids.ts';
import type { Logger } from '../shared/logger.ts';
import { parserRefusal, rawAnswer } from './parser-refusal.ts';

/** A request and its answer. */
interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  hangUp: AbortController;
}

interface Connection {
  /** What has not been answered in full. */
  unanswered: Set<Exchange>;
  /** The newest exchange, answered or not. */
  newest: Exchange | null;
  /** True once the parser's refusal has been answered: whatever arrives now is thrown away. */
  refused: boolean;
}

/**
 * How long a refused connection is still read, in milliseconds. Closing it with bytes unread would reset it, and
 * the caller could lose the answer.
 */
const LINGER_MS = 1000;

export class Connections {
  readonly #logger: Logger;
  readonly #connections = new Map<Duplex, Connection>();
  #unanswered = 0;
  #onIdle: (() => void)[] = [];

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /**
   * Registers a request that is about to be handled. The signal is aborted if the caller hangs up before it
   * has been answered in full.
   */
  opened(request: IncomingMessage, response: ServerResponse): AbortSignal {
    const exchange: Exchange = { request, response, hangUp: new AbortController() };
    const connection = this.#of(request.socket);
    if (request.socket.destroyed) {
      exchange.hangUp.abort();
      return exchange.hangUp.signal;
    }
    connection.newest = exchange;
    connection.unanswered.add(exchange);
    this.#unanswered++;
    response.once('finish', () => {
      if (connection.unanswered.delete(exchange)) this.#settled();
    });
    return exchange.hangUp.signal;
  }

  /** Resolves when every request has been answered in full or given up by its caller. */
  idle(): Promise<void> {
    if (this.#unanswered === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  /** Answers what is not HTTP, too large, too slow or ambiguous, and closes the connection. */
  refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const connection = this.#of(socket);
    if (connection.refused) return;
    connection.refused = true;
    this.#answerLast(socket, parserRefusal(error), {
      parser_code: error.code,
      mayAnswer: mayAnswer(connection),
    });
  }

  /** Answers CONNECT, for which Node has no request that Fastify would see: nothing is at its address. */
  refuseTunnel(socket: Duplex): void {
    const { unanswered } = this.#of(socket);
    const refusal = new ServiceError('not_found', 'This is no proxy: CONNECT leads nowhere.');
    this.#answerLast(socket, refusal, { method: 'CONNECT', mayAnswer: unanswered.size === 0 });
  }

  #answerLast(
    socket: Duplex,
    refusal: ServiceError,
    { mayAnswer, ...fields }: { mayAnswer: boolean } & Record<string, unknown>,
  ): void {
    const requestId = newRequestId();
    this.#logger.info({ request_id: requestId, code: refusal.code, ...fields }, 'connection refused');
    if (!mayAnswer) {
      socket.destroy();
      return;
    }
    socket.end(rawAnswer(refusal, requestId));
    socket.resume();
    const linger = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => clearTimeout(linger));
  }

  #of(socket: Duplex): Connection {
    const known = this.#connections.get(socket);
    if (known !== undefined) return known;
    const connection: Connection = { unanswered: new Set(), newest: null, refused: false };
    if (!socket.destroyed) {
      this.#connections.set(socket, connection);
      socket.once('close', () => this.#closed(socket, connection));
    }
    return connection;
  }

  #closed(socket: Duplex, connection: Connection): void {
    this.#connections.delete(socket);
    for (const exchange of connection.unanswered) {
      connection.unanswered.delete(exchange);
      exchange.hangUp.abort();
      this.#settled();
    }
  }

  #settled(): void {
    this.#unanswered--;
    if (this.#unanswered > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}

/**
 * The parser's refusal is about the request whose body is arriving or, with none, about one that never came to be.
 * It may be answered unless an answer is still due to somebody before it, or the request has had its own already:
 * further bytes would be taken for another answer.
 */
function mayAnswer({ newest, unanswered }: Connection): boolean {
  if (newest === null || newest.request.complete) return unanswered.size === 0;
  return unanswered.size === 1 && unanswered.has(newest) && !newest.response.headersSent;
}
