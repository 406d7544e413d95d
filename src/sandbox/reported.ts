/** What a run reports of itself: read with suspicion, since the program may have written it. */

import type { RunImage, RunValue } from '../runs/run.ts';
import type { ReportedError } from './execution.ts';
import { IMAGE_BYTES_MAX } from './frames.ts';
import { MEDIA_TYPES, type PictureFormat, pictureSize } from './pictures.ts';

const NAME_CHARACTERS_MAX = 1024;
const TEXT_BYTES_MAX = 64 << 10;
const MARKUP_BYTES_MAX = 1 << 20;
const NUMBER_MAX = 1 << 30;
/** Deeper than what `sandbox/jsonable.py` writes, and shallow enough for JSON.stringify. */
const DEPTH_MAX = 200;
const IMAGE_HEADER_BYTES = 4;
const IMAGES_MAX = 64;
const ALL_IMAGES_BYTES_MAX = 32 << 20;

/** The report of an uncaught exception, or null when it makes no sense. */
export function parseErrorFrame(payload: Buffer): ReportedError | null {
  const { type, message, line, traceback, hint } = parseFields(payload);
  if (typeof type !== 'string' || type === '' || typeof message !== 'string') return null;
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
  if (nestingOf(payload) > DEPTH_MAX) return null;
  const { type, text, html, cut, json } = parseFields(payload);
  if (typeof type !== 'string' || typeof text !== 'string') return null;
  const jsonBytes = json === undefined || json === null ? 0 : Buffer.byteLength(JSON.stringify(json));
  const htmlBytes = typeof html === 'string' ? Buffer.byteLength(html) : 0;
  const value = {
    type: shortText(type),
    text: longText(text),
    html: typeof html === 'string' && htmlBytes <= MARKUP_BYTES_MAX ? html.toWellFormed() : null,
    json: jsonBytes <= MARKUP_BYTES_MAX ? (json ?? null) : null,
  };
  return { value, cut: cut === true || jsonBytes > MARKUP_BYTES_MAX || htmlBytes > MARKUP_BYTES_MAX };
}

/** Collects the images of one run, within the caps of the contract. */
export class ReportedImages {
  readonly images: RunImage[] = [];
  cut = false;
  #bytes = 0;

  /** Takes an image frame; one that is no picture of its format is left out. */
  take(payload: Buffer): void {
    if (payload.length < IMAGE_HEADER_BYTES) return;
    const pictureAt = IMAGE_HEADER_BYTES + payload.readUInt32LE(0);
    if (pictureAt > payload.length) return;
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
