import { Readable } from 'node:stream';
import { turnOfOthers } from '../shared/turn.ts';

/** A large body that goes out in parts, as the caller takes them. */
export function inParts(first: Uint8Array, rest: AsyncIterable<Uint8Array>): Readable {
  return Readable.from(paced(first, rest), { objectMode: false });
}

async function* paced(first: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  for await (const part of rest) {
    yield part;
    // The database answers without waiting, and so may the socket: others get their turn here.
    await turnOfOthers();
  }
}
