import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Checkout, here } from './checkout.ts';

const passed = { status: 'passed' };
const failed = { status: 'failed' };
const goodFile = { status: 'passed', assertionResults: [passed, passed] };

test.each([
  ['all passed', 0, [goodFile], '2 0 1'],
  ['a test failed', 1, [{ status: 'failed', assertionResults: [failed, passed] }], '2 1 1'],
  [
    'a file that cannot be loaded counts as one failure',
    1,
    [{ status: 'failed', assertionResults: [] }],
    '2 1 1',
  ],
  ['an error outside of every test counts as one failure', 1, [goodFile], '2 1 1'],
])('%s', async (_title, exitCode, testResults, expected) => {
  using checkout = new Checkout();
  const report = {
    numPassedTests: 2,
    numFailedTests: testResults.flatMap((file) => file.assertionResults).filter((one) => one === failed)
      .length,
    numPendingTests: 1,
    numTodoTests: 0,
    testResults,
  };
  writeFileSync(checkout.at('report.json'), JSON.stringify(report));
  const outcome = await checkout.run(process.execPath, [
    join(here, 'scripts/count-tests.ts'),
    checkout.at('report.json'),
    String(exitCode),
  ]);
  expect(outcome.stdout).toBe(`${expected}\n`);
});
