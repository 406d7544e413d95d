/** Bytes in one buffer that grows, however small the pieces in which they arrive. */

const FIRST_BYTES = 4096;

export class ByteStore {
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The bytes so far; valid until the next change. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  append(piece: Buffer): void {
    const needed = this.#length + piece.length;
    if (needed > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length, FIRST_BYTES));
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
    }
    piece.copy(this.#buffer, this.#length);
    this.#length = needed;
  }

  /** Forgets the first `count` bytes. */
  dropFirst(count: number): void {
    this.#buffer = Buffer.from(this.#buffer.subarray(count, this.#length));
    this.#length = this.#buffer.length;
  }
}
