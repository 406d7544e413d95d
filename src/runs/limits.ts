/** Limits of one run: what may be asked for and what holds when nothing is. */

import type { KeyLimits } from '../keys/key.ts';
import { LIMIT_BOUNDS } from '../keys/limit-bounds.ts';
import type { FieldError } from '../shared/errors.ts';
import type { RunLimits } from './run.ts';

export const TIMEOUT_MS_MAX = LIMIT_BOUNDS.max_timeout_ms.max;
export const TIMEOUT_MS_DEFAULT = TIMEOUT_MS_MAX;
export const MEMORY_MB_MIN = LIMIT_BOUNDS.max_memory_mb.min;
export const MEMORY_MB_DEFAULT = 512;

/** Caps of what a program is given, in bytes of UTF-8; of `inputs`, of its JSON text. */
export const FIELD_BYTES_MAX = { code: 2 ** 20, stdin: 4 * 2 ** 20, inputs: 4 * 2 ** 20 };

/** What a request asks for. */
export interface RequestedLimits {
  timeout_ms?: number | undefined;
  memory_mb?: number | undefined;
}

/** The highest limits that a key may ask for, and what it gets without asking. */
export interface LimitRange {
  max: RunLimits;
  default: RunLimits;
}

/** The range of a key: the service's ceilings or its own, whichever is lower. */
export function limitRange(keyLimits: KeyLimits, memoryMbMax: number): LimitRange {
  const max = {
    timeout_ms: Math.min(TIMEOUT_MS_MAX, keyLimits.max_timeout_ms ?? TIMEOUT_MS_MAX),
    memory_mb: Math.min(memoryMbMax, keyLimits.max_memory_mb ?? memoryMbMax),
  };
  return {
    max,
    default: {
      timeout_ms: Math.min(TIMEOUT_MS_DEFAULT, max.timeout_ms),
      memory_mb: Math.min(MEMORY_MB_DEFAULT, max.memory_mb),
    },
  };
}

/**
 * The limits in force for a request. What is above the key's maximum is never lowered in silence: it is added to
 * `errors`.
 */
export function resolveLimits(
  requested: RequestedLimits,
  range: LimitRange,
  errors: FieldError[],
): RunLimits {
  const resolved = { ...range.default };
  for (const name of ['timeout_ms', 'memory_mb'] as const) {
    const value = requested[name];
    if (value === undefined) continue;
    if (value > range.max[name]) {
      errors.push({
        path: `/${name}`,
        message: `must be at most ${range.max[name]}, the maximum of this key`,
      });
    }
    resolved[name] = value;
  }
  return resolved;
}
