import { type Static, Type } from 'typebox';
import { keyResource } from '../../keys/key-resource.ts';
import type { LastUse } from '../../keys/last-use.ts';
import type { RequestLimits } from '../../limits/request-limits.ts';
import type { Jobs } from '../../runs/jobs/jobs.ts';
import type { Clock } from '../../shared/clock.ts';
import type { App } from '../app.ts';
import { callersKey } from '../caller.ts';
import { keyFields } from '../key-schema.ts';
import { nullable } from '../nullable.ts';

const meSchema = Type.Object(
  {
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
        queued_jobs: nullable(Type.Integer({ description: 'Jobs that may be queued beside those of now.' })),
      },
      { description: 'What is left of each limit; null where there is none.' },
    ),
  },
  { description: 'The key that asks.' },
);

export interface MeRouteOptions {
  limits: RequestLimits;
  jobs: Jobs;
  lastUse: LastUse;
  clock: Clock;
}

/** `GET /v1/me`: the key that asks, its limits, and what is left of each. */
export function meRoute(app: App, { limits, jobs, lastUse, clock }: MeRouteOptions): void {
  app.route({
    method: 'GET',
    url: '/v1/me',
    config: { access: 'key' },
    schema: {
      operationId: 'me',
      summary: 'The key that asks, its limits, and what is left of each',
      response: { 200: meSchema },
    },
    handler: async (request): Promise<Static<typeof meSchema>> => {
      const key = callersKey(request);
      const remaining = { ...limits.remaining(key), queued_jobs: await jobs.queueable(key) };
      return { ...keyResource(lastUse.applied(key), clock.now()), remaining };
    },
  });
}
