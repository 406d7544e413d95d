import { afterEach, describe, expect, it } from 'vitest';
import { type Answer, problemOf, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
afterEach(() => service.stop());

/** Takes the only slot until `release`. */
async function occupySlot(): Promise<{ release: () => void }> {
  const caller = new AbortController();
  const answer = service.post({ code: 'import time; time.sleep(29)' }, { signal: caller.signal });
  answer.catch(() => 'released');
  await service.loaded(1, 0);
  return { release: () => caller.abort() };
}

function expectOverloaded(answer: Answer): void {
  expect(answer.status).toBe(503);
  expect(answer.headers.get('retry-after')).toBe('1');
  expect(problemOf(answer).code).toBe('overloaded');
}

describe('the waiting queue', () => {
  it('lets requests wait for the slot and says how long they did', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '1' } });
    const runs = await Promise.all(
      [1, 2, 3].map((n) => service.execute({ code: `import time; time.sleep(0.2); print(${n})` })),
    );
    const waits = runs.map(({ usage }) => usage.queue_ms ?? 0).sort((a, b) => a - b);
    expect(waits[0]).toBeLessThan(150);
    expect(waits[1]).toBeGreaterThan(150);
    expect(waits[2]).toBeGreaterThan(350);
  });

  it('refuses at once when it may hold nobody', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '1', QUEUE_MAX: '0' } });
    const slot = await occupySlot();
    expectOverloaded(await service.post({ code: '' }));
    slot.release();
  });

  it('refuses who has waited for CODECELL_QUEUE_WAIT_MS', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '1', QUEUE_WAIT_MS: '50' } });
    const slot = await occupySlot();
    expectOverloaded(await service.post({ code: '' }));
    slot.release();
  });

  it('refuses the newest of the key with most waiting when it is full', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '1', QUEUE_MAX: '4' } });
    const [greedy, modest] = [await service.addKey(), await service.addKey()];
    const slot = await occupySlot();
    const answered: string[] = [];
    const post = (name: string, key: string) =>
      service.post({ code: '' }, { key }).then((answer) => {
        answered.push(`${name} ${answer.status}`);
        return answer;
      });
    const fromGreedy = Array.from({ length: 9 }, (_, index) => post(`greedy ${index}`, greedy));
    await until(() => answered.length === 5);
    const fromModest = [post('modest', modest), post('modest', modest)];
    await until(() => answered.length === 7);
    expect(answered.every((line) => line.startsWith('greedy') && line.endsWith('503'))).toBe(true);
    slot.release();
    const statuses = async (answers: Promise<Answer>[]) =>
      (await Promise.all(answers)).map(({ status }) => status);
    expect(await statuses(fromModest)).toEqual([200, 200]);
    expect((await statuses(fromGreedy)).filter((status) => status === 200)).toHaveLength(2);
  });

  it('takes turns by key: a hundred waiting requests of one delay another by one run', async () => {
    service = await startTestService({ settings: { CONCURRENCY: '1' } });
    const [greedy, modest] = [await service.addKey(), await service.addKey()];
    const slot = await occupySlot();
    const finished: string[] = [];
    const execute = (name: string, key: string) =>
      service.execute({ code: '' }, { key }).then(() => finished.push(name));
    const runs = Array.from({ length: 100 }, () => execute('greedy', greedy));
    await service.loaded(1, 100);
    const late = execute('modest', modest);
    await service.loaded(1, 101);
    slot.release();
    await late;
    // Two of the greedy key's runs may have started before its turn, and answers overtake each other by a little.
    expect(finished.length).toBeLessThanOrEqual(4);
    await Promise.all(runs);
  });
});
