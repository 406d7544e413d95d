/**
 * Reads a connection to its end without letting the writer set the pace of this process. Every piece costs a turn
 * of the event loop, however small: one that keeps sending very small ones is read at intervals, in which the
 * kernel puts its pieces together and then lets it wait.
 */

import type { Socket } from 'node:net';

const WINDOW_READS = 64;
/** Mean size of the pieces of a window below which the next window is read at intervals. */
const SMALL_BYTES = 512;
const INTERVAL_MS = 1;

/** Calls `take` with all that arrives. */
export function readGently(connection: Socket, take: (chunk: Buffer) => void): void {
  let reads = 0;
  let bytes = 0;
  let slow = false;
  connection.on('data', (chunk: Buffer) => {
    reads++;
    bytes += chunk.length;
    if (reads === WINDOW_READS) {
      slow = bytes < WINDOW_READS * SMALL_BYTES;
      reads = 0;
      bytes = 0;
    }
    take(chunk);
    if (!slow || connection.destroyed) return;
    connection.pause();
    setTimeout(() => connection.resume(), INTERVAL_MS);
  });
}
