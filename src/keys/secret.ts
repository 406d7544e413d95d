/**
 * The secret of a key: `ck_`, 30 random base62 characters (178 bits), and 6 characters of CRC-32 over what
 * precedes them. The prefix lets secret scanners find a leaked key; the checksum lets them, and us, tell a
 * real one from a typing error without a look at the database.
 */

import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const PREFIX = 'ck_';
const RANDOM_LENGTH = 30;
const CHECKSUM_LENGTH = 6;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** A new secret from the system's random source. */
export function generateSecret(): string {
  const body = `${PREFIX}${randomBase62(RANDOM_LENGTH)}`;
  return `${body}${checksum(body)}`;
}

/** True when `text` has the form of a generated secret and its checksum is right. It says nothing of validity. */
export function isWellFormedSecret(text: string): boolean {
  if (!/^ck_[0-9A-Za-z]{36}$/.test(text)) return false;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  return text.endsWith(checksum(body));
}

/**
 * What is stored of a secret: its SHA-256, in hexadecimal. A slow hash would add nothing, since nobody can
 * guess 178 random bits, and would cost every request.
 */
export function hashSecret(secret: string): string {
  return hash('sha256', secret);
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let index = 0; index < CHECKSUM_LENGTH; index++) {
    text = (BASE62[rest % 62] ?? '') + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}

/** Bytes of 248 and above are thrown away, so that every character is equally likely. */
function randomBase62(length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 248 && text.length < length) text += BASE62[byte % 62];
    }
  }
  return text;
}
