/** The images of `codecell run`: where they go, and where no name can make them go. */

import { lstat, mkdir, readdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fileNameOf } from '../../src/cli/run-images.ts';
import { folderWith, runProgram } from './command.ts';

const PLOT = 'import matplotlib.pyplot as plt\nplt.plot([1, 2])\n';
const PNG_SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

test('images are written to the current folder, each with a line that says where', async () => {
  const { exit, stdout, stderr, folder } = await runProgram(
    `${PLOT}plt.savefig("out/plot.svg"); plt.show()\nplt.plot([2]); plt.title("b"); plt.show()`,
  );
  expect([exit, stdout, stderr]).toEqual([
    0,
    '',
    'image: plot.svg (461 × 346)\nimage: figure-1.png (640 × 480)\n',
  ]);
  expect((await readdir(folder)).sort()).toEqual(['figure-1.png', 'plot.svg', 'program.py']);
  const png = await readFile(join(folder, 'figure-1.png'));
  expect(png.subarray(0, 8)).toEqual(PNG_SIGNATURE);
  expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([640, 480]);
  expect(await readFile(join(folder, 'plot.svg'), 'utf8')).toContain('<svg');
});

test('--images names another folder, which is made; what is there is never overwritten', async () => {
  const folder = await folderWith({ mine: 'mine' });
  const pictures = join(folder, 'a', 'pictures');
  await mkdir(pictures, { recursive: true });
  await symlink(join(folder, 'mine'), join(pictures, 'plot.png'));
  await symlink(join(folder, 'not-there'), join(pictures, 'plot-2.png'));
  const code = `${PLOT}for n in range(2): plt.savefig("plot.png"); plt.plot([n])\nplt.show()`;
  for (const last of ['plot-4.png', 'plot-6.png']) {
    const { exit, stderr } = await runProgram(code, ['--images', 'a/pictures'], { folder });
    expect(exit).toBe(0);
    expect(stderr).toContain(`image: a/pictures/${last} (640 × 480)\n`);
  }
  expect((await readdir(pictures)).sort()).toEqual([
    'figure-1.png',
    'figure-2.png',
    ...['plot-2.png', 'plot-3.png', 'plot-4.png', 'plot-5.png', 'plot-6.png', 'plot.png'],
  ]);
  expect((await lstat(join(pictures, 'plot-2.png'))).isSymbolicLink()).toBe(true);
  expect((await readdir(folder)).sort()).toEqual(['a', 'mine', 'program.py']);
  expect(await readFile(join(folder, 'mine'), 'utf8')).toBe('mine');
});

test('no name leads out of the folder, hides a file or gives it a kind that it is not', async () => {
  const names = [
    '../../x.png',
    '/etc/passwd',
    '/tmp/y.png',
    '..',
    '.',
    '.bashrc',
    '-rf',
    '~/z.png',
    'd/',
    'main.py',
  ];
  const code = `${PLOT}import json, sys\nfor name in inputs["names"]:\n    plt.savefig(name, format="png"); plt.title(name)\nplt.close()`;
  const folder = await folderWith();
  const { exit, stderr } = await runProgram(
    code,
    ['--images', 'inner', '--inputs', JSON.stringify({ names })],
    {
      folder,
    },
  );
  expect([exit, stderr.split('\n').length - 1]).toEqual([0, names.length]);
  expect((await readdir(folder)).sort()).toEqual(['inner', 'program.py']);
  expect((await readdir(join(folder, 'inner'))).sort()).toEqual([
    'bashrc.png',
    'figure-1.png',
    'figure-2.png',
    'figure-3.png',
    'main.py.png',
    'passwd.png',
    'rf.png',
    'x.png',
    'y.png',
    'z.png',
  ]);
});

test.each([
  ['a\x1b[2J\nb.png', 'png', 'a__2J_b.png'],
  ['gnp.\u202Eexe.svg', 'svg', 'gnp._exe.svg'],
  ['Größe 1 (März).JPEG', 'jpg', 'Größe 1 (März).JPEG'],
  ['C:\\windows\\a.png', 'png', 'a.png'],
  ['a.png', 'svg', 'a.png.svg'],
  ['a\0.png', 'png', 'a_.png'],
  ['...', 'pdf', 'figure-1.pdf'],
  [null, 'webp', 'figure-1.webp'],
])('an image called %j of format %s is written as %s', (name, format, expected) => {
  const { stem, extension } = fileNameOf({ name, format });
  expect(`${stem}.${extension}`).toBe(expected);
});

test('a name of any length fits into what file systems take', () => {
  for (const name of ['x'.repeat(1024), 'ß'.repeat(1024), `${'😀é'.repeat(300)}.png`]) {
    const { stem } = fileNameOf({ name, format: 'png' });
    expect(Buffer.byteLength(stem)).toBeLessThanOrEqual(200);
    expect(stem).not.toContain('\uFFFD');
  }
});

test('an image that cannot be written makes the exit code 73, unless the program has one of its own', async () => {
  const folder = await folderWith();
  const full = { folder, environment: {} };
  // Nothing can be created in /proc, not even by root.
  for (const [end, code] of [
    ['', 73],
    ['import sys; sys.exit(4)', 4],
  ] as const) {
    const { exit, stderr } = await runProgram(`${PLOT}${end}`, ['--images', '/proc/self'], full);
    expect([exit, stderr]).toEqual([code, expect.stringMatching(/^codecell: cannot write an image: .+\n$/)]);
  }
});
