/**
 * Usage as it is written down, in the contract's JSON or as CSV. It is written as it is read, since there may be ten
 * thousand keys in every period.
 */

import { csvHead, csvLine } from './csv.ts';
import { isoTime } from './range.ts';
import { type UsageReports, type UsageSelection, UsageTotals } from './report.ts';

/** A report as the JSON of `GET /v1/usage`, in parts. */
export async function* usageAsJson(reports: UsageReports, selection: UsageSelection): AsyncGenerator<string> {
  const { fromMs, toMs, groupBy } = selection;
  const totals = new UsageTotals();
  const head = JSON.stringify({ from: isoTime(fromMs), to: isoTime(toMs), group_by: groupBy });
  let before = `${head.slice(0, -1)},"data":[`;
  for await (const rows of reports.rows(selection, totals)) {
    yield before + rows.map((row) => JSON.stringify(row)).join(',');
    before = ',';
  }
  yield `${before === ',' ? '' : before}],"totals":${JSON.stringify(totals.sums())}}`;
}

/** A report as CSV, in parts: a line for each row, without totals. */
export async function* usageAsCsv(reports: UsageReports, selection: UsageSelection): AsyncGenerator<string> {
  let before = csvHead();
  for await (const rows of reports.rows(selection, new UsageTotals())) {
    yield before + rows.map(csvLine).join('');
    before = '';
  }
  if (before !== '') yield before;
}
