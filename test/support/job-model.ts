/** A simple model of the queue of jobs, and the steps of two workers against it (see test/store/job-queue.test.ts). */

import type fc from 'fast-check';
import type { Kysely } from 'kysely';
import { expect } from 'vitest';
import { endWithoutRun, jobEnd, unendedRun } from '../../src/runs/jobs/job-end.ts';
import type { Clock } from '../../src/shared/clock.ts';
import { newRunId } from '../../src/shared/ids.ts';
import type { ClaimedJob, JobEnd } from '../../src/store/job-queue.ts';
import type { StoredJobs } from '../../src/store/job-reader.ts';
import { JobStore } from '../../src/store/job-store.ts';
import type { Database } from '../../src/store/schema.ts';
import { UsageStore } from '../../src/store/usage-store.ts';
import { charge } from './charge.ts';

export const LEASE_MS = 5000;
export const KEYS = ['key_a', 'key_b', 'key_c'];
const QUEUED_MAX = 4;
export const WORKERS = ['one', 'other'] as const;
export type WorkerName = (typeof WORKERS)[number];

/** What is expected of a job. */
interface ModelJob {
  id: string;
  keyId: string;
  state: 'queued' | 'running' | 'ended';
  status: string;
  token: number;
  worker: WorkerName | null;
  leaseUntil: number;
  losses: number;
  cancelRequested: boolean;
  /** Its result as it was first seen. */
  result: string | null;
}

export interface Model {
  jobs: ModelJob[];
  charged: Set<string>;
  nowMs: number;
  lastKey: Record<WorkerName, string>;
}

export interface Real {
  db: Kysely<Database>;
  workers: Record<WorkerName, JobStore>;
  reader: StoredJobs;
  clock: { nowMs: number };
  /** Every claim that was ever made: a worker that was slow comes back with an old one. */
  claims: ClaimedJob[];
}

type Command = fc.AsyncCommand<Model, Real>;

const ended = (job: ModelJob, status: string): void => {
  Object.assign(job, { state: 'ended', status, worker: null });
};

/** A queue as a process that has just started has it: nothing in memory. */
export function worker(db: Kysely<Database>, name: WorkerName, clock: { nowMs: number }): JobStore {
  const its: Clock = { now: () => clock.nowMs, monotonicMs: () => clock.nowMs };
  return new JobStore({
    db,
    usage: new UsageStore(db),
    clock: its,
    worker: name,
    leaseMs: LEASE_MS,
    bounds: { jobs: 1000, bytes: 2 ** 30, retentionMs: 2 ** 40 },
    endWithoutRun: (job, status) => endWithoutRun(job, status, clock.nowMs),
  });
}

function endOf(job: ClaimedJob, output: string, nowMs: number): JobEnd {
  const finished_at = new Date(nowMs).toISOString();
  const run = { ...unendedRun(job), status: 'succeeded' as const, exit_code: 0, stdout: output, finished_at };
  return jobEnd(run, charge({ id: job.id, key_id: job.keyId, ended_at: nowMs }));
}

export class Enqueue implements Command {
  readonly #keyId: string;
  constructor(keyId: string) {
    this.#keyId = keyId;
  }
  check = () => true;
  toString = () => `enqueue(${this.#keyId})`;
  async run(model: Model, { workers }: Real): Promise<void> {
    const id = newRunId();
    const keyId = this.#keyId;
    const program = { code: Buffer.from(id), stdin: Buffer.alloc(0), inputsJson: Buffer.from('{}') };
    const job = { id, keyId, timeoutMs: 1000, memoryMb: 64, createdAtMs: model.nowMs, program };
    const waiting = model.jobs.filter((each) => each.state === 'queued' && each.keyId === keyId).length;
    const answer = await workers.one.enqueue(job, QUEUED_MAX);
    expect(answer).toBe(waiting >= QUEUED_MAX ? 'key full' : 'queued');
    if (answer !== 'queued') return;
    model.jobs.push({
      ...{ id, keyId, state: 'queued', status: 'queued', token: 0, worker: null },
      ...{ leaseUntil: 0, losses: 0, cancelRequested: false, result: null },
    });
  }
}

