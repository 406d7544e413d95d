/** Keeps the first bytes of one output stream, counts the rest. */

import { ByteStore } from './byte-store.ts';

/** What is kept of stdout and of stderr, each. */
export const OUTPUT_KEPT_BYTES_MAX = 1 << 20;
/** A program that writes more than this to both together is stopped. */
export const OUTPUT_WRITTEN_BYTES_MAX = 16 << 20;

export class OutputCapture {
  readonly #kept = new ByteStore();
  /** Bytes written so far, kept or not. */
  writtenBytes = 0;

  /** Takes more of the stream. Answers the part that is kept. */
  take(chunk: Buffer): Buffer {
    this.writtenBytes += chunk.length;
    const kept = chunk.subarray(0, OUTPUT_KEPT_BYTES_MAX - this.#kept.length);
    if (kept.length > 0) this.#kept.append(kept);
    return kept;
  }

  get truncated(): boolean {
    return this.writtenBytes > OUTPUT_KEPT_BYTES_MAX;
  }

  /** The text, invalid UTF-8 as U+FFFD; a cut never leaves half a character. */
  text(): string {
    const { bytes } = this.#kept;
    return (this.truncated ? bytes.subarray(0, wholeCharacters(bytes)) : bytes).toString('utf8');
  }
}

/** The length of `bytes` without an unfinished UTF-8 character at its end. */
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
