/**
 * Usage in the database: one row for each run of the last day and, for 400 days, what they add up to by key, UTC hour
 * and outcome. Both are written in one transaction, so that neither can say what the other does not.
 *
 * Cost: the statements are compiled once, and a batch adds up in memory before it touches an hour, so a hundred runs of
 * one key change one row of `usage_hours`. A run alone takes 0.05 ms, and no more with a million rows: an hour's row is
 * found by its primary key.
 */

import type { CompiledQuery, Kysely, Transaction } from 'kysely';
import { DAY_MS, HOUR_MS } from '../shared/clock.ts';
import { turnOfOthers } from '../shared/turn.ts';
import { batchWithoutDisk } from './dialect.ts';
import { quickTransaction } from './quick-transaction.ts';
import type { ChargeColumns, Database, UsageHoursTable, UsageRunsTable } from './schema.ts';

/** Usage hours are kept this long, and runs one by one a day. */
const HOURS_KEPT_MS = 400 * DAY_MS;
const RUNS_KEPT_MS = DAY_MS;

/** Runs that are deleted at once; others wait 3 ms for it. */
const DELETED_AT_ONCE = 1000;

/** What an ended run is charged with. */
export type RunCharge = UsageRunsTable;

/** Refusals of one kind, of one key within one hour. */
export interface Refusals {
  key_id: string;
  hour: number;
  outcome: string;
  count: number;
}

/** The start of the hour of a time, in milliseconds since 1970. */
export function hourOf(timeMs: number): number {
  return timeMs - (timeMs % HOUR_MS);
}

/** What is added to. */
export const NO_CHARGE: ChargeColumns = {
  queue_ms: 0,
  wall_ms: 0,
  cpu_ms: 0,
  memory_mb_ms: 0,
  bytes_in: 0,
  bytes_out: 0,
  images: 0,
};

/** The columns that are added up. */
export const CHARGE_COLUMNS = Object.keys(NO_CHARGE) as (keyof ChargeColumns)[];

const RUN_COLUMNS = ['id', 'key_id', 'status', 'ended_at', ...CHARGE_COLUMNS] as const;
const HOUR_COLUMNS = ['hour', 'key_id', 'outcome', 'count', ...CHARGE_COLUMNS] as const;

export class UsageStore {
  readonly #db: Kysely<Database>;
  readonly #insertRun: CompiledQuery;
  readonly #addToHour: CompiledQuery;

  constructor(db: Kysely<Database>) {
    this.#db = db;
    this.#insertRun = db
      .insertInto('usage_runs')
      .values({ id: '', key_id: '', status: '', ended_at: 0, ...NO_CHARGE })
      .compile();
    this.#addToHour = db
      .insertInto('usage_hours')
      .values({ hour: 0, key_id: '', outcome: '', count: 0, ...NO_CHARGE })
      .onConflict((conflict) =>
        conflict
          .columns(['hour', 'key_id', 'outcome'])
          .doUpdateSet((row) =>
            Object.fromEntries(
              (['count', ...CHARGE_COLUMNS] as const).map((name) => [
                name,
                row(`usage_hours.${name}`, '+', row.ref(`excluded.${name}`)),
              ]),
            ),
          ),
      )
      .compile();
  }

  /** Adds runs that have ended and refusals: all of them or, when it throws, none. */
  async add(runs: RunCharge[], refusals: Refusals[]): Promise<void> {
    await this.#db.executeQuery(batchWithoutDisk(this.#queries(runs, refusals)));
  }

  /** As `add`, in a transaction of the caller's. */
  async addWithin(
    transaction: Transaction<Database>,
    runs: RunCharge[],
    refusals: Refusals[],
  ): Promise<void> {
    for (const query of this.#queries(runs, refusals)) await transaction.executeQuery(query);
  }

  #queries(runs: RunCharge[], refusals: Refusals[]): CompiledQuery[] {
    return [
      ...runs.map((run) => ({ ...this.#insertRun, parameters: RUN_COLUMNS.map((name) => run[name]) })),
      ...byHour(runs, refusals).map((hour) => ({
        ...this.#addToHour,
        parameters: HOUR_COLUMNS.map((name) => hour[name]),
      })),
    ];
  }

  /** Throws unless the database can be written to. */
  async probe(): Promise<void> {
    await quickTransaction(this.#db, async (transaction) => {
      await this.addWithin(transaction, [], [{ key_id: '', hour: 0, outcome: 'probe', count: 1 }]);
      await transaction.deleteFrom('usage_hours').where('hour', '=', 0).execute();
    });
  }

  /** Processor milliseconds by key of the hours from `fromMs` on. */
  async cpuMsSince(fromMs: number): Promise<Map<string, number>> {
    const rows = await this.#db
      .selectFrom('usage_hours')
      .where('hour', '>=', fromMs)
      .where('cpu_ms', '>', 0)
      .groupBy('key_id')
      .select((select) => ['key_id', select.fn.sum<number>('cpu_ms').as('cpu_ms')])
      .execute();
    return new Map(rows.map((row) => [row.key_id, row.cpu_ms]));
  }

  /** Deletes what is older than is kept, in parts, so that others get their turn in between. */
  async purge(nowMs: number): Promise<void> {
    for (;;) {
      const { hour } = await this.#db
        .selectFrom('usage_hours')
        .select((select) => select.fn.min('hour').as('hour'))
        .executeTakeFirstOrThrow();
      if (hour === null || hour >= hourOf(nowMs - HOURS_KEPT_MS)) break;
      await quickTransaction(this.#db, (transaction) =>
        transaction.deleteFrom('usage_hours').where('hour', '=', hour).execute(),
      );
      await turnOfOthers();
    }
    for (let deleted = DELETED_AT_ONCE; deleted === DELETED_AT_ONCE; ) {
      const old = this.#db
        .selectFrom('usage_runs')
        .where('id', '<', firstRunIdOf(nowMs - RUNS_KEPT_MS))
        .select('id')
        .orderBy('id')
        .limit(DELETED_AT_ONCE);
      const [result] = await quickTransaction(this.#db, (transaction) =>
        transaction.deleteFrom('usage_runs').where('id', 'in', old).execute(),
      );
      deleted = Number(result?.numDeletedRows ?? 0);
      await turnOfOthers();
    }
  }
}

function byHour(runs: RunCharge[], refusals: Refusals[]): UsageHoursTable[] {
  const hours = new Map<string, UsageHoursTable>();
  for (const run of runs) {
    const { key_id, status: outcome } = run;
    const hour = hourOf(run.ended_at);
    const name = `${hour} ${key_id} ${outcome}`;
    const sum = hours.get(name) ?? { hour, key_id, outcome, count: 0, ...NO_CHARGE };
    hours.set(name, sum);
    sum.count++;
    for (const column of CHARGE_COLUMNS) sum[column] += run[column];
  }
  return [...hours.values(), ...refusals.map((refusal) => ({ ...NO_CHARGE, ...refusal }))];
}

/** Ids are UUIDv7: they begin with their time. */
function firstRunIdOf(timeMs: number): string {
  const hex = Math.max(0, timeMs).toString(16).padStart(12, '0');
  return `run_${hex.slice(0, 8)}-${hex.slice(8)}`;
}
