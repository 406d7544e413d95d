import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { BodyReader } from '../../src/http/body-reader.ts';

const reader = () => new BodyReader({ bodyBytesMax: 100, totalBytesMax: 150 });

describe('BodyReader', () => {
  it('reads a body to its end, whatever the pieces', async () => {
    const stream = new PassThrough();
    const body = reader().read(stream, undefined);
    for (const piece of ['a', 'bc', '', 'd'.repeat(97)]) stream.write(piece);
    stream.end();
    expect(String(await body)).toBe(`abc${'d'.repeat(97)}`);
  });

  it('refuses a body over its bound, and lets the rest pass', async () => {
    const stream = new PassThrough();
    const body = reader().read(stream, undefined);
    stream.write('x'.repeat(101));
    await expect(body).rejects.toMatchObject({ code: 'payload_too_large' });
    stream.end('y'.repeat(1_000_000));
    await new Promise((resolve) => stream.once('close', resolve));
  });

  it('refuses what would be too much in memory at once, and has room again afterwards', async () => {
    const bodies = reader();
    const streams = [new PassThrough(), new PassThrough(), new PassThrough()];
    const [first, second, third] = streams.map((stream) => bodies.read(stream, undefined));
    streams[0]?.write('x'.repeat(90));
    streams[1]?.write('x'.repeat(90));
    await expect(second).rejects.toMatchObject({ code: 'overloaded' });
    streams[2]?.end('x'.repeat(50));
    expect(await third).toHaveLength(50);
    streams[0]?.end('x'.repeat(10));
    expect(await first).toHaveLength(100);
  });

  it('refuses a body that breaks off, and counts it no longer', async () => {
    const bodies = reader();
    const broken = new PassThrough();
    const body = bodies.read(broken, '100');
    broken.write('x'.repeat(90));
    setImmediate(() => broken.destroy());
    await expect(body).rejects.toMatchObject({ code: 'invalid_request' });
    const stream = new PassThrough();
    stream.end('x'.repeat(100));
    expect(await bodies.read(stream, '100')).toHaveLength(100);
  });
});
