/**
 * Reads the bodies of requests into memory, within two bounds: the size of each, and the size of all that are being
 * read at the same time, since many callers may each send the largest body that is allowed, slowly.
 *
 * A body over the bound is answered as soon as that is known. What is still on its way is then read and thrown
 * away by Node, so that the caller, who is still sending, can read the answer; the server's request timeout ends
 * that. The memory of a body is counted until it has been handed over.
 */

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
   * @throws ServiceError `payload_too_large`, `overloaded`, or `invalid_request` when the caller stopped sending.
   */
  read(stream: Readable, declaredLength: string | undefined): Promise<Buffer> {
    if (Number(declaredLength ?? 0) > this.#limits.bodyBytesMax) return Promise.reject(this.#tooLarge());
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let length = 0;
      const settle = (action: () => void) => {
        stream.removeListener('data', onData).removeListener('end', onEnd).removeListener('close', onClose);
        this.#totalBytes -= length;
        action();
      };
      const onData = (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        this.#totalBytes += chunk.length;
        if (length > this.#limits.bodyBytesMax) settle(() => reject(this.#tooLarge()));
        else if (this.#totalBytes > this.#limits.totalBytesMax) settle(() => reject(tooMuchAtOnce()));
      };
      const onEnd = () => settle(() => resolve(Buffer.concat(chunks, length)));
      const onClose = () => settle(() => reject(incomplete()));
      // Without a listener, the error of a connection that breaks would end the process; `close` follows it.
      stream.on('error', () => undefined);
      stream.on('data', onData).on('end', onEnd).on('close', onClose);
    });
  }

  #tooLarge(): ServiceError {
    const maxMb = Math.floor(this.#limits.bodyBytesMax / 2 ** 20);
    return new ServiceError('payload_too_large', `The body is larger than ${maxMb} MiB.`);
  }
}

function tooMuchAtOnce(): ServiceError {
  return new ServiceError('overloaded', 'Too many large requests are arriving at once: send it again.');
}

function incomplete(): ServiceError {
  return new ServiceError('invalid_request', 'The connection was closed before the body was complete.');
}
