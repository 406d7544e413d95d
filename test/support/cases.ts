/** Programs with what is expected of them, one JSON object a line. */

import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import type { Run, RunStatus } from '../../src/runs/run.ts';

export interface ProgramCase {
  id: string;
  category?: string;
  code: string;
  expect: { status: RunStatus[]; stdout?: string; has?: string; error?: string[] };
}

export function readCases(path: string): ProgramCase[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ProgramCase);
}

/** The request of a case: what is meant to run out of time is given little of it. */
export function requestOf({ code, expect: { status } }: ProgramCase): { code: string; timeout_ms: number } {
  const onlyTimesOut = status.length === 1 && status[0] === 'timed_out';
  return { code, timeout_ms: onlyTimesOut ? 500 : 30_000 };
}

export function expectOutcome(run: Run, { expect: { status, stdout, has, error } }: ProgramCase): void {
  expect(status, run.stderr).toContain(run.status);
  expect(run.stdout).not.toContain('ESCAPED');
  if (stdout !== undefined) expect(run.stdout).toBe(stdout);
  if (has !== undefined) expect(run.stdout + run.stderr).toContain(has);
  if (error !== undefined) expect(error).toContain(run.error?.type);
}
