/** README.md: the outcome table and the first answer are those of the code. */

import { expect, test } from 'vitest';
import { runSchema } from '../../src/http/run-schema.ts';
import { RUN_STATUSES } from '../../src/runs/run.ts';
import { names, readText, section, tableRows } from './markdown.ts';

const readme = readText('README.md');
const UNFINISHED = ['queued', 'running'];

test('the outcome table has every status of a run that has ended', () => {
  const rows = tableRows(section(readme, '## Outcomes'));
  expect(rows.flatMap(([status]) => names(status))).toEqual(
    RUN_STATUSES.filter((status) => !UNFINISHED.includes(status)),
  );
  for (const [status, when, type] of rows) {
    expect(when, status).not.toBe('');
    expect(type, status).not.toBe('');
  }
});

test('every error.type that the service itself gives is in the outcome table', () => {
  const described = tableRows(section(readme, '## Outcomes')).flatMap(([, , type]) => names(type));
  const given = [...readText('src/runs/outcome.ts').matchAll(/plainError\('(\w+)'/g)].map(([, type]) => type);
  expect(given.length).toBeGreaterThan(3);
  for (const type of given) expect(described).toContain(type);
});

test('the first answer has exactly the fields of a Run', () => {
  const answers = [...readme.matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(([, text]) => JSON.parse(text!));
  expect(Object.keys(answers[0])).toEqual(Object.keys(runSchema.properties));
  for (const answer of answers) {
    expect(Object.keys(runSchema.properties)).toEqual(expect.arrayContaining(Object.keys(answer)));
    expect(RUN_STATUSES).toContain(answer.status);
  }
});
