import type { App } from '../app.ts';
import { PAGE_HEADERS } from '../html-page.ts';
import { docsPage, type OpenApiDocument } from './docs-page-html.ts';

/** `GET /docs`: the OpenAPI document, for people. */
export function docsPageRoute(app: App): void {
  let html: string | undefined;
  app.route({
    method: 'GET',
    url: '/docs',
    config: { access: 'open' },
    schema: { hide: true },
    handler: async (_request, reply) => {
      // Made at the first request, as /openapi.json is. Its type allows for what ours has none of, such as references to paths.
      html ??= docsPage(app.swagger() as unknown as OpenApiDocument);
      return reply.headers(PAGE_HEADERS).send(html);
    },
  });
}
