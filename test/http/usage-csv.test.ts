import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { UsageStore } from '../../src/store/usage-store.ts';
import { charge, NOON } from '../support/charge.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

function get(query: string, accept?: string) {
  const headers: Record<string, string> = { 'X-API-Key': service.adminKey };
  // Without a header of its own, fetch sends one that takes anything.
  if (accept !== undefined) headers.Accept = accept;
  return service.send(`/v1/usage${query}`, { headers });
}

/** The fields of a CSV text, by RFC 4180. */
function parse(text: string): string[][] {
  const rows = text.match(/(?:"(?:[^"]|"")*"|[^"\r\n])*\r\n/g) ?? [];
  expect(rows.join('')).toBe(text);
  return rows.map((row) =>
    [...row.slice(0, -2).matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/g)].map(
      ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
    ),
  );
}

describe('usage as CSV', () => {
  it('has a line of headings and the numbers of the JSON', async () => {
    await service.execute({ code: 'print(1)' });
    await service.execute({ code: '1/0' });
    const answer = await get('', 'text/csv');
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="codecell-usage.csv"');
    const [heading = [], ...rows] = parse(answer.text);
    const { data } = JSON.parse((await get('')).text) as { data: Record<string, unknown>[] };
    const flat = data.map(({ runs, refused, ...row }) => [
      ...Object.entries(row).slice(0, 4),
      ...Object.entries(runs as object).map(([name, count]) => [`runs_${name}`, count]),
      ...Object.entries(refused as object).map(([name, count]) => [`refused_${name}`, count]),
      ...Object.entries(row).slice(4),
    ]);
    expect(rows).toHaveLength(1);
    expect(rows.map((row) => row.map((field, index) => [heading[index], field]))).toEqual(
      flat.map((row) => row.map(([name, value]) => [name, String(value ?? '')])),
    );
  });

  it('makes names harmless that a spreadsheet would take for formulas, and quotes what has to be', async () => {
    const names: Record<string, string> = {
      '=1+2': "'=1+2",
      '+1': "'+1",
      '-1': "'-1",
      '@sum': "'@sum",
      ' =1': "' =1",
      'a,"b"': 'a,"b"',
      '=cmd,"x"': '\'=cmd,"x"',
      'line\r\nbreak': 'line\r\nbreak',
      "it's": "it's",
      '1=1': '1=1',
      'ünï–码': 'ünï–码',
    };
    for (const [index, name] of Object.keys(names).entries()) {
      await service.addKey({ id: `key_name_${String(index).padStart(2, '0')}`, name, team: name });
    }
    const db = await openDatabase(service.dataDir);
    const runs = Object.keys(names).map((_, index) =>
      charge({ key_id: `key_name_${String(index).padStart(2, '0')}` }),
    );
    await new UsageStore(db).add(runs, []);
    await db.destroy();
    const { text } = await get(
      `?from=${new Date(NOON).toISOString()}&to=2026-02-01&group_by=month`,
      'text/csv',
    );
    const [, ...rows] = parse(text);
    expect(rows.map(([, , name]) => name)).toEqual(Object.values(names));
    expect(rows.map(([, , , team]) => team)).toEqual(Object.values(names));
  });

  it('is only the headings where there is no usage', async () => {
    const { text } = await get('?from=2019-01-01&to=2019-02-01', 'text/csv');
    expect(parse(text)).toHaveLength(1);
  });
});

describe('what is answered', () => {
  it.each([
    ['text/csv', 'text/csv'],
    ['TEXT/CSV', 'text/csv'],
    ['text/*', 'text/csv'],
    ['text/csv, application/json', 'application/json'],
    ['text/csv;q=1, application/json;q=0.9', 'text/csv'],
    ['text/csv;q=0.9, application/json', 'application/json'],
    ['text/csv, */*;q=0.1', 'text/csv'],
    ['application/json;q=0, */*', 'text/csv'],
    ['text/csv;q=0', 'application/json'],
    ['*/*', 'application/json'],
    ['text/html', 'application/json'],
    ['text/csv;q=zero', 'application/json'],
    ['', 'application/json'],
  ])('to Accept: %s is %s', async (accept, type) => {
    const answer = await get('', accept);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, `${type}; charset=utf-8`]);
    expect(answer.headers.get('vary')).toBe('Accept');
  });

  it('is an error as any other, whatever is accepted', async () => {
    const answer = await get('?from=x', 'text/csv');
    expect([answer.status, answer.headers.get('content-type')]).toEqual([400, 'application/problem+json']);
  });
});
