/**
 * The life of jobs against a model, on real SQLite: two workers, of which either may be slow, dead or cut off between
 * any two steps, and a clock that only the test moves.
 */

import fc from 'fast-check';
import { it } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { StoredJobs } from '../../src/store/job-reader.ts';
import { NOON } from '../support/charge.ts';
import { withFolder } from '../support/folder.ts';
import {
  Cancel,
  ClaimNext,
  Crash,
  Enqueue,
  KEYS,
  LEASE_MS,
  Look,
  type Model,
  Pass,
  type Real,
  Renew,
  TakeOver,
  WithClaim,
  WORKERS,
  worker,
} from '../support/job-model.ts';

it('does what the model says, whatever is interrupted where', () =>
  withFolder(async (folder) => {
    const pick = fc.nat(40);
    const workerName = fc.constantFrom(...WORKERS);
    const commands = fc.commands(
      [
        fc.constantFrom(...KEYS).map((keyId) => new Enqueue(keyId)),
        fc
          .tuple(workerName, fc.subarray(KEYS, { maxLength: 1 }))
          .map(([name, except]) => new ClaimNext(name, except)),
        pick.map((number) => new WithClaim(number % 3, 0)),
        fc
          .tuple(pick, fc.integer({ min: 0, max: 3 }))
          .map(([number, losses]) => new WithClaim(number, losses)),
        pick.map((number) => new Cancel(number)),
        workerName.map((name) => new Renew(name)),
        workerName.map((name) => new TakeOver(name)),
        fc.constantFrom(1, LEASE_MS - 1, LEASE_MS + 1).map((ms) => new Pass(ms)),
        workerName.map((name) => new Crash(name)),
        fc.constant(new Look()),
      ],
      { maxCommands: 60, size: 'max' },
    );
    const db = await openDatabase(folder);
    const property = fc.asyncProperty(commands, async (chosen) => {
      for (const table of ['jobs', 'job_pieces', 'jobs_kept', 'usage_runs', 'usage_hours'] as const) {
        await db.deleteFrom(table).execute();
      }
      await db.updateTable('job_totals').set({ jobs: 0, bytes: 0 }).execute();
      const clock = { nowMs: NOON };
      const setup = () => ({
        model: {
          jobs: [],
          charged: new Set<string>(),
          nowMs: NOON,
          lastKey: { one: '', other: '' },
        } as Model,
        real: {
          ...{ db, clock, claims: [], reader: new StoredJobs(db) },
          workers: { one: worker(db, 'one', clock), other: worker(db, 'other', clock) },
        } as Real,
      });
      await fc.asyncModelRun(setup, [...chosen, new Look()]);
    });
    await fc.assert(property, { numRuns: 150 });
    await db.destroy();
  }));
