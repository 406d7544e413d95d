/** The value of the last expression, as a notebook shows it. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const run = (code: string, more: object = {}) => service.execute({ code, ...more });

async function value(code: string) {
  const result = await run(code);
  expect(result.status, result.stderr).toBe('succeeded');
  return result.value;
}

const json = async (code: string) =>
  (await value(`import numpy as np, pandas as pd, datetime, decimal, uuid, math\n${code}`))?.json;

describe('there is one', () => {
  test.each([
    ['1 + 1', { type: 'int', text: '2', html: null, json: 2 }],
    ['x = 3\nx', { type: 'int', text: '3', html: null, json: 3 }],
    ['"text"', { type: 'str', text: "'text'", html: null, json: 'text' }],
    ['(1,\n # comment; with a semicolon\n 2\n)', { type: 'tuple', text: '(1, 2)', html: null, json: [1, 2] }],
    ['1; 2', { type: 'int', text: '2', html: null, json: 2 }],
    ['if 1:\n    pass\n[1]  # comment', { type: 'list', text: '[1]', html: null, json: [1] }],
    ['async def f(): return 5\nf()', { type: 'int', text: '5', html: null, json: 5 }],
    [
      'import asyncio\nawait asyncio.sleep(0, "slept")',
      { type: 'str', text: "'slept'", html: null, json: 'slept' },
    ],
    ['import asyncio\nx = await asyncio.sleep(0, 7)\nx', { type: 'int', text: '7', html: null, json: 7 }],
  ])('%j', async (code, expected) => expect(await value(code)).toEqual(expected));

  test('and it is never printed', async () => {
    expect(await run('"quiet"')).toMatchObject({ stdout: '', stderr: '' });
  });

  test('also when the program fails or is stopped afterwards', async () => {
    expect(
      await run('import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()\n42', {
        timeout_ms: 500,
      }),
    ).toMatchObject({ status: 'timed_out', value: { text: '42' } });
    expect(await run('import atexit, os\natexit.register(os._exit, 3)\n42')).toMatchObject({
      exit_code: 3,
      value: { text: '42' },
    });
  });
});

describe('there is none', () => {
  test.each([
    'None',
    'print(1)',
    '1;',
    '(1) ;  # c',
    'x = 1',
    'def f(): return 1',
    'for i in range(3): i',
    '',
    '# 1',
    '1\nx = 2',
    '1/0',
  ])('for %j', async (code) => expect((await run(code)).value).toBeNull());
});

describe('hostile objects', () => {
  test.each([
    [
      'a repr that answers nonsense',
      'class A:\n    def __repr__(self): return 5\nA()',
      '<A: repr failed: TypeError>',
    ],
    [
      'a repr that raises',
      'class A:\n    def __repr__(self): raise KeyError(1)\nA()',
      '<A: repr failed: KeyError>',
    ],
    [
      'a repr that recurses',
      'class A:\n    def __repr__(self): return repr(self)\nA()',
      '<A: repr failed: RecursionError>',
    ],
    [
      'a class that lies about its name',
      'class M(type):\n    __name__ = property(lambda c: 1/0)\nclass A(metaclass=M):\n    def __repr__(self): return "a"\nA()',
      'a',
    ],
    [
      'an object that has every attribute',
      'class A:\n    def __getattr__(self, n): return lambda: 1/0\n    def __repr__(self): return "a"\nA()',
      'a',
    ],
    ['lone surrogates', '"\\ud800x"', "'\\ud800x'"],
    [
      'html that raises',
      'class A:\n    def _repr_html_(self): 1/0\n    def __repr__(self): return "a"\nA()',
      'a',
    ],
  ])('%s', async (_name, code, text) => expect(await value(code)).toMatchObject({ text, html: null }));

  test('a repr that loops runs into the deadline', async () => {
    expect(
      await run('class A:\n    def __repr__(self):\n        while True: pass\nA()', { timeout_ms: 300 }),
    ).toMatchObject({ status: 'timed_out', value: null });
  });

  test('a repr of 300 MB is cut', async () => {
    const result = await run('class A:\n    def __repr__(self): return "é" * (150 << 20)\nA()', {
      memory_mb: 1024,
    });
    expect(result).toMatchObject({ status: 'succeeded', truncated: { value: true } });
    expect(Buffer.byteLength(result.value!.text)).toBeLessThanOrEqual(64 << 10);
    expect(result.value!.text.endsWith('é…')).toBe(true);
  });

  test('a value that contains itself', async () => {
    expect(await value('x = []\nx.append(x)\nx')).toMatchObject({ text: '[[...]]', json: null });
  });
});

describe('rich forms', () => {
  test('a DataFrame has text, html and json', async () => {
    const frame = await value(
      'import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=["r", "s"])',
    );
    expect(frame).toMatchObject({
      type: 'DataFrame',
      json: {
        columns: ['a', 'b'],
        index: ['r', 's'],
        data: [
          [1, 'x'],
          [2, null],
        ],
      },
    });
    expect(frame!.text).toBe('   a    b\nr  1    x\ns  2  NaN');
    expect(frame!.html).toMatch(/^<div>[\s\S]*<table/);
  });

  test('markdown stands for a repr that says nothing', async () => {
    expect(await value('class M:\n    def _repr_markdown_(self): return "# title"\nM()')).toMatchObject({
      text: '# title',
    });
  });

  test.each([
    ['a Figure', 'import matplotlib.pyplot as plt\nf = plt.figure()\nf'],
    ['an Axes', 'import matplotlib.pyplot as plt\nplt.gca()'],
    ['what plot answers', 'import matplotlib.pyplot as plt\nplt.plot([1, 2])'],
    ['a Figure without pyplot', 'from matplotlib.figure import Figure\nf = Figure(); f.subplots()\nf'],
    ['a Pillow image', 'from PIL import Image\nImage.new("RGB", (3, 2))'],
    ['an SVG', 'class S:\n    def _repr_svg_(self): return "<svg width=\\"3\\" height=\\"2\\"></svg>"\nS()'],
  ])('%s is one image, and its text is the value', async (_name, code) => {
    const result = await run(code);
    expect(result.images).toHaveLength(1);
    expect(result.value?.text).toBeTruthy();
  });

  test('display prints, and shows pictures', async () => {
    const code =
      'import matplotlib.pyplot as plt, pandas as pd\nfrom PIL import Image\ndisplay(1, "a", pd.Series([1]))\ndisplay(plt.figure(figsize=(1, 1)))\ndisplay(Image.new("L", (5, 4)))';
    const result = await run(code);
    expect(result).toMatchObject({
      status: 'succeeded',
      stdout: "1\n'a'\n0    1\ndtype: int64\n",
      value: null,
    });
    expect(result.images.map(({ width, height }) => [width, height])).toEqual([
      [100, 100],
      [5, 4],
    ]);
  });
});

describe('json', () => {
  test.each([
    ['True', true],
    ['1.5', 1.5],
    ['float("nan")', null],
    ['[float("inf"), -float("inf")]', [null, null]],
    ['2**53', 2 ** 53],
    ['2**53 + 1', '9007199254740993'],
    ['-2**70', '-1180591620717411303424'],
    ['np.int64(7)', 7],
    ['np.float32(0.5)', 0.5],
    ['np.bool_(True)', true],
    ['np.datetime64("2026-01-02")', '2026-01-02T00:00:00'],
    [
      'np.arange(6).reshape(2, 3)',
      [
        [0, 1, 2],
        [3, 4, 5],
      ],
    ],
    ['datetime.date(2026, 1, 2)', '2026-01-02'],
    ['datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.timezone.utc)', '2026-01-02T03:00:00+00:00'],
    ['decimal.Decimal("1.10")', '1.10'],
    [
      '{"a": (1, None), 2: {"b": []}, None: 1, True: 2, (1, "x"): 3}',
      { a: [1, null], 2: { b: [] }, null: 1, true: 2, "(1, 'x')": 3 },
    ],
    ['pd.Timestamp("2026-01-02")', '2026-01-02T00:00:00'],
    ['pd.NaT', null],
    ['pd.NA', null],
    ['object()', null],
    ['{1, 2}', null],
    ['[object()]', null],
    ['lambda: 1', null],
    ['pd.Series([1, None], name="s", index=["a", "b"])', { name: 's', index: ['a', 'b'], data: [1, null] }],
    ['pd.Series([1, None], dtype="Int64")', { name: null, index: [0, 1], data: [1, null] }],
    ['pd.Series(["x", "y"], dtype="category")', { name: null, index: [0, 1], data: ['x', 'y'] }],
    ['pd.Series(pd.arrays.SparseArray([0, 1]))', { name: null, index: [0, 1], data: [0, 1] }],
    ['pd.DataFrame([[1, 2]], columns=["a", "a"])', { columns: ['a', 'a'], index: [0], data: [[1, 2]] }],
    [
      'pd.DataFrame({"t": pd.to_datetime(["2026-01-02", None])})',
      { columns: ['t'], index: [0, 1], data: [['2026-01-02T00:00:00'], [null]] },
    ],
    [
      'pd.DataFrame({("a", 1): [5]}, index=pd.MultiIndex.from_tuples([("x", 2)]))',
      { columns: [['a', 1]], index: [['x', 2]], data: [[5]] },
    ],
    ['pd.DataFrame({"a": []})', { columns: ['a'], index: [], data: [] }],
    ['pd.DataFrame(index=[1, 2])', { columns: [], index: [1, 2], data: [[], []] }],
  ])('of %s', async (expression, expected) => expect(await json(expression)).toEqual(expected));

  test.each([
    'list(range(10**7))',
    'np.zeros(10**7)',
    'pd.DataFrame({"a": np.arange(10**7)})',
    '{i: i for i in range(10**6)}',
    '"x" * (2 << 20)',
    '[["x" * 1000] * 1000] * 100',
  ])('of %s is too large: null, and the flag says so', async (expression) => {
    const result = await run(`import numpy as np, pandas as pd\n${expression}`, {
      memory_mb: 1024,
      timeout_ms: 20_000,
    });
    expect(result).toMatchObject({ status: 'succeeded', truncated: { value: true }, value: { json: null } });
  });
});
