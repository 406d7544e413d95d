/** `codecell usage`: who has used what, from the data folder, also while the service runs on it. */

import { type Config, loadConfig } from '../config.ts';
import { ArgumentError, type FieldError } from '../shared/errors.ts';
import { openExistingDatabase } from '../store/database.ts';
import { type Grouping, parseRange } from '../usage/range.ts';
import { UsageReports, type UsageRow, type UsageSelection, UsageTotals } from '../usage/report.ts';
import { usageAsCsv, usageAsJson } from '../usage/written.ts';
import { usageTable } from './usage-table.ts';

export interface UsageOptions {
  from?: string;
  to?: string;
  groupBy: Grouping;
  key?: string;
  team?: string;
  json: boolean;
  csv: boolean;
}

/**
 * Prints usage as a table with bars or, for programs, as the JSON or CSV of `GET /v1/usage`.
 * @throws ArgumentError for a range that is none; OperatorError for a data folder without a database.
 */
export async function usage(environment: NodeJS.ProcessEnv, options: UsageOptions): Promise<void> {
  const { config } = loadConfig(environment);
  const selection = selectionOf(options);
  await withReports(config, async (reports) => {
    if (options.json || options.csv) {
      const written = options.csv ? usageAsCsv : usageAsJson;
      for await (const text of written(reports, selection)) await print(text);
      if (options.json) await print('\n');
      return;
    }
    const totals = new UsageTotals();
    const rows: UsageRow[] = [];
    for await (const some of reports.rows(selection, totals)) rows.push(...some);
    await print(usageTable(selection, rows));
  });
}

async function withReports(config: Config, body: (reports: UsageReports) => Promise<void>): Promise<void> {
  const db = await openExistingDatabase(config.dataDir);
  try {
    await body(new UsageReports(db));
  } finally {
    await db.destroy();
  }
}

function selectionOf({ from, to, groupBy, key, team }: UsageOptions): UsageSelection {
  const errors: FieldError[] = [];
  const range = parseRange({ from, to }, Date.now(), errors);
  const [first] = errors;
  if (first !== undefined) throw new ArgumentError(`--${first.path.slice(1)} ${first.message}`);
  return { ...range, groupBy, keyId: key, team };
}

/** Waits for whoever reads, so that a large report is not held in memory. */
function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
