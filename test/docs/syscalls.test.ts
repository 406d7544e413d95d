/** SECURITY.md names every system call of the filter, and no other, each with a reason. */

import { describe, expect, test } from 'vitest';
import { names, readText, section, tableRows } from './markdown.ts';

const security = readText('SECURITY.md');
const source = readText('sandbox/syscalls.py');

/** The names in a list of `sandbox/syscalls.py`. */
function listed(list: string): string[] {
  const text = new RegExp(`^${list} = """([^"]*)"""\\.split\\(\\)$`, 'm').exec(source)?.[1];
  if (text === undefined) throw new Error(`sandbox/syscalls.py has no list ${list}`);
  return text.trim().split(/\s+/);
}

describe.each([
  { heading: '### Allowed', list: 'ALLOWED', columns: 2 },
  { heading: '### Allowed with a rule on arguments', list: 'ALLOWED_WITH_ARGUMENTS', columns: 4 },
  { heading: '### Refused with `EPERM`', list: 'REFUSED', columns: 2 },
])('$heading', ({ heading, list, columns }) => {
  const rows = tableRows(section(security, heading));

  test('has each system call of the code once, and no other', () => {
    expect(rows.flatMap(([calls]) => names(calls)).sort()).toEqual(listed(list).sort());
  });

  test('says something about each', () => {
    for (const row of rows) {
      expect(row, row[0]).toHaveLength(columns);
      for (const cell of row) expect(cell, row[0]).not.toBe('');
    }
  });
});

test('every call with a rule has one in the code', () => {
  const rules = source.slice(source.indexOf('def _add_rules_on_arguments'));
  for (const name of listed('ALLOWED_WITH_ARGUMENTS')) expect(rules).toContain(`"${name}"`);
});
