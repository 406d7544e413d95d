/**
 * Calls `task` every `intervalMs`, never twice at once, and does not keep the process alive.
 * @param onError Gets what a call throws; the next one follows all the same.
 * @returns what stops it, and resolves once a call under way has ended.
 */
export function every(
  intervalMs: number,
  task: () => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let underWay: Promise<void> | null = null;
  const timer = setInterval(() => {
    underWay ??= task()
      .catch(onError)
      .finally(() => {
        underWay = null;
      });
  }, intervalMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await underWay;
  };
}
