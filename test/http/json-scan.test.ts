import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scanJson } from '../../src/http/json-scan.ts';

const LIMITS = { depthMax: 200, membersMax: 100 };

/** JSON text of any value, with white space wherever it may be and escapes that JSON.stringify would not write. */
const jsonText: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => {
  const space = fc.constantFrom('', '', ' ', '\n', '\t\r ');
  const between = (text: fc.Arbitrary<string>) => fc.tuple(space, text, space).map((parts) => parts.join(''));
  const string = fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text.toWellFormed()));
  const escaped = fc
    .string({ unit: fc.constantFrom(...'inputs"\\{}[],:') })
    .map(
      (text) =>
        `"${[...text].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`,
    );
  const scalar = fc.oneof(
    string,
    escaped,
    fc.constantFrom('1.0', '-0', '1e5', '123456789012345678901234567890', 'true', 'false', 'null'),
  );
  const name = fc.oneof(
    fc.constantFrom('"inputs"', '"\\u0069nputs"', '"code"', '"__proto__"'),
    string,
    escaped,
  );
  const member = fc.tuple(between(name), between(tie('value'))).map((pair) => pair.join(':'));
  return {
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      scalar,
      fc.array(between(tie('value'))).map((items) => `[${items.join(',')}]`),
      fc.array(member).map((members) => `{${members.join(',')}}`),
    ),
  };
}).value;

describe('scanJson', () => {
  it('finds of every member the text that parses to what JSON.parse has', async () => {
    await fc.assert(
      fc.property(jsonText, (text) => {
        const value: unknown = JSON.parse(text);
        const { members, refused } = scanJson(text, LIMITS);
        expect(refused).toBeNull();
        const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
        const expected = isObject ? Object.entries(value) : [];
        expect([...members.keys()].sort()).toEqual(expected.map(([name]) => name).sort());
        for (const [name, member] of expected) {
          expect(JSON.parse(members.get(name) ?? '')).toEqual(member);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('takes the text as it is, from the last member of a name', () => {
    const text = '{"inputs": {"a": 1}, "code": "\\"inputs\\": 3", "\\u0069nputs" :\n [1.0, {"inputs": 2}]\t}';
    expect(scanJson(text, LIMITS).members.get('inputs')).toBe('[1.0, {"inputs": 2}]');
  });

  it('measures depth as it is, not as strings pretend', async () => {
    await fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), fc.constantFrom('[', '{"a":'), (depth, open) => {
        const close = open === '[' ? ']' : '}';
        const text = `{"[[[[": "{{{{", "deep": ${open.repeat(depth)}1${close.repeat(depth)}}`;
        const { refused } = scanJson(text, LIMITS);
        expect(refused).toEqual(depth + 1 > 200 ? { reason: 'too deep', member: 'deep' } : null);
      }),
    );
  });

  it('never fails on text that is no JSON', async () => {
    const unit = fc.constantFrom(...'{}[]:,"\\ai1 ');
    await fc.assert(
      fc.property(fc.string({ unit, maxLength: 60 }), (text) => {
        expect(() => scanJson(text, LIMITS)).not.toThrow();
      }),
      { numRuns: 5000 },
    );
  });
});
