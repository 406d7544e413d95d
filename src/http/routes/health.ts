import { Type } from 'typebox';
import type { App } from '../app.ts';

/** `GET /healthz` and `GET /readyz`. `isReady` is true while programs can be run. */
export function healthRoutes(app: App, options: { isReady: () => boolean }): void {
  app.route({
    method: 'GET',
    url: '/healthz',
    config: { access: 'open' },
    schema: {
      operationId: 'liveness',
      summary: 'Liveness: the process answers',
      response: { 200: Type.Object({ status: Type.Literal('ok') }) },
    },
    handler: async () => ({ status: 'ok' as const }),
  });

  app.route({
    method: 'GET',
    url: '/readyz',
    config: { access: 'open' },
    schema: {
      operationId: 'readiness',
      summary: 'Readiness: programs can be run',
      response: {
        200: Type.Object({ status: Type.Literal('ready') }),
        503: Type.Object(
          { status: Type.Literal('unavailable') },
          { description: 'The sandbox is not ready, or the service is shutting down.' },
        ),
      },
    },
    handler: async (_request, reply) => {
      if (options.isReady()) return { status: 'ready' as const };
      return reply.code(503).header('Retry-After', '1').send({ status: 'unavailable' });
    },
  });
}
