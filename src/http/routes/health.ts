import { Type } from 'typebox';
import { ServiceError } from '../../shared/errors.ts';
import type { App } from '../app.ts';

/** Whether programs can be run, and if not, why. */
export type Readiness = 'ready' | 'unavailable' | 'shutting down';

/** `GET /healthz` and `GET /readyz`. */
export function healthRoutes(app: App, options: { readiness: () => Readiness }): void {
  app.route({
    method: 'GET',
    url: '/healthz',
    config: { access: 'open' },
    schema: {
      operationId: 'liveness',
      summary: 'Liveness: the process answers',
      response: { 200: Type.Object({ status: Type.Literal('ok') }, { description: 'It answers.' }) },
    },
    handler: async () => ({ status: 'ok' as const }),
  });

  app.route({
    method: 'GET',
    url: '/readyz',
    config: { access: 'open', errors: ['overloaded', 'shutting_down'] },
    schema: {
      operationId: 'readiness',
      summary: 'Readiness: programs can be run',
      response: { 200: Type.Object({ status: Type.Literal('ready') }, { description: 'Send them.' }) },
    },
    handler: async () => {
      switch (options.readiness()) {
        case 'ready':
          return { status: 'ready' as const };
        case 'unavailable':
          throw new ServiceError('overloaded', 'Programs cannot be run at the moment; the log says why.');
        case 'shutting down':
          throw new ServiceError('shutting_down', 'The service is shutting down.');
      }
    },
  });
}
