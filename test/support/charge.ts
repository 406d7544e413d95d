import { v7 as uuidv7 } from 'uuid';
import type { RunCharge } from '../../src/store/usage-store.ts';

export const NOON = Date.parse('2026-01-31T12:00:00Z');

/** A run that is charged with nothing but what is said. `startMs` is in its id. */
export function charge(part: Partial<RunCharge> = {}, startMs: number = NOON): RunCharge {
  return {
    id: `run_${uuidv7({ msecs: startMs })}`,
    key_id: 'key_1',
    status: 'succeeded',
    ended_at: NOON,
    queue_ms: 0,
    wall_ms: 0,
    cpu_ms: 0,
    memory_mb_ms: 0,
    bytes_in: 0,
    bytes_out: 0,
    images: 0,
    ...part,
  };
}
