/** The stretch of time that usage is asked for: whole hours, UTC. */

import { DAY_MS, HOUR_MS } from '../shared/clock.ts';
import type { FieldError } from '../shared/errors.ts';
import { parseRfc3339 } from '../shared/rfc3339.ts';
import { hourOf } from '../store/usage-store.ts';

export const GROUPINGS = ['hour', 'day', 'month'] as const;

export type Grouping = (typeof GROUPINGS)[number];

export interface TimeRange {
  /** Start of the first hour, in milliseconds since 1970. */
  fromMs: number;
  /** End of the last hour. */
  toMs: number;
}

const DEFAULT_DAYS = 30;

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/**
 * The range of two texts, each a date or an RFC 3339 time, floored to the hour. Without `to` it ends with the hour
 * that is running, and without `from` it is the 30 days before its end. What is wrong is added to `errors`.
 */
export function parseRange(
  texts: { from?: string | undefined; to?: string | undefined },
  nowMs: number,
  errors: FieldError[],
): TimeRange {
  const read = (name: 'from' | 'to'): number | undefined => {
    const text = texts[name];
    if (text === undefined) return undefined;
    const timeMs = parseTime(text);
    if (timeMs === null) errors.push({ path: `/${name}`, message: NO_TIME });
    return timeMs ?? undefined;
  };
  const from = read('from');
  const toMs = hourOf(read('to') ?? nowMs + HOUR_MS);
  const fromMs = hourOf(from ?? toMs - DEFAULT_DAYS * DAY_MS);
  if (errors.length === 0 && fromMs >= toMs) {
    errors.push({
      path: '/from',
      message: `must be before the end: the hours are those from ${isoTime(fromMs)} up to ${isoTime(toMs)}, which are none`,
    });
  }
  return { fromMs, toMs };
}

const NO_TIME = 'must be a date (2026-01-31) or an RFC 3339 time (2026-01-31T12:00:00Z)';

/** Milliseconds since 1970; null for what is no date or time, as the 30th of February. */
function parseTime(text: string): number | null {
  const time = parseRfc3339(DATE.test(text) ? `${text}T00:00:00Z` : text);
  return time === null || time.getTime() < 0 ? null : time.getTime();
}

/** RFC 3339, UTC, to the second. */
export function isoTime(timeMs: number): string {
  return new Date(timeMs).toISOString().replace('.000Z', 'Z');
}

/** The name of the period that an hour belongs to; names sort as the periods do. */
export function periodOf(hourMs: number, grouping: Grouping): string {
  const text = isoTime(hourMs);
  switch (grouping) {
    case 'hour':
      return text;
    case 'day':
      return text.slice(0, 10);
    case 'month':
      return text.slice(0, 7);
  }
}
