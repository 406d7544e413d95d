import type { Metrics } from '../../metrics/metrics.ts';
import type { App } from '../app.ts';

/** `GET /metrics`: for Prometheus, which sends an admin key as a bearer token. */
export function metricsRoute(app: App, { metrics }: { metrics: Metrics }): void {
  app.route({
    method: 'GET',
    url: '/metrics',
    config: { access: 'admin' },
    schema: {
      operationId: 'metrics',
      summary: "Metrics in Prometheus's text format",
      response: {
        200: { description: 'The metrics.', content: { 'text/plain': { schema: { type: 'string' } } } },
      },
    },
    handler: async (_request, reply) => {
      const text = await metrics.text();
      return reply.header('Content-Type', metrics.contentType).send(text);
    },
  });
}
