/** Reads the repository's Markdown. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '..', '..');

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** The text below a heading, up to the next heading of its level or above. */
export function section(text: string, heading: string): string {
  const lines = withoutCode(text).split('\n');
  const start = lines.indexOf(heading);
  if (start === -1) throw new Error(`there is no heading "${heading}"`);
  const level = heading.indexOf(' ');
  const end = lines.findIndex((line, index) => index > start && isHeading(line, level));
  return lines.slice(start + 1, end === -1 ? undefined : end).join('\n');
}

/** The cells of every table in the text, without header rows. */
export function tableRows(text: string): string[][] {
  const rows: string[][] = [];
  let body = false;
  for (const line of text.split('\n')) {
    if (!line.startsWith('|')) body = false;
    else if (/^\|[-| ]+\|$/.test(line)) body = true;
    else if (body) {
      rows.push(
        line
          .slice(1, -1)
          .split('|')
          .map((cell) => cell.trim()),
      );
    }
  }
  return rows;
}

/** Every name in backticks. */
export function names(cell: string | undefined): string[] {
  return [...(cell ?? '').matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
}

/** The text without its blocks of code. */
export function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '');
}

function isHeading(line: string, level: number): boolean {
  return /^#+ /.test(line) && line.indexOf(' ') <= level;
}
