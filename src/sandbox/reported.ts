/** What a run reports of itself: read with suspicion, since the program may have written it. */

import type { ReportedError } from './execution.ts';

const NAME_CHARACTERS_MAX = 1024;
const TEXT_CHARACTERS_MAX = 64 << 10;
const LINE_MAX = 1 << 30;

/** The report of an uncaught exception, or null when it makes no sense. */
export function parseErrorFrame(payload: Buffer): ReportedError | null {
  let report: unknown;
  try {
    report = JSON.parse(payload.toString('utf8'));
  } catch {
    return null;
  }
  if (typeof report !== 'object' || report === null) return null;
  const { type, message, line, traceback } = report as Record<string, unknown>;
  if (typeof type !== 'string' || type === '' || typeof message !== 'string') return null;
  return {
    type: type.slice(0, NAME_CHARACTERS_MAX).toWellFormed(),
    message: message.slice(0, TEXT_CHARACTERS_MAX).toWellFormed(),
    line:
      Number.isInteger(line) && (line as number) >= 1 && (line as number) <= LINE_MAX
        ? (line as number)
        : null,
    traceback: typeof traceback === 'string' ? traceback.slice(0, TEXT_CHARACTERS_MAX).toWellFormed() : null,
    hint: null,
  };
}
