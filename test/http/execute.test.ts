import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { problemOf, startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ settings: { MEMORY_MB_MAX: '1024' } });
});
afterAll(() => service.stop());

/** What a body that is refused is told: path and message of each error. */
async function errorsOf(body: unknown, key?: string): Promise<[string, string][]> {
  const answer = await service.post(body, key === undefined ? {} : { key });
  expect(answer.status).toBe(400);
  return (problemOf(answer).errors ?? []).map(({ path, message }) => [path, message]);
}

describe('a run', () => {
  it('comes back whole, with every field of the contract', async () => {
    const before = Date.now();
    const run = await service.execute({ code: 'import sys; print("out"); print("err", file=sys.stderr)' });
    expect(run).toEqual({
      id: expect.stringMatching(/^run_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/),
      status: 'succeeded',
      exit_code: 0,
      stdout: 'out\n',
      stderr: 'err\n',
      value: null,
      images: [],
      error: null,
      truncated: { stdout: false, stderr: false, value: false, images: false },
      usage: {
        queue_ms: expect.any(Number),
        wall_ms: expect.any(Number),
        cpu_ms: expect.any(Number),
        peak_memory_mb: expect.any(Number),
      },
      limits: { timeout_ms: 30_000, memory_mb: 512 },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      started_at: expect.any(String),
      finished_at: expect.any(String),
    });
    const times = [run.created_at, run.started_at, run.finished_at].map((time) => Date.parse(time ?? ''));
    // The end is the start and the running time, by a clock that runs evenly; the wall's may be slewed meanwhile.
    const around = [before - 100, ...times, Date.now() + 100];
    expect(around).toEqual(around.toSorted((a, b) => a - b));
  });

  it('is 200 also when the program fails', async () => {
    const run = await service.execute({ code: 'x = 1\n1 / 0' });
    expect(run).toMatchObject({
      status: 'failed',
      exit_code: 1,
      error: { type: 'ZeroDivisionError', line: 2, hint: null },
    });
    expect(run.error?.traceback).toContain('main.py');
  });

  it('is not stored in any answer of another', async () => {
    const answer = await service.post({ code: 'print(1)' });
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  it('reads stdin and inputs', async () => {
    const run = await service.execute({
      code: 'print(input(), inputs["a"])',
      stdin: 'ä€😀\n',
      inputs: { a: 'ä€😀' },
    });
    expect(run.stdout).toBe('ä€😀 ä€😀\n');
  });

  it('gets inputs as the text that was sent: floats stay floats and integers stay exact', async () => {
    const run = await service.execute(
      `{"code": "print(inputs)", "inputs" : {"float": 1.0, "small": 1e-7, "big": 123456789012345678901234567890,
        "text": "\\u00e4\\ud83d\\ude00\\"", "none": null, "same": 1, "same": 2.50} }`,
    );
    expect(run.stdout).toBe(
      "{'float': 1.0, 'small': 1e-07, 'big': 123456789012345678901234567890, 'text': 'ä😀\"', 'none': None, 'same': 2.5}\n",
    );
  });

  it('has empty stdin and inputs when there are none', async () => {
    const run = await service.execute({ code: 'import sys; print(repr(sys.stdin.read()), inputs)' });
    expect(run.stdout).toBe("'' {}\n");
  });

  it('may be of an empty program', async () => {
    expect((await service.execute({ code: '' })).status).toBe('succeeded');
  });
});

describe('limits', () => {
  it('are in force and in the answer as asked for', async () => {
    const run = await service.execute({ code: 'while True: pass', timeout_ms: 200, memory_mb: 64 });
    expect(run).toMatchObject({ status: 'timed_out', limits: { timeout_ms: 200, memory_mb: 64 } });
  });

  it.each([
    ['timeout_ms', 30_001, 'must be at most 30000'],
    ['timeout_ms', 1e308, 'must be at most 30000'],
    ['timeout_ms', 0, 'must be at least 1'],
    ['timeout_ms', -1, 'must be at least 1'],
    ['timeout_ms', 1.5, 'must be a whole number, without quotes'],
    ['timeout_ms', '30', 'must be a whole number, without quotes'],
    ['timeout_ms', null, 'must be a whole number, without quotes'],
    ['timeout_ms', true, 'must be a whole number, without quotes'],
    ['timeout_ms', [30], 'must be a whole number, without quotes'],
    ['memory_mb', 31, 'must be at least 32'],
    ['memory_mb', 1025, 'must be at most 1024'],
    ['memory_mb', '64', 'must be a whole number, without quotes'],
  ])('refuse %s of %j', async (name, value, message) => {
    expect(await errorsOf({ code: '1', [name]: value })).toEqual([[`/${name}`, message]]);
  });

  it('take the largest and the smallest', async () => {
    const largest = await service.execute({ code: '1', timeout_ms: 30_000, memory_mb: 1024 });
    expect(largest.limits).toEqual({ timeout_ms: 30_000, memory_mb: 1024 });
    const smallest = await service.post({ code: '1', timeout_ms: 1, memory_mb: 32 });
    expect(smallest.status).toBe(200);
  });

  it("are the key's maximum where that is lower than the default, and 400 above it", async () => {
    const key = await service.addKey({ limits: { max_timeout_ms: 2000, max_memory_mb: 100 } });
    expect((await service.execute({ code: '1' }, { key })).limits).toEqual({
      timeout_ms: 2000,
      memory_mb: 100,
    });
    expect(await errorsOf({ code: '1', timeout_ms: 2001, memory_mb: 101 }, key)).toEqual([
      ['/timeout_ms', 'must be at most 2000, the maximum of this key'],
      ['/memory_mb', 'must be at most 100, the maximum of this key'],
    ]);
  });

  it("are the service's where the key's are higher", async () => {
    const key = await service.addKey({ limits: { max_timeout_ms: 90_000, max_memory_mb: 9000 } });
    expect((await service.execute({ code: '1' }, { key })).limits).toEqual({
      timeout_ms: 30_000,
      memory_mb: 512,
    });
    expect(await errorsOf({ code: '1', timeout_ms: 30_001 }, key)).toEqual([
      ['/timeout_ms', 'must be at most 30000'],
    ]);
  });
});

describe('400 invalid_request', () => {
  it('names every field that is wrong and what to do', async () => {
    expect(
      await errorsOf({ cod: 'print(1)', 'a/b~c': 1, stdin: 1, inputs: [], timeout_ms: '30', memoryMb: 64 }),
    ).toEqual([
      ['/cod', 'is not a field of this endpoint: did you mean code?'],
      ['/a~1b~0c', expect.stringContaining('it has code, stdin, inputs, timeout_ms, memory_mb')],
      ['/memoryMb', 'is not a field of this endpoint: did you mean memory_mb?'],
      ['/code', 'is required'],
      ['/stdin', 'must be a string'],
      ['/inputs', 'must be an object'],
      ['/timeout_ms', 'must be a whole number, without quotes'],
    ]);
  });

  it.each([
    ['code', null, 'must be a string'],
    ['code', ['print(1)'], 'must be a string'],
    ['stdin', null, 'must be a string'],
    ['inputs', null, 'must be an object'],
    ['inputs', '{}', 'must be an object'],
    ['inputs', 1, 'must be an object'],
  ])('refuses %s of %j', async (name, value, message) => {
    expect(await errorsOf({ code: '1', [name]: value })).toEqual([[`/${name}`, message]]);
  });

  it.each([
    ['code', '{"code": "\\ud800"}', '/code'],
    ['stdin', '{"code": "1", "stdin": "\\udfff!"}', '/stdin'],
    ['a value in inputs', '{"code": "1", "inputs": {"a": [1, {"b/c": "\\uDBFF"}]}}', '/inputs/a/1/b~1c'],
    ['a name in inputs', '{"code": "1", "inputs": {"\\ud800": 1}}', '/inputs/\ufffd'],
  ])('refuses half a surrogate pair in %s', async (_name, body, path) => {
    const errors = await errorsOf(body);
    expect(errors.map(([where]) => where)).toEqual([path]);
  });

  it.each([
    ['code', 2 ** 20],
    ['stdin', 4 * 2 ** 20],
  ])(
    'refuses %s of more than its cap in bytes of UTF-8, and takes one of just that',
    async (name, bytesMax) => {
      const text = `#${'é'.repeat(bytesMax / 2 - 1)}`;
      expect((await service.post({ code: '', [name]: `${text}x` })).status).toBe(200);
      expect(await errorsOf({ code: '', [name]: `${text}xx` })).toEqual([
        [`/${name}`, `is ${bytesMax + 1} bytes of UTF-8 long; at most ${bytesMax} are allowed`],
      ]);
    },
  );

  it('refuses inputs of more than 4 MiB of text, and takes just that', async () => {
    const inputs = (bytes: number) => `{"a":"${'x'.repeat(bytes - 8)}"}`;
    const body = (bytes: number) => `{"code": "print(len(inputs['a']))", "inputs": ${inputs(bytes)}}`;
    expect((await service.execute(body(4 * 2 ** 20))).stdout).toBe(`${4 * 2 ** 20 - 8}\n`);
    expect((await errorsOf(body(4 * 2 ** 20 + 1)))[0]?.[0]).toBe('/inputs');
  });

  it('takes text that is written in escapes six times as long', async () => {
    const code = '#'.padEnd(2 ** 20, 'x');
    const escaped = [...code].map(
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    expect((await service.execute(`{"code": "${escaped.join('')}"}`)).status).toBe('succeeded');
  });
});
