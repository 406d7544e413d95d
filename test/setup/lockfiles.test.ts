import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { here } from './checkout.ts';

const read = (name: string) => readFileSync(join(here, name), 'utf8');

test.each(['package-lock.json', 'scripts/node/package-lock.json'])('%s names no registry', (name) => {
  const packages = Object.entries<{ resolved?: string; integrity?: string }>(JSON.parse(read(name)).packages);
  for (const [path, entry] of packages.filter(([path]) => path !== '')) {
    expect(entry.resolved, path).toBeUndefined();
    expect(entry.integrity, path).toMatch(/^sha512-/);
  }
});

test.each(['sandbox/requirements.lock', 'scripts/update-runtime.lock'])('%s names no registry', (name) => {
  expect(read(name)).not.toMatch(/:\/\/|index-url|find-links|trusted-host/);
});

test.each(['.npmrc', 'scripts/node/.npmrc'])('%s keeps registries out of lockfiles', (name) => {
  expect(read(name)).toContain('omit-lockfile-registry-resolved=true');
  expect(read(name)).not.toContain('://');
});

test('every package that is asked for is in the lock', () => {
  const locked = read('sandbox/requirements.lock');
  for (const wanted of read('sandbox/requirements.in').trim().split('\n')) {
    expect(locked).toMatch(new RegExp(`^${wanted.split('>=')[0]}==`, 'm'));
  }
});
