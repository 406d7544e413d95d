import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Admission, type AdmissionOptions, type Slot } from '../../src/runs/admission.ts';
import { ServiceError } from '../../src/shared/errors.ts';

const OPTIONS: AdmissionOptions = {
  concurrency: 1,
  queueMax: 10,
  queueBytesMax: 1000,
  queueWaitMs: 60_000,
};

/** One request: what became of it, in words. */
class Request {
  outcome: 'waiting' | 'running' | 'aborted' | 'overloaded' | 'shutting_down' | 'finished' = 'waiting';
  readonly caller = new AbortController();
  readonly settled: Promise<void>;
  #slot: Slot | undefined;

  constructor(admission: Admission, keyId: string, bytes = 1) {
    this.settled = admission.acquire(keyId, { bytes, signal: this.caller.signal }).then(
      (slot) => {
        this.#slot = slot;
        this.outcome = 'running';
      },
      (error: unknown) => {
        this.outcome =
          error instanceof ServiceError ? (error.code as 'overloaded' | 'shutting_down') : 'aborted';
      },
    );
  }

  finish(): void {
    this.#slot?.release();
    this.outcome = 'finished';
  }
}

/** Lets promises that are settled already reach their callers. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('Admission', () => {
  it('serves keys in turn, and each key in its order', async () => {
    const admission = new Admission(OPTIONS);
    const first = new Request(admission, 'a');
    const names = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'];
    const requests = new Map(names.map((name) => [name, new Request(admission, name[0] ?? '')]));
    await settle();
    first.finish();
    const order: string[] = [];
    while (order.length < names.length) {
      await settle();
      const [name, request] = [...requests].find(([, { outcome }]) => outcome === 'running') ?? [];
      order.push(name ?? 'nobody');
      request?.finish();
    }
    expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  it.each([1, 3])(
    "with %i slots and a thousand waiting entries of one key, another key's next waits for one run at most",
    async (concurrency) => {
      const admission = new Admission({ ...OPTIONS, concurrency, queueMax: 2000, queueBytesMax: 10_000 });
      const greedy = Array.from({ length: 1000 + concurrency }, () => new Request(admission, 'greedy'));
      for (let turn = 0; turn < 5; turn++) {
        const modest = new Request(admission, 'modest');
        await settle();
        let ended = 0;
        while (modest.outcome === 'waiting') {
          greedy.find(({ outcome }) => outcome === 'running')?.finish();
          ended++;
          await settle();
        }
        // The first end frees the slot; the turn may be the greedy key's once.
        expect(ended).toBeLessThanOrEqual(2);
        modest.finish();
        await settle();
      }
    },
  );

  it('pushes out the newest of the key with most bytes when the queue holds too many', async () => {
    const admission = new Admission(OPTIONS);
    const running = new Request(admission, 'a');
    const large = [new Request(admission, 'a', 400), new Request(admission, 'a', 500)];
    const small = [new Request(admission, 'b', 90), new Request(admission, 'b', 20)];
    await settle();
    expect(large.map(({ outcome }) => outcome)).toEqual(['waiting', 'overloaded']);
    expect(small.map(({ outcome }) => outcome)).toEqual(['waiting', 'waiting']);
    expect(running.outcome).toBe('running');
  });

  it('refuses the newcomer among keys that have as many waiting', async () => {
    const admission = new Admission({ ...OPTIONS, queueMax: 2 });
    const requests = ['x', 'a', 'b', 'c'].map((keyId) => new Request(admission, keyId));
    await settle();
    expect(requests.map(({ outcome }) => outcome)).toEqual(['running', 'waiting', 'waiting', 'overloaded']);
  });

  it('counts a slot that is released twice once', async () => {
    const admission = new Admission(OPTIONS);
    const slot = await admission.acquire('a', { bytes: 1, signal: new AbortController().signal });
    slot.release();
    slot.release();
    expect(admission.running).toBe(0);
  });

  it('refuses a caller who has gone already', async () => {
    const admission = new Admission(OPTIONS);
    const request = admission.acquire('a', { bytes: 1, signal: AbortSignal.abort() });
    await expect(request).rejects.toThrow('aborted');
    expect(admission.running).toBe(0);
  });

  it('is idle once the last running entry has ended after a close', async () => {
    const admission = new Admission(OPTIONS);
    const running = new Request(admission, 'a');
    const waiting = new Request(admission, 'a');
    await settle();
    admission.close();
    const idle = admission.idle();
    await settle();
    expect([running.outcome, waiting.outcome]).toEqual(['running', 'shutting_down']);
    running.finish();
    await idle;
    await expect(admission.acquire('a', { bytes: 1, signal: new AbortController().signal })).rejects.toThrow(
      'shutting down',
    );
  });

  it('never has more running or waiting than allowed, nor a free slot while anybody waits', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('arrive' as const), keyId: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ kind: fc.constantFrom('finish' as const, 'abort' as const), index: fc.nat() }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 0, max: 5 }),
        fc.array(step, { maxLength: 60 }),
        async (concurrency, queueMax, steps) => {
          const admission = new Admission({ ...OPTIONS, concurrency, queueMax });
          const requests: Request[] = [];
          const having = (outcome: Request['outcome']) =>
            requests.filter((request) => request.outcome === outcome);
          for (const action of steps) {
            if (action.kind === 'arrive') {
              requests.push(new Request(admission, action.keyId));
            } else {
              const candidates = having(action.kind === 'finish' ? 'running' : 'waiting');
              const chosen = candidates[action.index % Math.max(candidates.length, 1)];
              if (action.kind === 'finish') chosen?.finish();
              else chosen?.caller.abort();
            }
            await settle();
            expect(having('running')).toHaveLength(admission.running);
            expect(having('waiting')).toHaveLength(admission.waiting);
            expect(admission.running).toBeLessThanOrEqual(concurrency);
            expect(admission.waiting).toBeLessThanOrEqual(queueMax);
            if (admission.waiting > 0) expect(admission.running).toBe(concurrency);
          }
          admission.close();
          for (const request of having('running')) request.finish();
          await Promise.all(requests.map(({ settled }) => settled));
          expect([admission.running, admission.waiting]).toEqual([0, 0]);
        },
      ),
      { numRuns: 200 },
    );
  });
});
