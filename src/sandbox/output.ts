/** Keeps the first bytes of one output stream, counts the rest. */

/** What is kept of stdout and of stderr, each. */
export const OUTPUT_KEPT_BYTES_MAX = 1 << 20;
/** A program that writes more than this to both together is stopped. */
export const OUTPUT_WRITTEN_BYTES_MAX = 16 << 20;

export class OutputCapture {
  #chunks: Buffer[] = [];
  #keptBytes = 0;
  /** Bytes written so far, kept or not. */
  writtenBytes = 0;

  take(chunk: Buffer): void {
    this.writtenBytes += chunk.length;
    const room = OUTPUT_KEPT_BYTES_MAX - this.#keptBytes;
    if (room <= 0) return;
    const kept = chunk.length <= room ? chunk : chunk.subarray(0, room);
    // A slice of a large read would keep all of it alive.
    this.#chunks.push(kept.length < kept.buffer.byteLength / 2 ? Buffer.from(kept) : kept);
    this.#keptBytes += kept.length;
  }

  get truncated(): boolean {
    return this.writtenBytes > OUTPUT_KEPT_BYTES_MAX;
  }

  /** The text, invalid UTF-8 as U+FFFD; a cut never leaves half a character. */
  text(): string {
    const bytes = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
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
