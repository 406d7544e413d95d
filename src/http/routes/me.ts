import { type Static, Type } from 'typebox';
import { keyResource } from '../../keys/key-resource.ts';
import type { LastUse } from '../../keys/last-use.ts';
import type { RequestLimits } from '../../limits/request-limits.ts';
import type { Clock } from '../../shared/clock.ts';
import type { App } from '../app.ts';
import { keyFields } from '../key-schema.ts';
import { nullable } from '../nullable.ts';

const meSchema = Type.Object({
  ...keyFields,
  remaining: Type.Object(
    {
      requests: nullable(Type.Integer({ description: 'Requests that may be sent at once.' })),
      concurrency: nullable(
        Type.Integer({ description: 'Executions that may be begun beside those of now.' }),
      ),
      cpu_seconds: nullable(
        Type.Number({ description: 'Processor time that is left of today, a day of UTC.' }),
      ),
    },
    { description: 'What is left of each limit; null where there is none.' },
  ),
});

export interface MeRouteOptions {
  limits: RequestLimits;
  lastUse: LastUse;
  clock: Clock;
}

/** `GET /v1/me`: the key that asks, its limits, and what is left of each. */
export function meRoute(app: App, { limits, lastUse, clock }: MeRouteOptions): void {
  app.route({
    method: 'GET',
    url: '/v1/me',
    config: { access: 'key' },
    schema: {
      operationId: 'me',
      summary: 'The key that asks, its limits, and what is left of each',
      response: { 200: meSchema },
    },
    handler: async ({ key }): Promise<Static<typeof meSchema>> => {
      if (key === null) throw new Error('A request to a route that is not open has a key.');
      return { ...keyResource(lastUse.applied(key), clock.now()), remaining: limits.remaining(key) };
    },
  });
}
