/** The OpenAPI 3.1 document, made from the schemas that requests are checked and answers are written by. */

import swagger from '@fastify/swagger';
import type { FastifySchema, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { ERROR_CODES, type ErrorCode } from '../shared/errors.ts';
import type { Access } from './access.ts';
import type { App } from './app.ts';
import { idempotencyHeaders, replayHeaders } from './idempotent.ts';
import { PROBLEM_MEDIA_TYPE, PROBLEMS } from './problems.ts';
import { runSchema } from './run-schema.ts';

const problemSchema = Type.Object(
  {
    type: Type.Literal('about:blank'),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.Unsafe<ErrorCode>({
      type: 'string',
      enum: ERROR_CODES,
      description: 'What programs should look at.',
    }),
    detail: Type.String({ description: 'For people; its wording may change.' }),
    request_id: Type.String({ description: 'As in the X-Request-Id header.' }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({ description: 'JSON Pointer to the field; empty for the whole request.' }),
          message: Type.String(),
        }),
        { description: 'Only with 400.' },
      ),
    ),
  },
  {
    $id: 'Problem',
    description: 'An error (RFC 9457).',
    examples: [
      {
        type: 'about:blank',
        title: 'Bad Request',
        status: 400,
        code: 'invalid_request',
        detail: '/timeout_ms: must be at most 30000',
        request_id: 'req_0199f3a2-6c1e-7d4b-9a53-2f8e5b1c7d90',
        errors: [{ path: '/timeout_ms', message: 'must be at most 30000' }],
      },
    ],
  },
);

/** Errors that every route of an access may answer with. */
const COMMON_ERRORS: Record<Access, ErrorCode[]> = {
  open: ['invalid_request', 'request_timeout', 'headers_too_large', 'internal'],
  key: [
    'invalid_request',
    'unauthorized',
    'request_timeout',
    'rate_limited',
    'headers_too_large',
    'internal',
  ],
  admin: [
    'invalid_request',
    'unauthorized',
    'forbidden',
    'request_timeout',
    'rate_limited',
    'headers_too_large',
    'internal',
  ],
};

/** Registers the shared schemas and what makes the document; before the routes. */
export async function addOpenApi(app: App, version: string): Promise<void> {
  app.addSchema(runSchema);
  app.addSchema(problemSchema);
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Codecell',
        version,
        description: 'Runs untrusted Python and answers with everything that came of it.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'Authorization: Bearer KEY' },
          apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        },
      },
    },
    refResolver: { buildLocalReference: (json) => String(json.$id) },
    transform: ({ schema, url, route }) => ({ schema: describedSchema(schema, route), url }),
  });
}

/** `GET /openapi.json`. */
export function openApiRoute(app: App): void {
  let text: string | undefined;
  app.route({
    method: 'GET',
    url: '/openapi.json',
    config: { access: 'open' },
    schema: { operationId: 'openapi', summary: 'This document' },
    handler: async (_request, reply) => {
      // Made at the first request: it is not needed to serve programs, and takes a while.
      text ??= JSON.stringify(app.swagger());
      return reply.type('application/json; charset=utf-8').send(text);
    },
  });
}

/** The schema of a route with what follows from its access: security and errors. */
function describedSchema(schema: FastifySchema | undefined, route: RouteOptions): FastifySchema {
  const access = route.config?.access ?? 'admin';
  const codes = [...COMMON_ERRORS[access], ...(route.config?.errors ?? [])];
  const byStatus = Map.groupBy(codes, (code) => PROBLEMS[code].status);
  const problems = [...byStatus].map(
    ([status, sameStatus]) => [status, problemResponse(sameStatus)] as const,
  );
  const answers = (schema?.response as object | undefined) ?? { 200: { description: 'The document.' } };
  const response = Object.entries({ ...Object.fromEntries(problems), ...answers }).map(([status, answer]) => [
    status,
    { ...answer, headers: headersOf(Number(status), schema, route) },
  ]);
  return {
    ...schema,
    security: access === 'open' ? [] : [{ bearer: [] }, { apiKey: [] }],
    response: Object.fromEntries(response),
  } as FastifySchema;
}

const text = (description: string) => Type.String({ description });

/** Header fields of an answer that mean something to callers. */
function headersOf(status: number, schema: FastifySchema | undefined, route: RouteOptions) {
  const isLimited = route.config?.limited !== undefined;
  return {
    'X-Request-Id': text('Of this answer; the log has it too.'),
    ...(status === 202 && { Location: text('Where to fetch the job.') }),
    ...(status === 401 && { 'WWW-Authenticate': text('`Bearer`.') }),
    ...([409, 429, 503].includes(status) && { 'Retry-After': text('Seconds until it can be sent again.') }),
    ...(isLimited && {
      'RateLimit-Policy': text(
        'The key\'s limits, where it has any: `"requests";q=20;w=10`, and `"cpu"` likewise.',
      ),
      RateLimit: text('What is left of them, and when more comes: `"requests";r=19;t=0`.'),
    }),
    ...(schema?.headers === idempotencyHeaders && status < 300 && replayHeaders),
  };
}

function problemResponse(codes: ErrorCode[]) {
  return {
    description: codes.map((code) => `\`${code}\``).join(' or '),
    content: { [PROBLEM_MEDIA_TYPE]: { schema: { $ref: 'Problem#' } } },
  };
}
