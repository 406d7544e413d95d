/** What a caller may say of a key, and the rules for it: the same over HTTP and on the command line. */

import type { FieldError } from '../shared/errors.ts';
import { parseRfc3339 } from '../shared/rfc3339.ts';
import type { Key, KeyLimits, Role } from './key.ts';
import { LIMIT_BOUNDS, LIMIT_NAMES, type LimitName } from './limit-bounds.ts';

/** The fields of a key that are the caller's. In a change, what is absent stays and null takes away. */
export interface KeyFields {
  name?: string;
  team?: string | null;
  role?: Role;
  limits?: { [Name in LimitName]?: number | null };
  expires_at?: string | null;
}

/** Characters of a name or a team. */
export const NAME_LENGTH_MAX = 200;

/** `key` with the fields put in. What is wrong is added to `errors`, and the result is then of no use. */
export function withFields(key: Key, fields: KeyFields, nowMs: number, errors: FieldError[]): Key {
  const changed = { ...key };
  if (fields.name !== undefined) {
    checkName('/name', fields.name, errors);
    changed.name = fields.name;
  }
  if (fields.team !== undefined) {
    if (fields.team !== null) checkName('/team', fields.team, errors);
    changed.team = fields.team;
  }
  if (fields.role !== undefined) changed.role = fields.role;
  if (fields.limits !== undefined) changed.limits = mergedLimits(key.limits, fields.limits, errors);
  if (fields.expires_at !== undefined) {
    changed.expiresAt = fields.expires_at === null ? null : expiry(fields.expires_at, nowMs, errors);
  }
  return changed;
}

function checkName(path: string, text: string, errors: FieldError[]): void {
  const message = nameProblem(text);
  if (message !== null) errors.push({ path, message });
}

function nameProblem(text: string): string | null {
  if (!text.isWellFormed()) {
    return 'has half a surrogate pair (\\ud800 to \\udfff), which is not a character: leave it out';
  }
  const { length } = [...text];
  if (length > NAME_LENGTH_MAX) return `has ${length} characters; at most ${NAME_LENGTH_MAX} are allowed`;
  if (text.trim() === '') return 'must have at least one character that is not a space';
  // They would break tables, logs and CSV for whoever reads them.
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return 'must not have line breaks or other control characters';
  return null;
}

function mergedLimits(
  limits: KeyLimits,
  changes: NonNullable<KeyFields['limits']>,
  errors: FieldError[],
): KeyLimits {
  const merged = { ...limits };
  for (const name of LIMIT_NAMES) {
    const value = changes[name];
    if (value === undefined) continue;
    const { min, max } = LIMIT_BOUNDS[name];
    if (value === null) {
      delete merged[name];
    } else if (Number.isInteger(value) && value >= min && value <= max) {
      merged[name] = value;
    } else {
      errors.push({ path: `/limits/${name}`, message: `must be a whole number, ${min} to ${max}` });
    }
  }
  if (merged.burst !== undefined && merged.requests_per_minute === undefined) {
    errors.push({
      path: '/limits/burst',
      message: 'needs requests_per_minute: set that too, or leave burst away',
    });
  }
  return merged;
}

function expiry(text: string, nowMs: number, errors: FieldError[]): Date | null {
  const path = '/expires_at';
  const date = parseRfc3339(text);
  if (date === null) {
    errors.push({ path, message: 'must be a time as RFC 3339 has it, such as 2030-12-31T23:59:59Z' });
  } else if (date.getTime() <= nowMs) {
    errors.push({ path, message: 'must be in the future; to end a key now, revoke it' });
  }
  return date;
}
