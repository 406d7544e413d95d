/** Usage as CSV (RFC 4180): one line for each row, without totals, which a spreadsheet adds up itself. */

import { REFUSAL_CODES } from './refusals.ts';
import { CHARGED_STATUSES, USAGE_NUMBERS, type UsageRow } from './report.ts';

/** The line of headings. */
export function csvHead(): string {
  return line([
    'period',
    'key_id',
    'key_name',
    'team',
    ...CHARGED_STATUSES.map((status) => `runs_${status}`),
    ...REFUSAL_CODES.map((code) => `refused_${code}`),
    ...USAGE_NUMBERS,
  ]);
}

/** A row as a line of CSV (RFC 4180). */
export function csvLine(row: UsageRow): string {
  return line([
    row.period,
    row.key_id,
    field(row.key_name),
    field(row.team ?? ''),
    ...CHARGED_STATUSES.map((status) => row.runs[status]),
    ...REFUSAL_CODES.map((code) => row.refused[code]),
    ...USAGE_NUMBERS.map((name) => row[name]),
  ]);
}

function line(fields: (string | number)[]): string {
  return `${fields.join(',')}\r\n`;
}

/**
 * A text of somebody's choice. One that a spreadsheet would take for a formula gets an apostrophe in front, also where
 * the sign stands behind white space, which spreadsheets skip.
 */
function field(text: string): string {
  const safe = /^\s*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
