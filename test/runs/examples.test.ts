/** Every example does what its README says, through HTTP. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Run } from '../../src/runs/run.ts';
import { startTestService, type TestService } from '../support/service.ts';

const EXAMPLES = join(import.meta.dirname, '..', '..', 'examples');
const readme = readExample('README.md');

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

function readExample(name: string): string {
  return readFileSync(join(EXAMPLES, name), 'utf8');
}

/** Runs an example, which must succeed with no word on stderr. */
async function runExample(code: string, data: { stdin: string } | { inputs: unknown }): Promise<Run> {
  const run = await service.execute({ code: readExample(code), ...data });
  expect([run.status, run.stderr]).toEqual(['succeeded', '']);
  return run;
}

const stdin = (name: string) => ({ stdin: readExample(name) });

/** Whether the README shows these lines, one after the other. */
function expectInReadme(text: string): void {
  expect(readme).toContain(text.trimEnd());
}

test('csv-report cleans, counts and plots a CSV', async () => {
  const run = await runExample('csv-report.py', stdin('csv-report.csv'));
  expect(run.stdout).toBe(
    `rows used: 93, left out: 1 repeated, 3 incomplete
revenue: 22,733.44 EUR
best month: 2025-06 with 5,267.04 EUR
best product: Espresso beans with 7,853.79 EUR
`,
  );
  expect(run.images).toMatchObject([{ format: 'png', name: 'sales.png', width: 1000, height: 400 }]);
  expect(run.value).toMatchObject({
    type: 'DataFrame',
    html: expect.stringContaining('<table'),
    json: {
      columns: ['North', 'South', 'West', 'Total'],
      index: ['2025-01', '2025-02', '2025-03', '2025-04', '2025-05', '2025-06'],
    },
  });
  expectInReadme(run.stdout + run.value?.text);
});

test('simulation says how many tills are enough', async () => {
  const run = await runExample('simulation.py', stdin('simulation.json'));
  expect(run.stdout.split('\n')).toEqual([
    '100 days, 70340 customers',
    'tills  mean wait  95 % wait less than  longer than 5 min',
    '    3   12.6 min             39.9 min              63.6%',
    '    4    1.1 min              5.2 min               5.5%',
    '    5    0.3 min              1.8 min               0.4%',
    '5 tills are enough for 19 of 20 customers to wait 5 minutes at most',
    '',
  ]);
  expect(run.images).toMatchObject([
    { format: 'png', name: null, title: 'Customers who wait longer than …' },
  ]);
  expect(run.value).toBeNull();
  expectInReadme(run.stdout);
});

test('text-statistics counts words and sentences', async () => {
  const run = await runExample('text-statistics.py', stdin('text-statistics.txt'));
  expect(run.stdout).toContain('words                        454\n');
  expect(run.stdout).toContain('\nalice     ██████ 6\n');
  expect(run.images).toEqual([]);
  expect(run.value?.json).toEqual({
    words: 454,
    different_words: 200,
    sentences: 11,
    median_sentence_words: 39,
    longest_sentence_words: 106,
    reading_ease: 49.4,
  });
  expectInReadme(run.stdout + run.value?.text);
});

test('model-fit chooses a degree and plots the fit', async () => {
  const run = await runExample('model-fit.py', stdin('model-fit.csv'));
  expect(run.stdout).toContain('degree 4: mean error  6.11 MWh  <- chosen\n');
  expect(run.stdout).toContain('on 45 days kept aside: mean error 5.37 MWh, R² 0.904\n');
  expect(run.images).toMatchObject([
    { format: 'png', title: 'Demand by temperature', width: 1000, height: 400 },
  ]);
  expect(run.value).toBeNull();
  expectInReadme(run.stdout);
});

const assignment = JSON.parse(readExample('grading-harness.json')) as {
  submission: string;
  function: string;
  seconds_per_test: number;
  tests: { name: string; arguments: unknown[]; expected: unknown }[];
};

/** The verdict on another submission for the same assignment. */
async function verdictOn(submission: string, more: object = {}) {
  const run = await runExample('grading-harness.py', { inputs: { ...assignment, submission, ...more } });
  return JSON.parse(run.stdout) as { passed: number; of: number; complaint: string | null; tests: unknown[] };
}

test('grading-harness says for each test why it was not passed', async () => {
  const run = await runExample('grading-harness.py', { inputs: assignment });
  expect(JSON.parse(run.stdout)).toEqual({
    passed: 2,
    of: 5,
    complaint: null,
    tests: [
      { name: 'odd number of values', passed: true, complaint: null },
      { name: 'even number of values', passed: false, complaint: 'returned 3 instead of 2.5' },
      { name: 'one value', passed: false, complaint: 'took longer than 0.5 s' },
      { name: 'no values', passed: false, complaint: 'raised IndexError: list index out of range' },
      { name: 'repeated values', passed: true, complaint: null },
    ],
  });
  expect(run.images).toEqual([]);
  expectInReadme(run.stdout);
});

test('grading-harness is not put off by what a submission does', async () => {
  const right = 'def median(n):\n    import statistics\n    return statistics.median(n) if n else None';
  expect(await verdictOn(right)).toMatchObject({ passed: 5, of: 5, complaint: null });
  expect(await verdictOn('def median(n) return n')).toMatchObject({
    passed: 0,
    of: 5,
    complaint: expect.stringContaining('raised SyntaxError'),
    tests: [],
  });
  expect(await verdictOn('x = 1')).toMatchObject({
    complaint: 'raised NameError: there is no function median',
  });
  expect(await verdictOn('import sys; sys.exit(0)')).toMatchObject({
    passed: 0,
    complaint: 'called sys.exit',
  });
  expect(await verdictOn('while True: pass')).toMatchObject({
    passed: 0,
    complaint: 'took longer than 0.5 s',
  });
  const stubborn =
    'def median(n):\n    while True:\n        try:\n            while True: pass\n        except Exception: pass';
  expect(await verdictOn(stubborn, { seconds_per_test: 0.1 })).toMatchObject({ passed: 0, complaint: null });
  const rude = 'class A:\n    def __repr__(self): 1/0\ndef median(n): return A()';
  expect(await verdictOn(rude)).toMatchObject({ passed: 0, complaint: null });
  const greedy = 'def median(n):\n    m = sum(n) / len(n) if n else None\n    n.clear()\n    return m';
  expect(await verdictOn(greedy)).toMatchObject({ passed: 4, complaint: null });
});

test('the README has a command for every example, and no other', () => {
  const scripts = readdirSync(EXAMPLES).filter((name) => name.endsWith('.py'));
  const commands = [...readme.matchAll(/^\$ codecell run (?:examples\/)?(\S+)/gm)].map(([, name]) => name);
  expect(scripts).toHaveLength(5);
  expect(commands.sort()).toEqual(scripts.sort());
});
