import { Readable } from 'node:stream';
import { type Static, Type } from 'typebox';
import type { Key } from '../../keys/key.ts';
import type { Clock } from '../../shared/clock.ts';
import { type FieldError, invalidRequest, ServiceError } from '../../shared/errors.ts';
import { GROUPINGS, type Grouping, parseRange } from '../../usage/range.ts';
import type { UsageReports, UsageSelection } from '../../usage/report.ts';
import { usageAsCsv, usageAsJson } from '../../usage/written.ts';
import { preferredType } from '../accept.ts';
import type { App } from '../app.ts';
import { callersKey } from '../caller.ts';
import { usageSchema } from '../usage-schema.ts';

export interface UsageRouteOptions {
  reports: UsageReports;
  clock: Clock;
}

const time = (description: string) => Type.String({ description, examples: ['2026-01-31T12:00:00Z'] });

const querySchema = Type.Object(
  {
    from: Type.Optional(
      time('First moment, a date or an RFC 3339 time, floored to the hour. By default 30 days before `to`.'),
    ),
    to: Type.Optional(
      time(
        'First moment that is left out, floored to the hour. By default the end of the hour that is running.',
      ),
    ),
    group_by: Type.Optional(Type.Unsafe<Grouping>({ type: 'string', enum: GROUPINGS, default: 'day' })),
    key_id: Type.Optional(Type.String({ minLength: 1, description: 'Only of this key.' })),
    team: Type.Optional(
      Type.String({ minLength: 1, description: 'Only of keys that belong to this team today.' }),
    ),
  },
  { additionalProperties: false },
);

type UsageParameters = Static<typeof querySchema>;

/** `GET /v1/usage`: what keys have used, as JSON or CSV. An admin key sees every key's usage, others their own. */
export function usageRoute(app: App, { reports, clock }: UsageRouteOptions): void {
  app.route({
    method: 'GET',
    url: '/v1/usage',
    config: { access: 'key', errors: ['forbidden'] },
    schema: {
      operationId: 'usage',
      summary: 'What keys have used, by hour, day or month (UTC)',
      description:
        'The usage of the key that asks; to an admin key, of every key. Periods without usage are left out. As CSV with `Accept: text/csv`, without totals.',
      querystring: querySchema,
      response: {
        200: {
          description: 'Usage by period and key, oldest period first.',
          content: {
            'application/json': { schema: Type.Unsafe<Readable>(usageSchema) },
            'text/csv': { schema: Type.Unsafe<Readable>({ type: 'string' }) },
          },
        },
      },
    },
    // 403 comes before 400.
    preValidation: async (request) => checkWhose(request.query as UsageParameters, callersKey(request)),
    handler: async (request, reply) => {
      const selection = selectionOf(request.query, callersKey(request), clock.now());
      const type = preferredType(request.headers.accept, ['application/json', 'text/csv']);
      const written = type === 'text/csv' ? usageAsCsv : usageAsJson;
      const text = written(reports, selection);
      // Read before the answer begins, so that a fault is still an error of its own.
      const first = await text.next();
      reply.header('Vary', 'Accept').header('Content-Type', `${type}; charset=utf-8`);
      if (type === 'text/csv') {
        reply.header('Content-Disposition', 'attachment; filename="codecell-usage.csv"');
      }
      return reply.send(Readable.from(startingWith(first, text)));
    },
  });
}

/** @throws ServiceError `forbidden` when a key that is no admin's asks for usage of others. */
function checkWhose({ key_id: keyId, team }: UsageParameters, key: Key): void {
  if (key.role === 'admin') return;
  if ((keyId ?? key.id) !== key.id || (team ?? key.team) !== key.team) {
    throw new ServiceError('forbidden', 'Usage of other keys needs an admin key.');
  }
}

/** @throws ServiceError `invalid_request` for a range that is none. */
function selectionOf(parameters: UsageParameters, key: Key, nowMs: number): UsageSelection {
  const { from, to, group_by: groupBy = 'day', key_id, team } = parameters;
  const errors: FieldError[] = [];
  const range = parseRange({ from, to }, nowMs, errors);
  if (errors.length > 0) throw invalidRequest(errors);
  return key.role === 'admin'
    ? { ...range, groupBy, keyId: key_id, team }
    : { ...range, groupBy, keyId: key.id };
}

async function* startingWith(
  first: IteratorResult<string>,
  rest: AsyncGenerator<string>,
): AsyncGenerator<string> {
  if (!first.done) yield first.value;
  yield* rest;
}
