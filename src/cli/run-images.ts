/**
 * Writes the images of a run into a folder. Their names and contents come from the program, which nobody trusts:
 * only the last part of a name counts, of it only harmless characters, the extension is that of the picture's
 * format, and no file that exists is touched, nor anything behind a symbolic link.
 */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunImage } from '../runs/run.ts';

/** With an extension and a number well within the 255 bytes that file systems take. */
const STEM_BYTES_MAX = 200;
const EXTENSIONS: Record<string, string[]> = { jpg: ['jpg', 'jpeg'] };
/** After that many names taken, something else is wrong. */
const ATTEMPTS_MAX = 100_000;

/** Writes each image as it was drawn, and calls `onWritten` with the path of each. */
export async function writeImages(
  images: RunImage[],
  folder: string,
  onWritten: (path: string, image: RunImage) => void,
): Promise<void> {
  for (const image of images) {
    onWritten(await writeNew(folder, fileNameOf(image), Buffer.from(image.data, 'base64')), image);
  }
}

/** What to call an image: its own name made harmless, or figure-1. */
export function fileNameOf({ name, format }: Pick<RunImage, 'name' | 'format'>): {
  stem: string;
  extension: string;
} {
  const base = (name ?? '').split(/[/\\]/).at(-1) ?? '';
  const dot = base.lastIndexOf('.');
  const given = base.slice(dot + 1);
  const fits = dot !== -1 && (EXTENSIONS[format] ?? [format]).includes(given.toLowerCase());
  const stem = harmless(fits ? base.slice(0, dot) : base);
  return { stem: stem === '' ? 'figure-1' : stem, extension: fits ? given : format };
}

/** No control or direction characters, nothing hidden, nothing that reads as an option, no spaces at the ends. */
function harmless(text: string): string {
  const characters = text.replace(/[^\p{L}\p{M}\p{N} ._()+,=@-]/gu, '_').replace(/^[. -]+|[. ]+$/g, '');
  return Buffer.from(characters)
    .subarray(0, STEM_BYTES_MAX)
    .toString('utf8')
    .replace(/\uFFFD$/, '');
}

/** Writes to the first name that is free: plot.png, plot-2.png …; figure-1.png, figure-2.png … */
async function writeNew(
  folder: string,
  { stem, extension }: { stem: string; extension: string },
  data: Buffer,
): Promise<string> {
  for (let number = 1; ; number++) {
    const numbered = stem === 'figure-1' ? `figure-${number}` : number === 1 ? stem : `${stem}-${number}`;
    const path = join(folder, `${numbered}.${extension}`);
    try {
      await writeFile(path, data, { flag: 'wx' });
      return path;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || number === ATTEMPTS_MAX) throw error;
    }
  }
}
