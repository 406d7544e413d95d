/** Usage as tables of 80 columns: who has used most processor time, and when. */

import { isoTime } from '../usage/range.ts';
import type { UsageRow, UsageSelection } from '../usage/report.ts';
import { fitted } from './columns.ts';
import { paint } from './paint.ts';

/** Keys that are shown; programs that want all of them read JSON or CSV. */
const KEYS_MAX = 20;
const BAR_WIDTH = 12;

/** One line of either table. */
interface Line {
  cells: string[];
  cpuMs: number;
}

/** Usage as a table for terminals, with a bar for what each key has of the processor time. */
export function usageTable({ fromMs, toMs }: UsageSelection, rows: UsageRow[]): string {
  const heading = `Usage from ${isoTime(fromMs)} to ${isoTime(toMs)}`;
  if (rows.length === 0) return `${heading}: none.\n`;
  const keys = [...Map.groupBy(rows, (row) => row.key_id).values()]
    .map((its) => ({ name: its.at(-1)?.key_name ?? '', team: its.at(-1)?.team ?? '', ...summary(its) }))
    .sort((one, other) => other.cpuMs - one.cpuMs || other.runs - one.runs);
  const shown = keys.slice(0, KEYS_MAX);
  const periods = [...Map.groupBy(rows, (row) => row.period)].map(([period, its]) => ({
    period,
    ...summary(its),
  }));
  const totalCpuMs = keys.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
  const lines = [
    heading,
    '',
    ...table(
      ['key', 'team'],
      shown.map(({ name, team, ...sums }) => line([name, team], sums)),
      totalCpuMs,
    ),
  ];
  if (keys.length > shown.length) {
    lines.push(
      `and ${(keys.length - shown.length).toLocaleString('en-US')} more keys: --csv or --json has them all`,
    );
  }
  if (periods.length > 1) {
    const body = periods.map(({ period, ...sums }) => line([period], sums));
    lines.push('', ...table(['period'], body, totalCpuMs));
  }
  return `${lines.join('\n')}\n`;
}

interface Summary {
  runs: number;
  notSucceeded: number;
  refused: number;
  cpuMs: number;
}

function summary(rows: UsageRow[]): Summary {
  const result = { runs: 0, notSucceeded: 0, refused: 0, cpuMs: 0 };
  for (const { runs, refused, cpu_ms: cpuMs } of rows) {
    const count = sum(Object.values(runs));
    result.runs += count;
    result.notSucceeded += count - runs.succeeded;
    result.refused += sum(Object.values(refused));
    result.cpuMs += cpuMs;
  }
  return result;
}

function line(names: string[], { runs, notSucceeded, refused, cpuMs }: Summary): Line {
  return {
    cells: [
      ...head(names),
      number(runs, 8),
      number(notSucceeded, 6),
      number(refused, 7),
      duration(cpuMs).padStart(8),
    ],
    cpuMs,
  };
}

/** A name alone, or name and team, in 27 columns. */
function head([name = '', team]: string[]): string[] {
  return team === undefined ? [fitted(name, 27)] : [fitted(name, 18), fitted(team, 8)];
}

/** The bar of the line that has most fills its column; the share is that of everything. */
function table(names: string[], lines: Line[], totalCpuMs: number): string[] {
  const most = Math.max(1, ...lines.map(({ cpuMs }) => cpuMs));
  const heading = [...head(names), '    runs', 'not ok', 'refused', '     CPU'].join(' ');
  return [
    paint('bold', heading),
    ...lines.map(({ cells, cpuMs }) => {
      const share = `${Math.round((100 * cpuMs) / Math.max(1, totalCpuMs))}`.padStart(3);
      // 60 columns and 2, the bar's 12 and 1, and 4: 79.
      return `${cells.join(' ')}  ${paint('cyan', bar(cpuMs / most))} ${share}%`;
    }),
  ];
}

/** Eighths of a character, as far as there is anything to see. */
function bar(share: number): string {
  const eighths = share === 0 ? 0 : Math.max(1, Math.round(share * BAR_WIDTH * 8));
  const rest = ' ▏▎▍▌▋▊▉'.charAt(eighths % 8).trim();
  return ('█'.repeat(Math.floor(eighths / 8)) + rest).padEnd(BAR_WIDTH);
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** In full where it fits, else in thousands, millions and so on. */
function number(value: number, width: number): string {
  const full = value.toLocaleString('en-US');
  return (full.length <= width ? full : compact(value)).padStart(width);
}

function compact(value: number): string {
  return new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 }).format(value);
}

function duration(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  // From here on, minutes would be one character more.
  if (seconds < 5997) return `${(seconds / 60).toFixed(1)} min`;
  const hours = seconds / 3600;
  return hours < 1000 ? `${hours.toFixed(1)} h` : `${compact(hours)} h`;
}
