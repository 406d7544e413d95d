/** Pictures by their first bytes: signature, and width and height where the format says them. Never decoded. */

export const MEDIA_TYPES = {
  png: 'image/png',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  svg: 'image/svg+xml',
  pdf: 'application/pdf',
} as const;
export type PictureFormat = keyof typeof MEDIA_TYPES;

export interface Size {
  width: number;
  height: number;
}

/** The size in pixels of a raster picture; null for a vector format; undefined when the data are not of the format. */
export function pictureSize(format: PictureFormat, data: Buffer): Size | null | undefined {
  switch (format) {
    case 'png':
      return pngSize(data);
    case 'jpg':
      return jpegSize(data);
    case 'webp':
      return webpSize(data);
    case 'svg':
      return /^(\uFEFF)?\s*<(\?xml|!DOCTYPE svg|!--|svg)/.test(data.toString('utf8', 0, 256))
        ? null
        : undefined;
    case 'pdf':
      return data.toString('latin1', 0, 5) === '%PDF-' ? null : undefined;
  }
}

function pngSize(data: Buffer): Size | undefined {
  const signature =
    data.toString('latin1', 0, 8) === '\x89PNG\r\n\x1a\n' && data.toString('latin1', 12, 16) === 'IHDR';
  return signature && data.length >= 24 ? size(data.readUInt32BE(16), data.readUInt32BE(20)) : undefined;
}

/** ITU T.81: segments up to the frame header, whose marker is one of SOF0 to SOF15 without DHT, JPG and DAC. */
function jpegSize(data: Buffer): Size | undefined {
  if (data.length < 4 || data.readUInt16BE(0) !== 0xffd8) return undefined;
  for (let at = 2; at + 9 <= data.length; at += 2 + data.readUInt16BE(at + 2)) {
    if (data[at] !== 0xff) return undefined;
    const marker = data[at + 1]!;
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return size(data.readUInt16BE(at + 7), data.readUInt16BE(at + 5));
    }
  }
  return undefined;
}

/** RFC 9649, section 2: the first chunk is lossy, lossless or extended, each with the size at another place. */
function webpSize(data: Buffer): Size | undefined {
  if (
    data.length < 30 ||
    data.toString('latin1', 0, 4) !== 'RIFF' ||
    data.toString('latin1', 8, 12) !== 'WEBP'
  ) {
    return undefined;
  }
  switch (data.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return size(data.readUInt16LE(26) & 0x3fff, data.readUInt16LE(28) & 0x3fff);
    case 'VP8L': {
      const bits = data.readUInt32LE(21);
      return size((bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1);
    }
    case 'VP8X':
      return size(data.readUIntLE(24, 3) + 1, data.readUIntLE(27, 3) + 1);
    default:
      return undefined;
  }
}

function size(width: number, height: number): Size | undefined {
  return width > 0 && height > 0 ? { width, height } : undefined;
}
