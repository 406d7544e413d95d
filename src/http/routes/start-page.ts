import type { App } from '../app.ts';
import { PAGE_HEADERS } from '../html-page.ts';
import { startPage } from './start-page-html.ts';

/** `GET /`: what this is, and the line that runs a first program. */
export function startPageRoute(app: App, options: { version: string }): void {
  app.route({
    method: 'GET',
    url: '/',
    config: { access: 'open' },
    schema: { hide: true },
    handler: async (request, reply) => {
      const origin = /^[A-Za-z0-9.:[\]-]{1,255}$/.test(request.host)
        ? `${request.protocol === 'https' ? 'https' : 'http'}://${request.host}`
        : 'http://127.0.0.1:8000';
      return reply.headers(PAGE_HEADERS).send(startPage({ origin, version: options.version }));
    },
  });
}
