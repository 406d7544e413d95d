/** Resolves once everybody else who is ready has had a turn on the one thread. */
export function turnOfOthers(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
