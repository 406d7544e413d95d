/**
 * Usage as it is written down, in the contract's JSON or as CSV. It is written as it is read, since there may be ten
 * thousand keys in every period, and in pieces, since others want their turn.
 */

import { csvHead, csvLine } from './csv.ts';
import { isoTime } from './range.ts';
import type { UsageReports, UsageRow, UsageSelection } from './report.ts';
import { UsageTotals } from './report.ts';

/** Rows that are written at once: 3 ms. */
const ROWS_AT_ONCE = 1000;

export async function* usageAsJson(reports: UsageReports, selection: UsageSelection): AsyncGenerator<string> {
  const { fromMs, toMs, groupBy } = selection;
  const totals = new UsageTotals();
  const head = JSON.stringify({ from: isoTime(fromMs), to: isoTime(toMs), group_by: groupBy });
  let before = `${head.slice(0, -1)},"data":[`;
  for await (const rows of pieces(reports.periods(selection, totals))) {
    yield before + rows.map((row) => JSON.stringify(row)).join(',');
    before = ',';
  }
  yield `${before === ',' ? '' : before}],"totals":${JSON.stringify(totals.sums())}}`;
}

export async function* usageAsCsv(reports: UsageReports, selection: UsageSelection): AsyncGenerator<string> {
  let before = csvHead();
  for await (const rows of pieces(reports.periods(selection, new UsageTotals()))) {
    yield before + rows.map(csvLine).join('');
    before = '';
  }
  if (before !== '') yield before;
}

async function* pieces(periods: AsyncIterable<UsageRow[]>): AsyncGenerator<UsageRow[]> {
  for await (const rows of periods) {
    for (let start = 0; start < rows.length; start += ROWS_AT_ONCE) {
      yield rows.slice(start, start + ROWS_AT_ONCE);
    }
  }
}
