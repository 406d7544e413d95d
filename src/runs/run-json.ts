/**
 * A Run as JSON text. What is large and known to need no escaping goes in as it is: the base64 of images, on which
 * JSON.stringify would cost more than everything else of an answer, and the JSON of the value, whose numbers and
 * order of keys no parser of ours may change.
 */

import { turnOfOthers } from '../shared/turn.ts';
import type { Run, RunImage, RunValue } from './run.ts';

/** What takes a tenth of a millisecond to write. */
const LARGE_CHARACTERS = 2 ** 18;

/** A Run as one text. */
export function runJson(run: Run): string {
  return [...runJsonParts(run)].join('');
}

/**
 * The same text in UTF-8, written part by part, so that others get their turn: of 45 MB, the longest stall is half of
 * the 115 ms that all of it takes, and is the output's, whose characters have to be escaped.
 */
export async function runJsonBytes(run: Run): Promise<Buffer> {
  const texts = [...runJsonParts(run)];
  const bytes = Buffer.allocUnsafe(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0));
  let end = 0;
  for (const text of texts) {
    end += bytes.write(text, end);
    if (text.length >= LARGE_CHARACTERS) await turnOfOthers();
  }
  return bytes;
}

/** The same text in parts, none larger than one stream, value or image: a Run may be 45 MB. */
export function* runJsonParts(run: Run): Generator<string> {
  const { id, status, exit_code, stdout, stderr, value, images, error, truncated, usage, limits } = run;
  const { created_at, started_at, finished_at } = run;
  const before = JSON.stringify({ id, status, exit_code, stdout, stderr });
  const after = JSON.stringify({ error, truncated, usage, limits, created_at, started_at, finished_at });
  yield `${before.slice(0, -1)},"value":`;
  yield valueJson(value);
  yield ',"images":[';
  for (const [index, image] of images.entries()) {
    if (index > 0) yield ',';
    yield* imageJsonParts(image);
  }
  yield `],${after.slice(1)}`;
}

function valueJson(value: RunValue | null): string {
  if (value === null) return 'null';
  const { type, text, html, json } = value;
  return `${JSON.stringify({ type, text, html }).slice(0, -1)},"json":${json ?? 'null'}}`;
}

function* imageJsonParts(image: RunImage): Generator<string> {
  const { format, media_type, data, width, height, name, title } = image;
  const before = JSON.stringify({ format, media_type });
  const after = JSON.stringify({ width, height, name, title });
  yield `${before.slice(0, -1)},"data":"`;
  yield data;
  yield `",${after.slice(1)}`;
}
