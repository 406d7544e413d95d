/** Usage as it is shown: what the runs of each key add up to by period. */

import type { Kysely } from 'kysely';
import { ENVIRONMENT_KEY } from '../keys/key.ts';
import { turnOfOthers } from '../shared/turn.ts';
import type { Database } from '../store/schema.ts';
import { type UsageHour, usageHours } from '../store/usage-queries.ts';
import { CHARGE_COLUMNS, NO_CHARGE } from '../store/usage-store.ts';
import { type Grouping, periodOf, type TimeRange } from './range.ts';
import { REFUSAL_CODES, type RefusalCode } from './refusals.ts';

/** The statuses that are charged; a run that the service lost is not. */
export const CHARGED_STATUSES = [
  'succeeded',
  'failed',
  'timed_out',
  'memory_exceeded',
  'output_exceeded',
  'crashed',
  'cancelled',
] as const;

export type ChargedStatus = (typeof CHARGED_STATUSES)[number];

/** What is added up besides runs and refusals, in the contract's order. */
export const USAGE_NUMBERS = [
  'wall_ms',
  'cpu_ms',
  'queue_ms',
  'memory_mb_seconds',
  'bytes_in',
  'bytes_out',
  'images',
] as const;

export type UsageSums = {
  runs: Record<ChargedStatus, number>;
  refused: Record<RefusalCode, number>;
} & Record<(typeof USAGE_NUMBERS)[number], number>;

export interface UsageRow extends UsageSums {
  period: string;
  key_id: string;
  /** As it is called today. */
  key_name: string;
  /** The team that it belongs to today. */
  team: string | null;
}

export interface UsageSelection extends TimeRange {
  groupBy: Grouping;
  keyId?: string | undefined;
  team?: string | undefined;
}

/** Reports of usage. */
export class UsageReports {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /**
   * Every row, by period and key, some at a time: no answer is held in memory as a whole, and others have their turn
   * meanwhile. `totals` is added to on the way.
   */
  async *rows(selection: UsageSelection, totals: UsageTotals): AsyncGenerator<UsageRow[]> {
    const { groupBy, team } = selection;
    let period = new Period('');
    for await (const hours of usageHours(this.#db, selection)) {
      for (const hour of hours) {
        if (team !== undefined && hour.team !== team) continue;
        const name = periodOf(hour.hour, groupBy);
        if (name !== period.name) {
          yield* period.rows();
          period = new Period(name);
        }
        period.add(hour);
        totals.add(hour);
      }
    }
    yield* period.rows();
  }
}

/** Rows that are made, and written, at once: 3 ms. */
const ROWS_AT_ONCE = 200;

/** What is known of one period. */
class Period {
  readonly name: string;
  readonly #keys = new Map<string, { latest: UsageHour; totals: UsageTotals }>();

  constructor(name: string) {
    this.name = name;
  }

  add(hour: UsageHour): void {
    const key = this.#keys.get(hour.key_id) ?? { latest: hour, totals: new UsageTotals() };
    this.#keys.set(hour.key_id, key);
    key.latest = hour;
    key.totals.add(hour);
  }

  async *rows(): AsyncGenerator<UsageRow[]> {
    const ids = [...this.#keys.keys()].sort();
    for (let start = 0; start < ids.length; start += ROWS_AT_ONCE) {
      yield ids.slice(start, start + ROWS_AT_ONCE).map((id) => this.#row(id));
      await turnOfOthers();
    }
  }

  #row(id: string): UsageRow {
    const { latest, totals } = this.#keys.get(id)!;
    return {
      period: this.name,
      key_id: id,
      key_name: latest.key_name ?? (id === ENVIRONMENT_KEY.id ? ENVIRONMENT_KEY.name : id),
      team: latest.team,
      ...totals.sums(),
    };
  }
}

/** Adds up hours. Memory is added in whole MB × milliseconds, so that the sum does not depend on the order. */
export class UsageTotals {
  readonly #counts = new Map<string, number>();
  readonly #charge = { ...NO_CHARGE };

  add(hour: UsageHour): void {
    this.#counts.set(hour.outcome, (this.#counts.get(hour.outcome) ?? 0) + hour.count);
    for (const name of CHARGE_COLUMNS) this.#charge[name] += hour[name];
  }

  sums(): UsageSums {
    const { wall_ms, cpu_ms, queue_ms, memory_mb_ms, bytes_in, bytes_out, images } = this.#charge;
    return {
      runs: this.#countsOf(CHARGED_STATUSES),
      refused: this.#countsOf(REFUSAL_CODES),
      wall_ms,
      cpu_ms,
      queue_ms,
      memory_mb_seconds: memory_mb_ms / 1000,
      bytes_in,
      bytes_out,
      images,
    };
  }

  #countsOf<Name extends string>(names: readonly Name[]): Record<Name, number> {
    const counts = {} as Record<Name, number>;
    for (const name of names) counts[name] = this.#counts.get(name) ?? 0;
    return counts;
  }
}
