/** docs/reference: settings, errors, addresses and fields are those of the code. */

import { globSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SETTINGS } from '../../src/config.ts';
import { issuedKeySchema } from '../../src/http/key-schema.ts';
import { PROBLEMS } from '../../src/http/problems.ts';
import { runSchema } from '../../src/http/run-schema.ts';
import { usageSchema } from '../../src/http/usage-schema.ts';
import { LIMIT_BOUNDS } from '../../src/keys/limit-bounds.ts';
import { names, ROOT, readText, section, tableRows } from './markdown.ts';

const http = readText('docs/reference/http.md');

describe('settings.md', () => {
  const rows = tableRows(readText('docs/reference/settings.md'));
  const settings = Object.entries(SETTINGS);

  test('has every setting, with its bounds and meaning', () => {
    expect(rows.map(([variable, , bounds, meaning]) => [variable, bounds, meaning])).toEqual(
      settings.map(([, { variable, bounds, description }]) => [`\`${variable}\``, bounds, description]),
    );
  });

  test.each(settings)('has the default of %s', (name, { defaultValue }) => {
    const cell = rows[settings.findIndex(([known]) => known === name)]?.[1];
    const value = defaultValue();
    if (name === 'concurrency') expect(cell).toBe('number of cores');
    else if (name === 'dataDir') expect(resolve(names(cell)[0] ?? '')).toBe(value);
    else if (value === undefined || String(value) === '') expect(cell).toBe('none');
    else expect(names(cell)).toEqual([String(value)]);
  });
});

describe('http.md', () => {
  test('has every error code with its status', () => {
    const rows = tableRows(section(http, '## Errors'));
    expect(rows.map(([code, status]) => [names(code)[0], Number(status)])).toEqual(
      Object.entries(PROBLEMS).map(([code, { status }]) => [code, status]),
    );
  });

  test('has every field of a Run', () => {
    const described = tableRows(section(http, '## Run')).flatMap(([field]) => names(field));
    for (const field of Object.keys(runSchema.properties)) {
      expect(described.some((name) => name === field || name.startsWith(`${field}.`))).toBe(true);
    }
  });

  test('has every field of a Key', () => {
    const described = tableRows(section(http, '## Key')).map(([field]) => names(field)[0]);
    expect(described).toEqual(Object.keys(issuedKeySchema.properties));
  });

  test('has every limit of a key with its bounds', () => {
    const rows = tableRows(section(http, '## Limits of a key'));
    expect(rows.map(([limit, allowed]) => [names(limit)[0], allowed])).toEqual(
      Object.entries(LIMIT_BOUNDS).map(([limit, { min, max }]) => [limit, `${min} to ${max}`]),
    );
  });

  test('has every field and parameter of usage', () => {
    const tables = tableRows(section(http, '## Usage'));
    const described = tables.flatMap(([cell]) => names(cell));
    const example = JSON.parse(/^## Usage[\s\S]*?^```json\n([\s\S]*?)^```$/m.exec(http)?.[1] ?? '{}');
    const { data, ...top } = usageSchema.properties;
    expect(Object.keys(example)).toEqual(Object.keys(usageSchema.properties));
    expect(Object.keys(example.data[0])).toEqual(Object.keys(data.items.properties));
    for (const name of ['runs', 'refused'] as const) {
      expect(Object.keys(example.data[0][name])).toEqual(Object.keys(data.items.properties[name].properties));
    }
    for (const field of [...Object.keys(top), ...Object.keys(data.items.properties)]) {
      expect(described).toContain(field);
    }
  });

  test('has every address that is served', () => {
    const routes = globSync('src/http/routes/*.ts', { cwd: ROOT }).map(readText);
    const served = [...routes, readText('src/http/openapi.ts')].flatMap((text) =>
      [...text.matchAll(/method: '(\w+)',\n\s+url: '([^']+)'/g)].map(
        ([, method, url]) => `${method} ${url?.replace(/:(\w+)/g, '{$1}')}`,
      ),
    );
    const described = tableRows(section(http, '## Endpoints')).map(([call]) => names(call)[0]);
    expect(described.sort()).toEqual(served.sort());
  });
});
