/** What the sandbox needs of a logger. */
export interface SandboxLogger {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
