/** Figures as images: where they are taken, once for each state, within the caps. */

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Run, RunImage } from '../../src/runs/run.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const PLOT = 'import matplotlib.pyplot as plt\n';

const run = (code: string, more: object = {}) => service.execute({ code: PLOT + code, ...more });

async function images(code: string, more: object = {}): Promise<RunImage[]> {
  const result = await run(code, more);
  expect(result.status, result.stderr).toBe('succeeded');
  return result.images;
}

const names = (run: Run) => run.images.map(({ name }) => name);
const digest = ({ data }: RunImage) => createHash('sha256').update(data).digest('hex');

describe('a figure comes back', () => {
  test('at plt.show, as a PNG of its own size, with its title', async () => {
    const [image, ...others] = await images(
      'plt.figure(figsize=(4, 3), dpi=50)\nplt.plot([1, 2])\nplt.title("A title")\nplt.show()',
    );
    expect(others).toEqual([]);
    expect(image).toMatchObject({
      format: 'png',
      media_type: 'image/png',
      width: 200,
      height: 150,
      name: null,
      title: 'A title',
    });
    const bytes = Buffer.from(image!.data, 'base64');
    expect(bytes.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n');
    expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([200, 150]);
  });

  test('still open at the end, in the order of the figures', async () => {
    const code = 'for n in "abc":\n    plt.figure()\n    plt.suptitle(n)';
    expect((await images(code)).map(({ title }) => title)).toEqual(['a', 'b', 'c']);
  });

  test('after an exception, and before it', async () => {
    const result = await run('plt.plot([1]); plt.show()\nplt.plot([2])\n1/0');
    expect(result).toMatchObject({ status: 'failed', error: { type: 'ZeroDivisionError' } });
    expect(result.images).toHaveLength(2);
  });

  test('when it was shown before the time was up', async () => {
    const result = await run('plt.plot([1]); plt.show()\nwhile True: pass', { timeout_ms: 2500 });
    expect(result.status).toBe('timed_out');
    expect(result.images).toHaveLength(1);
  });

  test('drawn by a thread, and at the end of atexit', async () => {
    const code =
      'import threading, atexit\natexit.register(lambda: (plt.figure(), plt.title("atexit"), plt.show()))\nthreading.Thread(target=lambda: plt.title("thread")).start()';
    expect((await images(code)).map(({ title }) => title)).toEqual(['thread', 'atexit']);
  });

  test.each([
    ['fig.show()', 'fig, ax = plt.subplots()\nax.plot([1])\nfig.show()'],
    ['pyplot imported by name', 'from matplotlib import pyplot\npyplot.plot([1])\npyplot.show()'],
    ['pandas', 'import pandas as pd\npd.Series([1, 2]).plot()'],
    ['seaborn', 'import seaborn as sns\nsns.scatterplot(x=[1, 2], y=[2, 1])'],
    ['pylab and interactive mode', 'plt.ion()\nfrom pylab import plot\nplot([1])'],
    [
      'subplots with mathtext and styles',
      'plt.style.use("ggplot")\nf, a = plt.subplots(2, 2)\na[0, 0].set_title(r"$\\frac{a}{b}$")',
    ],
    ['three dimensions', 'plt.figure().add_subplot(projection="3d").plot([1, 2], [1, 2], [1, 2])'],
  ])('from %s', async (_name, code) => expect(await images(code)).toHaveLength(1));

  test.each(['TkAgg', 'QtAgg', 'MacOSX', 'svg', 'module://matplotlib_inline.backend_inline'])(
    'whatever backend is asked for: %s',
    async (backend) => {
      const code = `import matplotlib\nmatplotlib.use("${backend}")\nplt.switch_backend("${backend}")\nplt.plot([1])\nplt.show()`;
      expect(await images(code)).toMatchObject([{ format: 'png' }]);
    },
  );
});

describe('savefig', () => {
  test.each([
    ['png', 'image/png', 640, 480],
    ['svg', 'image/svg+xml', 461, 346],
    ['pdf', 'application/pdf', 461, 346],
    ['jpg', 'image/jpeg', 640, 480],
    ['webp', 'image/webp', 640, 480],
  ])(
    'returns %s under the name it was given, in a folder that does not exist',
    async (format, mediaType, width, height) => {
      const name = `no/such folder/é.${format}`;
      const [image] = await images(`plt.plot([1])\nplt.savefig("${name}")\nplt.close("all")`);
      expect(image).toMatchObject({ format, media_type: mediaType, name, width, height });
    },
  );

  test('takes paths, formats, and names without an extension', async () => {
    const code =
      'import pathlib\nplt.plot([1])\nplt.savefig(pathlib.Path("/a/b.png"))\nplt.savefig("c", format="svg")\nplt.savefig("d")';
    const result = await run(code);
    expect(names(result)).toEqual(['/a/b.png', 'c', 'd']);
    expect(result.images.map(({ format }) => format)).toEqual(['png', 'svg', 'png']);
  });

  test('works without pyplot', async () => {
    const code =
      'from matplotlib.figure import Figure\nf = Figure()\nf.subplots().plot([1, 2])\nf.savefig("x.png")';
    expect(await images(code)).toMatchObject([{ name: 'x.png' }]);
  });

  test('honours dpi, bbox_inches and rcParams', async () => {
    const size = async (code: string) =>
      (await images(`plt.figure(figsize=(2, 2))\nplt.plot([1])\n${code}\nplt.close()`))[0]!.width!;
    expect(await size('plt.savefig("a.png", dpi=200)')).toBe(400);
    expect(await size('plt.rcParams["savefig.dpi"] = 50; plt.savefig("a.png")')).toBe(100);
    expect(await size('plt.axis("off"); plt.savefig("a.png", bbox_inches="tight")')).toBeLessThan(200);
  });

  test('to a file object works as ever, and is no image', async () => {
    const result = await run(
      'import io\nplt.plot([1])\nb = io.BytesIO()\nplt.savefig(b)\nprint(b.getvalue()[:4])\nplt.close()',
    );
    expect(result).toMatchObject({ stdout: "b'\\x89PNG'\n", images: [] });
  });

  test('refuses other formats by name', async () => {
    expect((await run('plt.savefig("a.eps")')).error).toMatchObject({
      type: 'ValueError',
      line: 2,
      message: expect.stringContaining('png, svg, pdf, jpg or webp'),
    });
    expect((await run('plt.savefig("a.nonsense")')).error).toMatchObject({ type: 'ValueError' });
  });
});

describe('each state once', () => {
  test.each([
    ['savefig, then show', 'plt.plot([1]); plt.savefig("a.png"); plt.show()', ['a.png']],
    ['fig.show, then the end', 'f, a = plt.subplots(); a.plot([1]); f.show()', [null]],
    ['shown twice unchanged', 'f, a = plt.subplots(); a.plot([1]); f.show(); f.show()', [null]],
    ['drawn in between', 'f, a = plt.subplots(); a.plot([1]); f.show(); f.canvas.draw()', [null]],
    [
      'shown, changed, shown again',
      'f, a = plt.subplots(); l, = a.plot([1, 2]); f.show(); l.set_ydata([2, 1]); f.show()',
      [null, null],
    ],
    ['saved, changed, left open', 'plt.plot([1]); plt.savefig("a.png"); plt.plot([2])', ['a.png', null]],
    [
      'saved twice under one name',
      'plt.plot([1]); plt.savefig("a.png"); plt.savefig("a.png"); plt.close()',
      ['a.png'],
    ],
    [
      'saved under two names',
      'plt.plot([1]); plt.savefig("a.png"); plt.savefig("b.svg")',
      ['a.png', 'b.svg'],
    ],
    ['closed unseen', 'plt.plot([1]); plt.close("all")', []],
    ['shown and so closed', 'plt.plot([1]); plt.show(); print(plt.get_fignums())', [null]],
  ])('%s', async (_name, code, expected) => {
    const result = await run(code);
    expect(result.status, result.stderr).toBe('succeeded');
    expect(names(result)).toEqual(expected);
  });

  test('an animation of fifty frames on one figure', async () => {
    const code =
      'l, = plt.plot([0, 1])\nplt.gcf().set_size_inches(1, 1)\nfor i in range(50):\n    l.set_ydata([i, 1])\n    plt.pause(1e-9)';
    expect(await images(code)).toHaveLength(50);
  });

  test('figures can be copied and pickled', async () => {
    expect(
      (await run('import pickle\nplt.plot([1]); plt.gcf().show()\nprint(len(pickle.dumps(plt.gcf())) > 100)'))
        .stdout,
    ).toBe('True\n');
  });
});

test('two different plots differ, the same plot twice is equal', async () => {
  const draw = async (data: string) => digest((await images(`plt.plot(${data})`))[0]!);
  const [first, again, other] = [await draw('[1, 2]'), await draw('[1, 2]'), await draw('[2, 1]')];
  expect(again).toBe(first);
  expect(other).not.toBe(first);
});

test('a missing glyph is the caller’s warning', async () => {
  const result = await run('plt.title("\\u0d9e")');
  expect(result).toMatchObject({ status: 'succeeded', images: [{}] });
  expect(result.stderr).toContain('UserWarning: Glyph');
});

describe('caps', () => {
  test('a figure over the cap is drawn smaller, and the flag says so', async () => {
    const result = await run(
      'plt.figure(figsize=(10, 5), dpi=10**6)\nplt.plot([1, 2])\nplt.show()\nprint("end")',
    );
    expect(result).toMatchObject({ status: 'succeeded', stdout: 'end\n', truncated: { images: true } });
    const [{ width, height }] = result.images as [RunImage];
    expect(width! / height!).toBeCloseTo(2, 1);
    expect(width! * height!).toBeLessThanOrEqual(16_000_000);
  });

  test('a picture of more than 5 MiB is made smaller', async () => {
    const code =
      'import numpy as np\nf = plt.figure(figsize=(20, 15))\nf.figimage(np.random.rand(1500, 2000, 3))\nplt.show()';
    const result = await run(code);
    expect(result).toMatchObject({
      status: 'succeeded',
      truncated: { images: true },
      images: [{ format: 'png' }],
    });
    expect(Buffer.from(result.images[0]!.data, 'base64').length).toBeLessThanOrEqual(5 << 20);
  });

  test('the sixty-fifth image is left out', async () => {
    const code = 'for i in range(70):\n    plt.figure(figsize=(1, 1)); plt.show()';
    const result = await run(code);
    expect(result.images).toHaveLength(64);
    expect(result.truncated.images).toBe(true);
  });

  test('an impossible size is an ordinary error', async () => {
    expect((await run('plt.figure(figsize=(-1, 2)); plt.show()')).error).toMatchObject({
      type: 'ValueError',
      line: 2,
    });
    expect((await run('plt.figure(figsize=(float("nan"), 2)); plt.show()')).error).toMatchObject({
      type: 'ValueError',
    });
  });

  test('a figure that cannot be drawn at the end is said on stderr', async () => {
    const result = await run('plt.title("$\\\\nonsense{$")');
    expect(result).toMatchObject({ status: 'succeeded', exit_code: 0, images: [] });
    expect(result.stderr).toContain('ParseFatalException');
  });
});

describe('forged frames', () => {
  const forge = (body: string) =>
    `import os, struct, json\ndef frame(kind, payload): os.write(3, struct.pack("<BI", kind, len(payload)) + payload)\ndef image(data, **more):\n    head = json.dumps({"format": "png", **more}).encode()\n    frame(4, struct.pack("<I", len(head)) + head + data)\n${body}`;

  test.each([
    ['a picture of another format', 'image(b"<html>")'],
    ['a picture without a head', 'frame(4, b"\\xff\\xff\\xff\\xff")'],
    ['a frame of unknown kind', 'frame(99, b"x")'],
    ['a frame longer than allowed', 'os.write(3, struct.pack("<BI", 4, 1 << 31))'],
    [
      'a value nested without end',
      'frame(3, b\'{"type": "a", "text": "b", "json": \' + b"[" * 10**6 + b"]" * 10**6 + b"}")',
    ],
    ['a value of the wrong types', 'frame(3, b\'{"type": 1, "text": [], "html": {}}\')'],
    ['a second ready frame', 'frame(1, b"\\xff" * 16)'],
  ])('%s is dropped', async (_name, body) => {
    const result = await service.execute({ code: forge(`${body}\nprint("end")`) });
    expect(result).toMatchObject({ status: 'succeeded', stdout: 'end\n', images: [], value: null });
    expect(result.usage.peak_memory_mb).toBeLessThan(50);
  });
});
