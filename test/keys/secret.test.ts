import { crc32 } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { generateSecret, hashSecret, isWellFormedSecret } from '../../src/keys/secret.ts';

describe('a generated secret', () => {
  it('has the prefix, 178 random bits and the checksum that scanners compute', () => {
    const secret = generateSecret();
    expect(secret).toMatch(/^ck_[0-9A-Za-z]{36}$/);
    const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    const checksum = [...secret.slice(-6)].reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0);
    expect(checksum).toBe(crc32(secret.slice(0, -6)));
    expect(isWellFormedSecret(secret)).toBe(true);
  });

  it('is another one every time', () => {
    expect(new Set(Array.from({ length: 1000 }, generateSecret)).size).toBe(1000);
  });

  it('is no longer well formed after one typing error', async () => {
    await fc.assert(
      fc.property(fc.integer({ min: 3, max: 38 }), fc.constantFrom(...'05AZaz'), (index, replacement) => {
        const secret = generateSecret();
        const wrong = secret.slice(0, index) + replacement + secret.slice(index + 1);
        expect(isWellFormedSecret(wrong)).toBe(wrong === secret);
      }),
    );
  });

  it('is stored as its SHA-256', () => {
    expect(hashSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});
