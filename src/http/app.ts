/**
 * The HTTP server: the order of checks, the same for every route, and what every answer has. Each route adds its
 * own file of schemas and handler.
 *
 * The order is the contract's. In Fastify's terms: 404, 405, 401, 403, 429 and 415 in the first hook, before a byte
 * of the body is read; 413 and the syntax of a body in the body parser; 400 in the validator; the rest in handlers.
 */

import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { Type } from 'typebox';
import type { Idempotency } from '../idempotency/idempotency.ts';
import type { Key } from '../keys/key.ts';
import type { Work } from '../limits/key-work.ts';
import type { RequestLimits } from '../limits/request-limits.ts';
import type { AnsweredRequest } from '../metrics/metrics.ts';
import { type ErrorCode, invalidRequest, ServiceError } from '../shared/errors.ts';
import { newRequestId } from '../shared/ids.ts';
import { isRefusalCode, type RefusalRecorder } from '../usage/refusals.ts';
import type { Access, AccessControl } from './access.ts';
import { headersOfEveryAnswer } from './answer-headers.ts';
import { type BodyLimits, BodyReader } from './body-reader.ts';
import { Connections } from './connections.ts';
import { isSentAgain } from './idempotent.ts';
import { type JsonBody, parseJsonBody } from './json-body.ts';
import { checkMediaType } from './media-type.ts';
import { problemAnswer } from './problems.ts';
import { readQueryNumbers } from './query-numbers.ts';
import { logRequest } from './request-log.ts';
import { RouteTable } from './route-table.ts';
import { toServiceError } from './to-service-error.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call the route. A route that does not say so is an error at start. */
    access?: Access;
    /** What a request asks for that the limits of a key are for: a program that runs now, or waits. */
    limited?: 'execution' | 'job';
    /** Errors of its own that the OpenAPI document names, besides those of every route of its kind. */
    errors?: ErrorCode[];
  }
  interface FastifyRequest {
    /** The caller's key; null on open routes. */
    key: Key | null;
    /** What limits count and a revocation cancels; null on routes without limits, and for what was sent before. */
    work: Work | null;
    /** The body with the text it was parsed from; null where there is none. */
    jsonBody: JsonBody | null;
    /** SHA-256 of the body as it was sent, in hexadecimal; null for requests without an Idempotency-Key. */
    bodyHash: string | null;
    /** Aborted when the caller hangs up before the answer is written. */
    hangUp: AbortSignal;
    /** What a handler adds to the request's line in the log. */
    logFields: Record<string, unknown>;
  }
}

/** How long the server waits for callers, in milliseconds. */
export interface ServerTimeouts {
  /** From the first byte of a request to the end of its header fields. */
  headersMs: number;
  /** From the first byte of a request to the end of its body. */
  requestMs: number;
  /** Between two requests on a connection. */
  keepAliveMs: number;
  /** Without a byte in either direction, also while an answer is due. */
  idleMs: number;
  /** How often the first two are looked at. */
  checkMs: number;
}

export interface AppOptions {
  logger: FastifyBaseLogger;
  access: AccessControl;
  trustedProxies: string[];
  bodies: BodyLimits;
  timeouts: ServerTimeouts;
  /** True while the service ends: answers then close their connection. */
  closing: () => boolean;
  /** Told of every request once it has been answered or its caller has gone. */
  onAnswered: (answer: AnsweredRequest) => void;
  limits: RequestLimits;
  idempotency: Idempotency;
  /** Counts what keys are refused; callers are answered once that is stored. */
  refusals: RefusalRecorder & { refusalsStored(): Promise<void> };
}

export type App = ReturnType<typeof createApp>['app'];

/** The server without any route, and its connections. */
export function createApp(options: AppOptions) {
  const connections = new Connections(options.logger);
  const app = createServer(options, connections);
  // An expectation other than 100-continue may be ignored (RFC 9110, 10.1.1); Node's own 417 has no request id.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', (_request, socket) => connections.refuseTunnel(socket));
  addChecks(app, options, connections);
  addBodies(app, new BodyReader(options.bodies));
  app.setErrorHandler(async (error: Error, request, reply) => {
    // The caller has gone, and with them whoever could be answered.
    if (error === request.hangUp.reason) {
      request.work?.end();
      return reply.hijack();
    }
    const known = toServiceError(error, request.routeOptions.schema);
    request.logFields.code = known.code;
    if (known.code === 'internal') request.log.error({ err: known.cause ?? known }, known.message);
    await countRefusal(known.code, request, options.refusals);
    // Fastify closes the connection when it refuses a body; Node reads what is left of it and keeps the connection.
    if (reply.hasHeader('Connection')) reply.removeHeader('Connection');
    return sendProblem(reply, known);
  });
  return { app: app.withTypeProvider<TypeBoxTypeProvider>(), connections };
}

/** Refusals are those of the requests that limits are for; a key's other requests are not counted. */
async function countRefusal(
  code: ErrorCode,
  { key, routeOptions }: FastifyRequest,
  refusals: AppOptions['refusals'],
): Promise<void> {
  if (key === null || routeOptions.config.limited === undefined || !isRefusalCode(code)) return;
  refusals.refused(key.id, code);
  await refusals.refusalsStored();
}