export class ClaimNext implements Command {
  readonly #worker: WorkerName;
  readonly #except: string[];
  constructor(name: WorkerName, except: string[]) {
    this.#worker = name;
    this.#except = except;
  }
  check = () => true;
  toString = () => `claim(${this.#worker}, except ${this.#except})`;
  async run(model: Model, real: Real): Promise<void> {
    const afterKeyId = model.lastKey[this.#worker];
    const job = await real.workers[this.#worker].claim({ afterKeyId, except: this.#except });
    const waiting = model.jobs
      .filter(({ state, keyId }) => state === 'queued' && !this.#except.includes(keyId))
      .toSorted((one, two) => (`${one.keyId} ${one.id}` < `${two.keyId} ${two.id}` ? -1 : 1));
    const expected = waiting.find(({ keyId }) => keyId > afterKeyId) ?? waiting[0];
    expect(job?.id).toBe(expected?.id);
    if (job === null || expected === undefined) return;
    expect(job).toMatchObject({ token: expected.token + 1, losses: expected.losses });
    expect((await real.workers[this.#worker].program(job)).code.toString()).toBe(job.id);
    Object.assign(expected, {
      ...{ state: 'running', status: 'running', worker: this.#worker },
      ...{ token: job.token, leaseUntil: model.nowMs + LEASE_MS },
    });
    model.lastKey[this.#worker] = job.keyId;
    real.claims.push(job);
  }
}

/** What comes of a claim, the newest or any older one. */
export class WithClaim implements Command {
  readonly #pick: number;
  readonly #losses: number;
  /** @param losses Given back with so many; 0 completes. */
  constructor(pick: number, losses: number) {
    this.#pick = pick;
    this.#losses = losses;
  }
  check = () => true;
  toString = () => `${this.#losses === 0 ? 'complete' : `giveBack(${this.#losses})`}(claim ${this.#pick})`;
  async run(model: Model, real: Real): Promise<void> {
    const claim = real.claims[real.claims.length - 1 - (this.#pick % Math.max(1, real.claims.length))];
    if (claim === undefined) return;
    const job = model.jobs.find(({ id }) => id === claim.id)!;
    const holds = job.state === 'running' && job.token === claim.token;
    if (this.#losses > 0) {
      await real.workers.one.giveBack(claim, this.#losses);
      if (holds) lose(model, job, this.#losses);
      return;
    }
    const end = endOf(claim, `by claim ${claim.token}`, model.nowMs);
    expect(await real.workers.other.complete(claim, end)).toBe(holds);
    if (!holds) return;
    ended(job, 'succeeded');
    expect(model.charged.has(job.id)).toBe(false);
    model.charged.add(job.id);
  }
}

function lose(model: Model, job: ModelJob, losses: number): void {
  if (job.cancelRequested || job.losses + losses >= 3) {
    ended(job, job.cancelRequested ? 'cancelled' : 'lost');
    if (job.cancelRequested) model.charged.add(job.id);
  } else {
    Object.assign(job, { state: 'queued', status: 'queued', worker: null, losses: job.losses + losses });
  }
}

export class Cancel implements Command {
  readonly #pick: number;
  constructor(pick: number) {
    this.#pick = pick;
  }
  check = ({ jobs }: Model) => jobs.length > 0;
  toString = () => `cancel(job ${this.#pick})`;
  async run(model: Model, { workers }: Real): Promise<void> {
    const job = model.jobs[this.#pick % model.jobs.length]!;
    expect(await workers.one.cancel(job.id, 'key_of_nobody')).toBe('missing');
    const answer = await workers.other.cancel(job.id, job.keyId);
    // Whoever runs it stops it, also when it was late to renew its lease.
    const abandoned = job.worker !== 'other' && job.leaseUntil <= model.nowMs;
    const nobodyRuns = job.state === 'queued' || (job.state === 'running' && abandoned);
    expect(answer).toBe(job.state === 'running' && !nobodyRuns ? 'requested' : 'ended');
    if (answer === 'requested') job.cancelRequested = true;
    if (!nobodyRuns) return;
    ended(job, 'cancelled');
    model.charged.add(job.id);
  }
}

export class Renew implements Command {
  readonly #worker: WorkerName;
  constructor(name: WorkerName) {
    this.#worker = name;
  }
  check = () => true;
  toString = () => `renew(${this.#worker})`;
  async run(model: Model, { workers }: Real): Promise<void> {
    const held = await workers[this.#worker].renew();
    const its = model.jobs.filter(({ state, worker }) => state === 'running' && worker === this.#worker);
    expect([...held.keys()].sort()).toEqual(its.map(({ id }) => id).sort());
    for (const job of its) {
      expect(held.get(job.id)?.cancelRequested).toBe(job.cancelRequested);
      job.leaseUntil = model.nowMs + LEASE_MS;
    }
  }
}

export class TakeOver implements Command {
  readonly #worker: WorkerName;
  constructor(name: WorkerName) {
    this.#worker = name;
  }
  check = () => true;
  toString = () => `takeOver(${this.#worker})`;
  async run(model: Model, { workers }: Real): Promise<void> {
    const count = await workers[this.#worker].takeOver();
    const expired = model.jobs.filter(
      ({ state, worker, leaseUntil }) =>
        state === 'running' && worker !== this.#worker && leaseUntil <= model.nowMs,
    );
    expect(count).toBe(expired.length);
    for (const job of expired) lose(model, job, 1);
  }
}

/** Time goes on: by less than a lease, or by more. */
export class Pass implements Command {
  readonly #ms: number;
  constructor(ms: number) {
    this.#ms = ms;
  }
  check = () => true;
  toString = () => `pass(${this.#ms})`;
  async run(model: Model, { clock }: Real): Promise<void> {
    model.nowMs += this.#ms;
    clock.nowMs = model.nowMs;
  }
}

/** A process dies and another one of the same name starts: what it kept in memory is gone, what is stored is not. */
export class Crash implements Command {
  readonly #worker: WorkerName;
  constructor(name: WorkerName) {
    this.#worker = name;
  }
  check = () => true;
  toString = () => `crash(${this.#worker})`;
  async run(model: Model, real: Real): Promise<void> {
    real.workers[this.#worker] = worker(real.db, this.#worker, real.clock);
    await real.workers[this.#worker].clear();
    model.lastKey[this.#worker] = '';
  }
}

/** What must hold at all times. */
export class Look implements Command {
  check = () => true;
  toString = () => 'look';
  async run(model: Model, { db, reader, workers }: Real): Promise<void> {
    await workers.one.purge();
    for (const job of model.jobs) {
      const record = await reader.find(job.id, job.keyId);
      expect(record?.status).toBe(job.status);
      if (record === null || job.state !== 'ended') continue;
      const parts: Buffer[] = [];
      for await (const part of reader.result(record)) parts.push(part);
      const result = Buffer.concat(parts).toString();
      expect(JSON.parse(result)).toMatchObject({ id: job.id, status: job.status });
      job.result ??= result;
      expect(result).toBe(job.result);
    }
    const charged = await db.selectFrom('usage_runs').select('id').execute();
    expect(charged.map(({ id }) => id).sort()).toEqual([...model.charged].sort());
    const totals = await db.selectFrom('job_totals').selectAll().executeTakeFirstOrThrow();
    const stored = await db.selectFrom('jobs').selectAll().execute();
    const bytes = stored.map((job) =>
      job.finished_at === null ? job.code_bytes + job.stdin_bytes + job.inputs_bytes : job.result_bytes,
    );
    expect(totals).toEqual({ jobs: stored.length, bytes: bytes.reduce((sum, each) => sum + each, 0) });
    const kept = await db
      .selectFrom('jobs_kept')
      .select((all) => all.fn.sum('jobs').as('jobs'))
      .execute();
    expect(Number(kept[0]?.jobs)).toBe(stored.filter((job) => job.finished_at !== null).length);
  }
}
