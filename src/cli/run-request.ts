/** What `codecell run` is asked to run: from arguments, files and standard input to an execution request. */

import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { addAbortSignal, type Readable } from 'node:stream';
import { getSystemErrorMessage } from 'node:util';
import { SETTINGS } from '../config.ts';
import { parseJsonBody } from '../http/json-body.ts';
import {
  FIELD_BYTES_MAX,
  MEMORY_MB_DEFAULT,
  MEMORY_MB_MIN,
  TIMEOUT_MS_DEFAULT,
  TIMEOUT_MS_MAX,
} from '../runs/limits.ts';
import type { ExecutionRequest } from '../sandbox/execution.ts';
import { ArgumentError, ServiceError } from '../shared/errors.ts';

/** As high as the service goes unless it is told otherwise. */
export const MEMORY_MB_MAX = SETTINGS.memoryMbMax.defaultValue();

/** The arguments of the command, as typed. */
export interface RunArguments {
  /** Path of the program; `-` is standard input. */
  file: string;
  stdin?: string;
  inputs?: string;
  timeoutMs?: string;
  memoryMb?: string;
}

/**
 * Reads everything that comes from files; what is wrong with it is known before a sandbox is started.
 * @returns The rest of the reading: what arrives on standard input, which may take as long as it likes.
 * @throws ArgumentError
 */
export async function readRequest(
  given: RunArguments,
  signal: AbortSignal,
): Promise<() => Promise<ExecutionRequest>> {
  const { file } = given;
  if (file === '-' && given.stdin === '-') {
    throw new ArgumentError('the program and its stdin cannot both be read from standard input');
  }
  const timeoutMs = wholeNumber('--timeout-ms', given.timeoutMs, {
    min: 1,
    max: TIMEOUT_MS_MAX,
    byDefault: TIMEOUT_MS_DEFAULT,
  });
  const memoryMb = wholeNumber('--memory-mb', given.memoryMb, {
    min: MEMORY_MB_MIN,
    max: MEMORY_MB_MAX,
    byDefault: MEMORY_MB_DEFAULT,
  });
  const stdinFile = given.stdin ?? (file === '-' || process.stdin.isTTY ? null : '-');
  const read = (path: string, bytesMax: number) => readText(path, bytesMax, signal);
  const inputsJson = await inputsText(given.inputs, read);
  const code = file === '-' ? null : await read(file, FIELD_BYTES_MAX.code);
  const stdin =
    stdinFile === '-' ? null : stdinFile === null ? '' : await read(stdinFile, FIELD_BYTES_MAX.stdin);
  return async () => ({
    code: code ?? (await read('-', FIELD_BYTES_MAX.code)),
    stdin: stdin ?? (await read('-', FIELD_BYTES_MAX.stdin)),
    inputsJson,
    timeoutMs,
    memoryMb,
  });
}

function wholeNumber(
  option: string,
  text: string | undefined,
  { min, max, byDefault }: { min: number; max: number; byDefault: number },
): number {
  if (text === undefined) return byDefault;
  const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new ArgumentError(
    `${option} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`,
  );
}

/** The text of `inputs`, from the argument or from the file behind its @, once it is known to be a JSON object. */
async function inputsText(
  given: string | undefined,
  read: (path: string, bytesMax: number) => Promise<string>,
): Promise<string> {
  if (given === undefined) return '{}';
  const fromFile = given.startsWith('@');
  const text = fromFile ? await read(given.slice(1), FIELD_BYTES_MAX.inputs) : given;
  const source = fromFile ? `--inputs (${given.slice(1)})` : '--inputs';
  if (Buffer.byteLength(text) > FIELD_BYTES_MAX.inputs) {
    throw new ArgumentError(`${source} is longer than ${mib(FIELD_BYTES_MAX.inputs)} MiB, which is the most`);
  }
  const json = text.replace(/^\uFEFF/, '');
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new ArgumentError(`${source} is not valid JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ArgumentError(`${source} must be a JSON object, such as {"rows": [1, 2]}`);
  }
  try {
    // As a request's body, for the rules that hold there. The value is dropped: Python parses the text.
    parseJsonBody(Buffer.from(`{"inputs":${json}}`));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new ArgumentError(`${source}: ${error.errors?.[0]?.message ?? error.detail}`);
  }
  return json;
}

/** A whole text file. No more of it than the cap is ever held, so that an endless one is an error too. */
async function readText(path: string, bytesMax: number, signal: AbortSignal): Promise<string> {
  const name = path === '-' ? 'standard input' : path;
  const stream: Readable = path === '-' ? process.stdin : createReadStream(path);
  addAbortSignal(signal, stream);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stream) {
      bytes += (chunk as Buffer).length;
      if (bytes > bytesMax) {
        throw new ArgumentError(`${name} is longer than ${mib(bytesMax)} MiB, which is the most`);
      }
      chunks.push(chunk as Buffer);
    }
  } catch (error) {
    if (signal.aborted || error instanceof ArgumentError) throw error;
    const { errno } = error as NodeJS.ErrnoException;
    const reason = errno === undefined ? (error as Error).message : getSystemErrorMessage(errno);
    throw new ArgumentError(`cannot read ${name}: ${reason}`);
  }
  const text = Buffer.concat(chunks);
  if (!isUtf8(text)) throw new ArgumentError(`${name} is not UTF-8 text`);
  return text.toString('utf8');
}

function mib(bytes: number): number {
  return bytes / 2 ** 20;
}
