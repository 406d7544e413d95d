/**
 * Splits a run's frame connection into frames. They come from a process that runs the caller's code: a frame of
 * unknown kind or impossible length ends the reading, and no more is held in memory than the largest frame.
 */

const HEADER_BYTES = 5;
const KINDS = { 1: 'ready', 2: 'error', 3: 'value', 4: 'image', 5: 'cut' } as const;
export type FrameKind = (typeof KINDS)[keyof typeof KINDS];

export const IMAGE_BYTES_MAX = 5 << 20;

/** The largest payload, by kind: texts of 64 KiB and 1 MiB may be written as JSON escapes of six bytes each. */
const PAYLOAD_BYTES_MAX: Record<FrameKind, number> = {
  ready: 16,
  error: 1 << 20,
  value: 8 << 20,
  image: IMAGE_BYTES_MAX + (32 << 10),
  cut: 16,
};
/** What the fault handler writes at the deadline fits in this; it is not framed. */
const TAIL_BYTES_MAX = 64 << 10;

export interface Frame {
  kind: FrameKind;
  payload: Buffer;
}

export class FrameReader {
  #chunks: Buffer[] = [];
  #bytes = 0;
  #needed = HEADER_BYTES;
  #broken = false;

  /** Takes more bytes and yields the frames that are complete. */
  *read(chunk: Buffer): Generator<Frame> {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (!this.#broken && this.#bytes >= this.#needed) {
      const pending = this.#joined();
      const kind = KINDS[pending.readUInt8(0) as keyof typeof KINDS];
      const length = pending.readUInt32LE(1);
      this.#needed = HEADER_BYTES + length;
      if (kind === undefined || length > PAYLOAD_BYTES_MAX[kind]) {
        this.#broken = true;
      } else if (this.#bytes >= this.#needed) {
        this.#keep(pending.subarray(this.#needed));
        const payload = pending.subarray(HEADER_BYTES, this.#needed);
        this.#needed = HEADER_BYTES;
        yield { kind, payload };
      }
    }
    if (this.#broken && this.#bytes > 2 * TAIL_BYTES_MAX)
      this.#keep(Buffer.from(this.#joined().subarray(-TAIL_BYTES_MAX)));
  }

  /**
   * What came after the last complete frame, or after the first bytes that were none: the line that was running
   * at the deadline may stand there, in the words of Python's fault handler.
   */
  get tail(): string {
    return this.#joined().subarray(-TAIL_BYTES_MAX).toString('latin1');
  }

  #joined(): Buffer {
    if (this.#chunks.length !== 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]!;
  }

  #keep(rest: Buffer): void {
    this.#chunks = [rest];
    this.#bytes = rest.length;
  }
}
