/** What a run that has ended is charged with. It is made of nothing but what its caller sees of it. */

import type { ExecutionRequest } from '../sandbox/execution.ts';
import type { RunCharge } from '../store/usage-store.ts';
import type { Run } from './run.ts';

/** The charge of an ended run. It counts for the hour in which the run ended. */
export function chargeOf(keyId: string, request: ExecutionRequest, run: Run): RunCharge {
  const { usage, limits, finished_at: finishedAt } = run;
  const wallMs = usage.wall_ms ?? 0;
  return {
    id: run.id,
    key_id: keyId,
    status: run.status,
    ended_at: finishedAt === null ? 0 : Date.parse(finishedAt),
    queue_ms: usage.queue_ms ?? 0,
    wall_ms: wallMs,
    cpu_ms: usage.cpu_ms ?? 0,
    memory_mb_ms: limits.memory_mb * wallMs,
    bytes_in: bytes(request.code) + bytes(request.stdin) + bytes(request.inputsJson),
    bytes_out: bytesOut(run),
    images: run.images.length,
  };
}

/** Text as UTF-8, and images as the files that they are, before base64. */
function bytesOut({ stdout, stderr, value, images }: Run): number {
  const text = bytes(stdout) + bytes(stderr) + bytes(value?.text ?? '') + bytes(value?.html ?? '');
  return images.reduce((sum, { data }) => sum + Buffer.byteLength(data, 'base64'), text);
}

function bytes(text: string): number {
  return Buffer.byteLength(text);
}
