/** Shows that a command waits, on a terminal alone: others read lines. */

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

export interface Waiting {
  /** Goes on, and says what is waited for. */
  update(text: string): void;
  /** Leaves nothing of it on the screen. */
  end(): void;
}

/** Shows on a terminal that something is waited for, and for how long. The caller must `end` it. */
export function showWaiting(stream: NodeJS.WriteStream = process.stderr): Waiting {
  if (stream.isTTY !== true) return { update: () => undefined, end: () => undefined };
  const startMs = performance.now();
  let turn = 0;
  const end = (): void => {
    if (turn > 0) stream.write('\r\u001b[K');
    process.off('SIGINT', interrupted);
  };
  const interrupted = (): void => {
    end();
    process.exit(130);
  };
  process.on('SIGINT', interrupted);
  return {
    update: (text) => {
      const seconds = Math.floor((performance.now() - startMs) / 1000);
      stream.write(`\r\u001b[K${FRAMES[turn++ % FRAMES.length]} ${text} ${seconds} s`);
    },
    end,
  };
}
