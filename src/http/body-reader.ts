/**
 * Reads the bodies of requests into memory, within two bounds: the size of each, and the size of all that are being
 * read at the same time, since many callers may each send the largest body that is allowed, slowly.
 *
 * A body over the bound is answered as soon as that is known. What is still on its way is then read and thrown
 * away by Node, so that the caller, who is still sending, can read the answer; the server's request timeout ends
 * that. The memory of a body is counted until it has been handed over.
 */

import type { Hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { ServiceError } from '../shared/errors.ts';

export interface BodyLimits {
  /** Bytes of one body. */
  bodyBytesMax: number;
  /** Bytes of all bodies that are being read. */
  totalBytesMax: number;
}

export class BodyReader {
  readonly #limits: BodyLimits;
  #totalBytes = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /**
   * Reads `stream` to its end.
   * @param declaredLength The Content-Length header, where there is one.
   * @param hash Is given the body as it arrives; all of it at once would take 35 ms.
   * @throws ServiceError `payload_too_large`, `overloaded`, or `invalid_request` when the caller stopped sending.
   */
  async read(stream: Readable, declaredLength: string | undefined, hash?: Hash): Promise<Buffer> {
    const { bodyBytesMax, totalBytesMax } = this.#limits;
    if (Number(declaredLength ?? 0) > bodyBytesMax) throw this.#tooLarge();
    // Iterating leaves no listener on the stream, whose closure would keep the chunks while the program runs.
    const chunks: Buffer[] = [];
    let length = 0;
    try {
      for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        chunks.push(chunk);
        hash?.update(chunk);
        length += chunk.length;
        this.#totalBytes += chunk.length;
        if (length > bodyBytesMax) throw this.#tooLarge();
        if (this.#totalBytes > totalBytesMax) throw tooMuchAtOnce();
      }
      return Buffer.concat(chunks, length);
    } catch (error) {
      stream.resume();
      throw error instanceof ServiceError ? error : incomplete(error);
    } finally {
      this.#totalBytes -= length;
    }
  }

  #tooLarge(): ServiceError {
    const maxMb = Math.floor(this.#limits.bodyBytesMax / 2 ** 20);
    return new ServiceError('payload_too_large', `The body is larger than ${maxMb} MiB.`);
  }
}

function tooMuchAtOnce(): ServiceError {
  return new ServiceError('overloaded', 'Too many large requests are arriving at once: send it again.');
}

function incomplete(cause: unknown): ServiceError {
  const detail = 'The connection was closed before the body was complete.';
  return new ServiceError('invalid_request', detail, { cause });
}
