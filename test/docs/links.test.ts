/** What the Markdown files point to is there. */

import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { names, ROOT, readText, withoutCode } from './markdown.ts';

const files = globSync(['*.md', 'docs/**/*.md', 'examples/*.md'], { cwd: ROOT }).sort();

/** How a heading is addressed. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

test('there are documents', () => {
  expect(files).toEqual(expect.arrayContaining(['ARCHITECTURE.md', 'README.md', 'SECURITY.md']));
});

test.each(files)('every relative link of %s', (file) => {
  for (const [, target = ''] of withoutCode(readText(file)).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [path = '', fragment] = target.split('#');
    const linked = path === '' ? file : join(dirname(file), path);
    expect(existsSync(join(ROOT, linked)), `${file}: ${target}`).toBe(true);
    if (fragment === undefined) continue;
    const headings = [...withoutCode(readText(linked)).matchAll(/^#+ (.*)$/gm)];
    expect(headings.map(([, heading]) => anchor(heading ?? ''))).toContain(fragment);
  }
});

test.each(files)('every file that %s names', (file) => {
  const folders = /^(bench|bin|deploy|docs|examples|sandbox|scripts|src|test)\/[\w./-]*$/;
  for (const name of names(withoutCode(readText(file))).filter((each) => folders.test(each))) {
    if (name.includes('NNNN')) continue;
    expect(existsSync(join(ROOT, name)), `${file}: ${name}`).toBe(true);
  }
});

test('every decision is in the list of decisions', () => {
  const listed = readText('docs/decisions/README.md');
  for (const file of files.filter((each) => /\/\d{4}-/.test(each))) {
    expect(listed).toContain(`(${file.split('/').at(-1)})`);
  }
});
