import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RUN_STATUSES } from '../../src/runs/run.ts';
import { ERROR_CODES } from '../../src/shared/errors.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ settings: { MEMORY_MB_MAX: '256' } });
});
afterAll(() => service.stop());

type Json = { [name: string]: Json } & Json[];

async function json(path: string, key?: string): Promise<Json> {
  const answer = await service.send(path, key === undefined ? {} : { headers: { 'X-API-Key': key } });
  expect(answer.status).toBe(200);
  return JSON.parse(answer.text) as Json;
}

describe('GET /v1/runtime', () => {
  it('names the Python that runs, and packages that can be imported in those versions', async () => {
    const { python, packages } = (await json('/v1/runtime', service.adminKey)) as unknown as {
      python: { version: string };
      packages: { name: string; version: string }[];
    };
    const { stdout } = await service.execute({
      code: `import platform, importlib.metadata as metadata
print(platform.python_version())
for name in inputs['names']: print(metadata.version(name))`,
      inputs: { names: packages.map(({ name }) => name) },
    });
    expect(stdout.trim().split('\n')).toEqual([python.version, ...packages.map(({ version }) => version)]);
    const names = packages.map(({ name }) => name);
    for (const name of ['numpy', 'pandas', 'matplotlib', 'scipy', 'scikit-learn', 'sympy', 'networkx']) {
      expect(names).toContain(name);
    }
  });

  it('names the limits of the key that asks, and rules', async () => {
    const { limits, rules } = await json('/v1/runtime', service.adminKey);
    expect(limits).toMatchObject({
      timeout_ms: { min: 1, max: 30_000, default: 30_000 },
      memory_mb: { min: 32, max: 256, default: 256 },
      code_bytes: 1_048_576,
    });
    expect(rules?.length).toBeGreaterThan(5);
    const key = await service.addKey({ limits: { max_timeout_ms: 5000, max_memory_mb: 64 } });
    expect((await json('/v1/runtime', key)).limits).toMatchObject({
      timeout_ms: { min: 1, max: 5000, default: 5000 },
      memory_mb: { min: 32, max: 64, default: 64 },
    });
  });
});

describe('GET /openapi.json', () => {
  it('is OpenAPI 3.1 of everything there is', async () => {
    const document = await json('/openapi.json');
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths ?? {}).sort()).toEqual([
      '/healthz',
      '/metrics',
      '/openapi.json',
      '/readyz',
      '/v1/execute',
      '/v1/jobs',
      '/v1/jobs/{id}',
      '/v1/keys',
      '/v1/keys/{id}',
      '/v1/keys/{id}/rotate',
      '/v1/me',
      '/v1/runtime',
      '/v1/usage',
    ]);
    expect(document.components?.securitySchemes).toMatchObject({
      bearer: { type: 'http', scheme: 'bearer' },
      apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
    });
  });

  it('describes the Run, every status and every error code', async () => {
    const { schemas } = (await json('/openapi.json')).components as unknown as { schemas: Json };
    expect(schemas.Run?.properties?.status?.enum).toEqual(RUN_STATUSES);
    expect(schemas.Problem?.properties?.code?.enum).toEqual(ERROR_CODES);
    const run = await service.execute({ code: 'print(1)' });
    expect(Object.keys(schemas.Run?.properties ?? {}).sort()).toEqual(Object.keys(run).sort());
    expect([...(schemas.Run?.required ?? [])].sort()).toEqual(Object.keys(run).sort());
  });

  it('refers only to what it has', async () => {
    const document = await json('/openapi.json');
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]*)"/g)].map(
      ([, path]) => path ?? '',
    );
    expect(references.length).toBeGreaterThan(3);
    for (const path of references) {
      const target = path.split('/').reduce<Json | undefined>((node, step) => node?.[step], document);
      expect([path, target === undefined]).toEqual([path, false]);
    }
    expect(JSON.stringify(document)).not.toMatch(/"\$ref":"[^#]/);
  });

  it('says of every call who may make it and how it fails', async () => {
    const { paths } = await json('/openapi.json');
    const execute = paths?.['/v1/execute']?.post;
    expect(execute?.security).toEqual([{ bearer: [] }, { apiKey: [] }]);
    expect(Object.keys(execute?.responses ?? {})).toEqual([
      '200',
      '400',
      '401',
      '408',
      '409',
      '413',
      '415',
      '422',
      '429',
      '431',
      '500',
      '503',
    ]);
    expect(execute?.responses?.['503']?.content?.['application/problem+json']?.schema).toEqual({
      $ref: '#/components/schemas/Problem',
    });
    expect(execute?.requestBody?.content?.['application/json']?.schema?.properties?.memory_mb?.maximum).toBe(
      256,
    );
    expect(paths?.['/healthz']?.get?.security).toEqual([]);
  });

  it('names the header fields that answers have', async () => {
    const { paths } = await json('/openapi.json');
    const headers = (path: string, status: string) =>
      Object.keys(paths?.[path]?.post?.responses?.[status]?.headers ?? {});
    expect(headers('/v1/jobs', '202')).toEqual(
      expect.arrayContaining(['Location', 'RateLimit', 'RateLimit-Policy', 'Idempotent-Replay']),
    );
    expect(headers('/v1/execute', '401')).toContain('WWW-Authenticate');
    for (const status of ['409', '429', '503'])
      expect(headers('/v1/execute', status)).toContain('Retry-After');
    expect(headers('/v1/keys', '201')).toEqual(['X-Request-Id']);
  });

  it('has examples that the service accepts', async () => {
    const { paths } = await json('/openapi.json');
    const content = paths?.['/v1/execute']?.post?.requestBody?.content?.['application/json'];
    const examples = (content?.schema?.examples ?? Object.values(content?.examples ?? {})) as unknown[];
    expect(examples.length).toBeGreaterThan(1);
    for (const example of examples) {
      const body = (example as { value?: unknown }).value ?? example;
      expect((await service.execute(body)).status).toBe('succeeded');
    }
  });
});

