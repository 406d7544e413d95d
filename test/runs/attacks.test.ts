/** Programs that try to get out, to crash the service or to be a nuisance to others. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectOutcome, readCases, requestOf } from '../support/cases.ts';
import { processTree } from '../support/processes.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
let before: { descriptors: number; processes: number };

const inUse = () => ({
  descriptors: readdirSync('/proc/self/fd').length,
  processes: processTree(process.pid).length,
});

/** Whether all processes are there that wait for a program. */
async function hasEverySpare(): Promise<boolean> {
  const { text } = await service.send('/metrics', { headers: { 'X-API-Key': service.adminKey } });
  const value = (name: string) => Number(new RegExp(`^codecell_${name} (\\d+)$`, 'm').exec(text)?.[1]);
  return value('spares_ready') === value('slots') + 1;
}

beforeAll(async () => {
  service = await startTestService();
  await service.execute({ code: 'print(1)' });
  await until(hasEverySpare);
  before = inUse();
});
afterAll(() => service.stop());

describe.each(readCases(join(import.meta.dirname, '../cases/attacks.jsonl')))('$id', (attack) => {
  test('holds, and the next program is none the wiser', async () => {
    const answered = service.execute(requestOf(attack));
    expect((await service.send('/healthz')).status).toBe(200);
    expectOutcome(await answered, attack);
    expect(await service.execute({ code: 'print("next")' })).toMatchObject({
      status: 'succeeded',
      stdout: 'next\n',
      stderr: '',
    });
  });
});

test('descriptors and processes are back to where they were', async () => {
  await until(() => {
    const now = inUse();
    // Keep-alive connections of this test's own client come and go.
    return now.processes <= before.processes && now.descriptors <= before.descriptors + 4;
  });
});
