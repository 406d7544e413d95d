/** The OpenAPI document as a page: every call with its parameters, body and answers, then the schemas they share. */

import { htmlPage } from '../html-page.ts';

/** As much of an OpenAPI 3.1 document as ours has. */
export interface OpenApiDocument {
  info: { title: string; version: string; description?: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

interface Operation {
  operationId: string;
  summary?: string;
  description?: string;
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: Schema }[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, { description?: string; content?: Record<string, Content> }>;
  security: unknown[];
}

interface Content {
  schema: Schema;
  examples?: Record<string, { value: unknown }>;
}

interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: string[];
  const?: unknown;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
}

/** The page. Everything that the document says is taken as text. */
export function docsPage({ info, paths, components }: OpenApiDocument): string {
  const calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const links = calls.map(
    ({ method, path, operation }) =>
      `<li><a href="#${escaped(operation.operationId)}"><code>${method} ${escaped(path)}</code></a></li>`,
  );
  const shared = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<section class="call" id="schema-${escaped(name)}"><h2>${escaped(name)}</h2>${text(schema.description)}${fieldTable(schema, 'answer')}</section>`,
  );
  return htmlPage(
    `${info.title} API`,
    `<h1>${escaped(info.title)} API</h1>
<p class="lead">${escaped(info.description ?? '')} Version ${escaped(info.version)}, as a document:
<a href="/openapi.json">/openapi.json</a>.</p>
<nav><ul>
${links.join('\n')}
</ul></nav>
${calls.map(callSection).join('\n')}
${shared.join('\n')}
<footer><a href="/">Codecell ${escaped(info.version)}</a></footer>`,
  );
}

function callSection({ method, path, operation }: { method: string; path: string; operation: Operation }) {
  const { operationId, summary, description, parameters = [], requestBody, responses, security } = operation;
  const parts = [
    `<section class="call" id="${escaped(operationId)}">`,
    `<h2><code><span class="method">${method}</span> ${escaped(path)}</code></h2>`,
    text(summary && `${summary}.${security.length > 0 ? '' : ' Open: it needs no key.'}`),
    text(description),
  ];
  if (parameters.length > 0) {
    const rows = parameters.map(({ name, in: place, required = false, description: about, schema }) =>
      row(name, `${place}, ${typeOf(schema)}`, about, required ? 'Required.' : defaultOf(schema)),
    );
    parts.push(`<h3>Parameters</h3>${table(rows)}`);
  }
  for (const [type, { schema, examples }] of Object.entries(requestBody?.content ?? {})) {
    parts.push(`<h3>Body: ${escaped(type)}</h3>${fieldTable(schema, 'body')}`);
    for (const { value } of Object.values(examples ?? {})) {
      parts.push(`<pre tabindex="0">${escaped(JSON.stringify(value, null, 2))}</pre>`);
    }
  }
  const answers = Object.entries(responses).map(([status, { description: about, content = {} }]) =>
    row(status, Object.values(content).map(({ schema }) => typeOf(schema))[0] ?? '', about),
  );
  parts.push(`<h3>Answers</h3>${table(answers)}`);
  const [good] = Object.entries(responses).filter(([status]) => status.startsWith('2'));
  const schema = Object.values(good?.[1].content ?? {})[0]?.schema;
  if (schema !== undefined && schema.$ref === undefined) parts.push(fieldTable(schema, 'answer'));
  return `${parts.join('\n')}\n</section>`;
}

/** What a field's being required means: in a body that it has to be sent, in an answer that it is there. */
type Place = 'body' | 'answer';

function fieldTable(schema: Schema, place: Place): string {
  const rows = fieldRows(schema, place, '');
  return rows.length === 0 ? '' : table(rows);
}

/** A row for each field, those of objects within after it, named as `outer.inner`. */
function fieldRows(
  { properties = {}, required = [], items }: Schema,
  place: Place,
  prefix: string,
): string[] {
  if (items !== undefined) return fieldRows(items, place, `${prefix}[]`);
  return Object.entries(properties).flatMap(([name, schema]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    const note = {
      body: required.includes(name) ? 'Required.' : defaultOf(schema),
      answer: required.includes(name) ? undefined : 'Not always there.',
    };
    return [row(path, typeOf(schema), schema.description, note[place]), ...fieldRows(schema, place, path)];
  });
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = escaped(schema.$ref.split('/').at(-1) ?? '');
    return `<a href="#schema-${name}">${name}</a>`;
  }
  if (schema.enum !== undefined)
    return schema.enum.map((value) => `<code>${escaped(value)}</code>`).join(' ');
  if (schema.const !== undefined) return `<code>${escaped(JSON.stringify(schema.const))}</code>`;
  const types = [schema.type ?? 'any'].flat().map((type) => (type === 'array' ? 'list' : type));
  const { minimum, maximum } = schema;
  const range = minimum === undefined || maximum === undefined ? '' : `, ${minimum} to ${maximum}`;
  const items = schema.items?.$ref === undefined ? '' : ` of ${typeOf(schema.items)}`;
  return `${types.map(escaped).join(' or ')}${items}${range}`;
}

function defaultOf(schema: Schema): string | undefined {
  return schema.default === undefined ? undefined : `By default \`${JSON.stringify(schema.default)}\`.`;
}

/** @param type HTML; the others are text. */
function row(name: string, type: string, description: string | undefined, note?: string): string {
  const about = [description, note].filter((each) => each !== undefined).join(' ');
  return `<tr><td><code>${escaped(name)}</code></td><td>${type}</td><td>${marked(about)}</td></tr>`;
}

function table(rows: string[]): string {
  return `<table>${rows.join('')}</table>`;
}

function text(paragraph: string | undefined): string {
  return paragraph ? `<p>${marked(paragraph)}</p>` : '';
}

/** Text with what stands in back quotes as code. */
function marked(paragraph: string): string {
  return escaped(paragraph).replace(/`([^`]+)`/g, '<code>$1</code>');
}

function escaped(plain: string): string {
  return plain.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