describe('the examples of keys', () => {
  it('are accepted by the service', async () => {
    const { paths } = await json('/openapi.json');
    const headers = { 'X-API-Key': service.adminKey, 'Content-Type': 'application/json' };
    const send = (method: string, path: string, body: unknown) =>
      service.send(path, { method, headers, body: JSON.stringify(body) });
    const examplesOf = (operation: Json | undefined) => {
      const content = operation?.requestBody?.content?.['application/json'];
      const { example, examples: named } = (content ?? {}) as { example?: unknown; examples?: object };
      const examples = example === undefined ? Object.values(named ?? {}) : [example];
      expect(examples.length).toBeGreaterThan(0);
      return examples.map((example) => (example as { value?: unknown }).value ?? example);
    };
    let id = '';
    for (const example of examplesOf(paths?.['/v1/keys']?.post)) {
      const answer = await send('POST', '/v1/keys', example);
      expect([example, answer.status]).toEqual([example, 201]);
      id = (JSON.parse(answer.text) as { id: string }).id;
    }
    for (const example of examplesOf(paths?.['/v1/keys/{id}']?.patch)) {
      expect((await send('PATCH', `/v1/keys/${id}`, example)).status).toBe(200);
    }
    for (const example of examplesOf(paths?.['/v1/keys/{id}/rotate']?.post)) {
      expect((await send('POST', `/v1/keys/${id}/rotate`, example)).status).toBe(200);
    }
  });
});

describe('GET /', () => {
  it('shows the line that runs a program at the address that was asked', async () => {
    const { text, headers } = await service.send('/');
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(text).toContain(`curl ${service.url}/v1/execute`);
  });

  it.each(['/', '/docs'])('allows nothing but its own style: %s', async (path) => {
    const { text, headers } = await service.send(path);
    const style = /<style>(.*?)<\/style>/s.exec(text)?.[1] ?? '';
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(text).not.toMatch(/<script|\son[a-z]+=|style=|https?:\/\/(?!127\.0\.0\.1)/);
  });

  it('does not repeat markup from the Host header', async () => {
    const { default: http } = await import('node:http');
    const text = await new Promise<string>((resolve) => {
      http.get(`${service.url}/`, { headers: { Host: '"><script>alert(1)</script>' } }, async (response) => {
        resolve((await response.toArray()).join(''));
      });
    });
    expect(text).not.toContain('<script');
    expect(text).toContain('curl http://127.0.0.1:8000/v1/execute');
  });
});

it('says of every answer what it is', async () => {
  expect((await service.send('/openapi.json')).text).not.toContain('Default Response');
});

describe('GET /docs', () => {
  it('shows every call of the document with its parameters, fields and answers, and every schema', async () => {
    const { text, headers } = await service.send('/docs');
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    const { paths, components } = await json('/openapi.json');
    const ids: string[] = [];
    for (const [path, methods] of Object.entries(paths!)) {
      for (const [method, operation] of Object.entries(methods)) {
        const section = sectionOf(text, String(operation.operationId));
        ids.push(String(operation.operationId));
        expect(section).toContain(`<span class="method">${method.toUpperCase()}</span> ${path}</code>`);
        const body = operation.requestBody?.content?.['application/json']?.schema?.properties ?? {};
        const names = [
          ...(operation.parameters ?? []).map(({ name }) => String(name)),
          ...Object.keys(body),
          ...Object.keys(operation.responses!),
        ];
        for (const name of names) expect(section, path).toContain(`<code>${name}</code>`);
      }
    }
    for (const [name, { properties }] of Object.entries(components!.schemas!)) {
      const section = sectionOf(text, `schema-${name}`);
      for (const field of Object.keys(properties!)) expect(section).toContain(`<code>${field}</code>`);
      ids.push(`schema-${name}`);
    }
    const links = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
    expect(links.filter((id) => !ids.includes(id ?? ''))).toEqual([]);
    expect(sectionOf(text, 'schema-Run')).toContain('<code>images[].data</code>');
  });

  const sectionOf = (html: string, id: string): string =>
    new RegExp(`<section class="call" id="${id}">(.*?)</section>`, 's').exec(html)?.[1] ?? `no section ${id}`;
});

describe('probes', () => {
  it('are answered to anybody', async () => {
    expect(await json('/healthz')).toEqual({ status: 'ok' });
    expect(await json('/readyz')).toEqual({ status: 'ready' });
  });
});
