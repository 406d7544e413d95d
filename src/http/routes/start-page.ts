import { createHash } from 'node:crypto';
import type { App } from '../app.ts';
import { STYLE, startPage } from './start-page-html.ts';

/** Nothing but the page's own style is loaded or run; it has no script at all. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

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
      reply.headers({
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Security-Policy': CONTENT_SECURITY_POLICY,
        'Referrer-Policy': 'no-referrer',
        'Cache-Control': 'no-cache',
      });
      return reply.send(startPage({ origin, version: options.version }));
    },
  });
}
