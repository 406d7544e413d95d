import { type DestinationStream, destination, type Logger, pino } from 'pino';

/** Bytes of log lines that are held while they cannot be written. */
const HELD_BYTES_MAX = 2 ** 20;

/** The log: JSON lines, on standard error unless told otherwise. */
export function createLogger(level: string, to: DestinationStream = standardError()): Logger {
  return pino(
    {
      level,
      base: null,
      messageKey: 'message',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    to,
  );
}

/** Lines that cannot be written, as on a full disk, are held for a while and then dropped: the service goes on. */
function standardError(): DestinationStream {
  const stream = destination({ fd: 2, sync: true, maxLength: HELD_BYTES_MAX });
  stream.on('error', () => undefined);
  return stream;
}
