/** Larger collections of real programs, from the folder that CODECELL_TEST_CORPORA names; skipped without it. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { expectOutcome, readCases, requestOf } from '../support/cases.ts';
import { startTestService } from '../support/service.ts';

const folder = process.env.CODECELL_TEST_CORPORA;
const files = folder === undefined ? [] : readdirSync(folder).filter((name) => name.endsWith('.jsonl'));

test.skipIf(folder === undefined)('there are collections in the folder', () => {
  expect(files).not.toEqual([]);
});

for (const file of files) {
  test(`every program of ${file} runs`, { timeout: 300_000 }, async () => {
    const service = await startTestService();
    try {
      const programs = readCases(join(folder!, file));
      expect(programs.length).toBeGreaterThan(0);
      for (const program of programs) {
        const run = await service.execute(requestOf(program));
        expect.soft(run.status, `${program.id}: ${run.stderr}`).toBeOneOf(program.expect.status);
        if (program.expect.status.includes(run.status)) expectOutcome(run, program);
      }
    } finally {
      await service.stop();
    }
  });
}