function sendProblem(reply: FastifyReply, error: ServiceError): FastifyReply {
  const answer = problemAnswer(error, reply.request.id);
  return reply.code(answer.status).headers(answer.headers).send(answer.body);
}

function createServer(
  { logger, timeouts, trustedProxies, closing, onAnswered }: AppOptions,
  connections: Connections,
): FastifyInstance {
  return fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: newRequestId,
    trustProxy: trustedProxies.length > 0 ? trustedProxies : false,
    connectionTimeout: timeouts.idleMs,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    http: {
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: timeouts.checkMs,
      // Node's own answer to a missing Host header has no request id; `addChecks` gives ours.
      requireHostHeader: false,
    },
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => connections.refuse(error, socket),
    frameworkErrors: (_error, request, reply) => {
      // A path that cannot be decoded names nothing. No hook runs for it, so what hooks do is done here.
      request.logFields = {};
      request.hangUp = connections.opened(request.raw, reply.raw);
      logRequest(request, reply as unknown as FastifyReply, onAnswered);
      reply.headers(headersOfEveryAnswer(request.id));
      if (closing()) reply.header('Connection', 'close');
      sendProblem(reply as unknown as FastifyReply, notFound());
    },
    ajv: {
      // `allErrors` is bounded, because the number of a body's fields is (see json-body.ts).
      customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: true },
    },
  });
}

const NO_PARAMETERS = Type.Object({}, { additionalProperties: false });

function addChecks(app: FastifyInstance, options: AppOptions, connections: Connections): void {
  const routes = new RouteTable();
  app.decorateRequest('key', null);
  app.decorateRequest('work', null);
  app.decorateRequest('jsonBody', null);
  app.decorateRequest('bodyHash', null);
  app.decorateRequest('hangUp');
  app.decorateRequest('logFields');

  app.addHook('onRoute', (route) => {
    if (route.config?.access === undefined) throw new Error(`${route.url} does not say who may call it.`);
    routes.add(route.url, route.method);
    route.schema = { querystring: NO_PARAMETERS, ...route.schema };
  });

  app.addHook('onRequest', async (request, reply) => {
    request.logFields = {};
    request.hangUp = connections.opened(request.raw, reply.raw);
    logRequest(request, reply, options.onAnswered);
    reply.headers(headersOfEveryAnswer(request.id));
    if (request.is404 || hasEmptyParameter(request.params)) throw noSuchRoute(routes.methodsAt(request.url));
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1') {
      throw invalidRequest([{ path: '', message: 'The Host header is missing.' }]);
    }
    if (request.raw.rawHeaders.filter(isHost).length > 1) {
      throw invalidRequest([{ path: '', message: 'There is more than one Host header.' }]);
    }
    const { config, schema } = request.routeOptions;
    if (config.access !== 'open') {
      request.key = await options.access.check(request, config.access ?? 'admin');
    }
    if (request.key !== null && config.limited !== undefined) {
      if (await isSentAgain(request, options.idempotency)) options.limits.admitAgain(request.key);
      else if (config.limited === 'job') request.work = options.limits.admitJob(request.key);
      else request.work = options.limits.admit(request.key);
      await options.limits.saved(request.key);
    }
    if (schema?.body !== undefined) checkMediaType(request.headers);
  });

  app.addHook('preValidation', async (request) => {
    readQueryNumbers(request.query, request.routeOptions.schema?.querystring);
  });

  app.addHook('onSend', async (request, reply) => {
    // Before the answer is written, so that whoever has read it may send the next request.
    request.work?.end();
    if (options.closing()) reply.header('Connection', 'close');
    if (request.key !== null && request.routeOptions.config.limited !== undefined) {
      reply.headers(options.limits.headers(request.key));
    }
  });
}

/** Whether this is the name of a Host header, in a list of names and values in turn. */
function isHost(text: string, index: number): boolean {
  return index % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host';
}

/** Whether a part of the address that names something is empty, as in `/v1/keys/`. */
function hasEmptyParameter(params: unknown): boolean {
  return Object.values(params ?? {}).includes('');
}

function addBodies(app: FastifyInstance, bodyReader: BodyReader): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (request: FastifyRequest, payload: IncomingMessage) => {
    if (request.routeOptions.schema?.body === undefined) {
      // A route without a body asks for none; clients name a type for a DELETE all the same.
      payload.resume();
      return undefined;
    }
    const hash = request.headers['idempotency-key'] === undefined ? undefined : createHash('sha256');
    const bytes = await bodyReader.read(payload, request.headers['content-length'], hash);
    request.bodyHash = hash?.digest('hex') ?? null;
    request.jsonBody = parseJsonBody(bytes);
    return request.jsonBody.value;
  });
}

function noSuchRoute(methods: string[]): ServiceError {
  if (methods.length === 0) return notFound();
  const allowed = methods.join(', ');
  return new ServiceError('method_not_allowed', `This address allows ${allowed}.`, {
    headers: { Allow: allowed },
  });
}

function notFound(): ServiceError {
  return new ServiceError(
    'not_found',
    'There is nothing at this address; /openapi.json lists what there is.',
  );
}
