/** What a run reports of itself: read with suspicion, since the program may have written it. */

import type { ReportedError, RunImage, RunValue } from './execution.ts';
import { DESCRIPTION_BYTES_MAX, IMAGE_BYTES_MAX, MARKUP_BYTES_MAX, TEXT_BYTES_MAX } from './frames.ts';
import { MEDIA_TYPES, type PictureFormat, pictureSize } from './pictures.ts';

const NAME_CHARACTERS_MAX = 1024;
const NUMBER_MAX = 1 << 30;
/** Deeper than what `sandbox/jsonable.py` writes. */
const DEPTH_MAX = 200;
const IMAGE_HEADER_BYTES = 4;
const VALUE_HEADER_BYTES = 16;
export const IMAGES_MAX = 64;
export const ALL_IMAGES_BYTES_MAX = 32 << 20;

/** The report of an uncaught exception, or null when it makes no sense. */
export function parseErrorFrame(payload: Buffer): ReportedError | null {
  const { type, message, line, traceback, hint } = parseFields(payload);
  if (typeof type !== 'string' || typeof message !== 'string') return null;
  return {
    type: shortText(type),
    message: longText(message),
    line: positiveInteger(line),
    traceback: typeof traceback === 'string' ? longText(traceback) : null,
    hint: typeof hint === 'string' ? shortText(hint) : null,
  };
}

/** The value of the last expression and whether something of it was cut, or null when it makes no sense. */
export function parseValueFrame(payload: Buffer): { value: RunValue; cut: boolean } | null {
  if (payload.length < VALUE_HEADER_BYTES) return null;
  const [headBytes, textBytes, htmlBytes, jsonBytes] = [0, 4, 8, 12].map((at) => payload.readUInt32LE(at));
  const textAt = VALUE_HEADER_BYTES + headBytes!;
  const htmlAt = textAt + textBytes!;
  const jsonAt = htmlAt + htmlBytes!;
  if (jsonAt + jsonBytes! !== payload.length || headBytes! > DESCRIPTION_BYTES_MAX) return null;
  if (textBytes! > TEXT_BYTES_MAX || htmlBytes! > MARKUP_BYTES_MAX || jsonBytes! > MARKUP_BYTES_MAX)
    return null;
  const { type, html, cut } = parseFields(payload.subarray(VALUE_HEADER_BYTES, textAt));
  if (typeof type !== 'string') return null;
  const value = {
    type: shortText(type),
    text: payload.toString('utf8', textAt, htmlAt),
    html: html === true ? payload.toString('utf8', htmlAt, jsonAt) : null,
    json: jsonText(payload.subarray(jsonAt)),
  };
  return { value, cut: cut === true };
}

/** JSON text that is known to be valid, or null for what is null or makes no sense. */
function jsonText(bytes: Buffer): string | null {
  const text = bytes.toString('utf8');
  if (text === 'null' || nestingOf(bytes) > DEPTH_MAX) return null;
  try {
    JSON.parse(text);
    return text;
  } catch {
    return null;
  }
}

/** Collects the images of one run, within the caps of the contract. */
export class ReportedImages {
  readonly images: RunImage[] = [];
  cut = false;
  #bytes = 0;

  /** Takes an image frame; one that is no picture of its format is left out. */
  take(payload: Buffer): void {
    if (payload.length < IMAGE_HEADER_BYTES) return;
    const descriptionBytes = payload.readUInt32LE(0);
    const pictureAt = IMAGE_HEADER_BYTES + descriptionBytes;
    if (descriptionBytes > DESCRIPTION_BYTES_MAX || pictureAt > payload.length) return;
    const { format, width, height, name, title } = parseFields(
      payload.subarray(IMAGE_HEADER_BYTES, pictureAt),
    );
    const data = payload.subarray(pictureAt);
    if (typeof format !== 'string' || !Object.hasOwn(MEDIA_TYPES, format)) return;
    const size = pictureSize(format as PictureFormat, data);
    if (size === undefined) return;
    const full = this.images.length >= IMAGES_MAX || this.#bytes + data.length > ALL_IMAGES_BYTES_MAX;
    if (full || data.length > IMAGE_BYTES_MAX) {
      this.cut = true;
      return;
    }
    this.#bytes += data.length;
    this.images.push({
      format,
      media_type: MEDIA_TYPES[format as PictureFormat],
      data: data.toString('base64'),
      width: size?.width ?? positiveInteger(width),
      height: size?.height ?? positiveInteger(height),
      name: typeof name === 'string' ? shortText(name) : null,
      title: typeof title === 'string' ? shortText(title) : null,
    });
  }
}

function parseFields(json: Buffer): Record<string, unknown> {
  if (nestingOf(json) > DEPTH_MAX) return {};
  try {
    const parsed: unknown = JSON.parse(json.toString('utf8'));
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** At least as deep as the JSON is nested: brackets in strings count too. */
function nestingOf(json: Buffer): number {
  let depth = 0;
  let deepest = 0;
  for (const byte of json) {
    if (byte === 0x5b || byte === 0x7b) deepest = Math.max(deepest, ++depth);
    else if (byte === 0x5d || byte === 0x7d) depth--;
  }
  return deepest;
}

function positiveInteger(value: unknown): number | null {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= NUMBER_MAX
    ? (value as number)
    : null;
}

function shortText(text: string): string {
  return text.slice(0, NAME_CHARACTERS_MAX).toWellFormed();
}

function longText(text: string): string {
  return Buffer.from(text.toWellFormed())
    .subarray(0, TEXT_BYTES_MAX)
    .toString('utf8')
    .replace(/\uFFFD$/, '');
}
