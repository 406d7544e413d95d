/**
 * Splits a run's frame connection into frames. They come from a process that runs the caller's code: a frame of
 * unknown kind or impossible length ends the reading, as do more frames than any run has reason to send, and no
 * more is held in memory than the largest frame.
 */

import { ByteStore } from './byte-store.ts';

const HEADER_BYTES = 5;
const KINDS = { 1: 'ready', 2: 'error', 3: 'value', 4: 'image', 5: 'cut' } as const;
export type FrameKind = (typeof KINDS)[keyof typeof KINDS];

export const IMAGE_BYTES_MAX = 5 << 20;
/** What precedes a picture or a value: names and numbers. */
export const DESCRIPTION_BYTES_MAX = 16 << 10;
export const TEXT_BYTES_MAX = 64 << 10;
export const MARKUP_BYTES_MAX = 1 << 20;

/** The largest payload, by kind. The two texts of an error may be written as JSON escapes of six bytes each. */
const PAYLOAD_BYTES_MAX: Record<FrameKind, number> = {
  ready: 16,
  error: 12 * TEXT_BYTES_MAX + DESCRIPTION_BYTES_MAX,
  value: 16 + DESCRIPTION_BYTES_MAX + TEXT_BYTES_MAX + 2 * MARKUP_BYTES_MAX,
  image: 4 + DESCRIPTION_BYTES_MAX + IMAGE_BYTES_MAX,
  cut: 16,
};
/** 64 images, each perhaps with a cut before it and after it, a value, an error. */
const FRAMES_MAX = 256;
/** What the fault handler writes at the deadline fits in this; it is not framed. */
const TAIL_BYTES_MAX = 64 << 10;

export interface Frame {
  kind: FrameKind;
  /** Valid until the next call of `read`. */
  payload: Buffer;
}

export class FrameReader {
  readonly #store = new ByteStore();
  #needed = HEADER_BYTES;
  #frames = 0;
  #broken = false;

  /** Takes more bytes and yields the frames that are complete. */
  *read(chunk: Buffer): Generator<Frame> {
    this.#store.append(chunk);
    let at = 0;
    while (!this.#broken && this.#store.length - at >= this.#needed) {
      const pending = this.#store.bytes.subarray(at);
      const kind = KINDS[pending.readUInt8(0) as keyof typeof KINDS];
      const length = pending.readUInt32LE(1);
      this.#needed = HEADER_BYTES + length;
      if (kind === undefined || length > PAYLOAD_BYTES_MAX[kind] || this.#frames === FRAMES_MAX) {
        this.#broken = true;
      } else if (pending.length >= this.#needed) {
        at += this.#needed;
        this.#frames++;
        yield { kind, payload: pending.subarray(HEADER_BYTES, this.#needed) };
        this.#needed = HEADER_BYTES;
      }
    }
    if (at > 0) this.#store.dropFirst(at);
    if (this.#broken && this.#store.length > 2 * TAIL_BYTES_MAX) {
      this.#store.dropFirst(this.#store.length - TAIL_BYTES_MAX);
    }
  }

  /** True once something came that is no frame: nothing more will be understood, but for `tail`. */
  get broken(): boolean {
    return this.#broken;
  }

  /**
   * What came after the last complete frame, or after the first bytes that were none: the line that was running
   * at the deadline may stand there, in the words of Python's fault handler.
   */
  get tail(): string {
    return this.#store.bytes.subarray(-TAIL_BYTES_MAX).toString('latin1');
  }
}
