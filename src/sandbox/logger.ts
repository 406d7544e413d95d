/** What the sandbox needs of a logger. */
export interface SandboxLogger {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** For commands: what goes wrong is in what they print, and a log would only say it twice. */
export const SILENT_LOGGER: SandboxLogger = { warn: () => undefined, error: () => undefined };
