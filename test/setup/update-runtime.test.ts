import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Checkout } from './checkout.ts';

/** A Python whose `venv` holds the same Python and the uv below, so that nothing is downloaded. */
const PYTHON = `#!/bin/sh
[ "$3" = venv ] || exit 0
mkdir -p "$4/bin"
cp "$0" "$4/bin/python"
cp uv "$4/bin/uv"
`;

/** A uv that finds newer packages. */
const UV = `#!/bin/sh
while [ "$1" != -o ]; do shift; done
cp newer.lock "$2"
`;

/** Stands for set-up: puts an environment made from the lock in place, the old one beside it. */
const SETUP = `#!/bin/sh
cd "$(dirname "$0")/.."
stamp=.runtime/venv/.codecell-stamp
cmp -s sandbox/requirements.lock "$stamp" && exit 0
rm -rf .runtime/venv.old
cp -r .runtime/venv .runtime/venv.new
mv .runtime/venv .runtime/venv.old
mv .runtime/venv.new .runtime/venv
cp sandbox/requirements.lock "$stamp"
`;

const OLD_LOCK = 'numpy==1 \\\n';
const NEWER_LOCK = 'numpy==2 \\\n';

function installation(doctor: string): Checkout {
  const checkout = new Checkout();
  mkdirSync(checkout.at('.runtime/venv/bin'), { recursive: true });
  for (const [name, content] of [
    ['.runtime/venv/bin/python', PYTHON],
    ['uv', UV],
    ['scripts/setup', SETUP],
    ['bin/codecell', doctor],
  ] as const) {
    rmSync(checkout.at(name), { force: true });
    writeFileSync(checkout.at(name), content, { mode: 0o755 });
  }
  writeFileSync(checkout.at('newer.lock'), NEWER_LOCK);
  writeFileSync(checkout.at('sandbox/requirements.lock'), OLD_LOCK);
  writeFileSync(checkout.at('.runtime/venv/.codecell-stamp'), OLD_LOCK);
  return checkout;
}

const state = (checkout: Checkout) =>
  ['sandbox/requirements.lock', '.runtime/venv/.codecell-stamp'].map((name) =>
    readFileSync(checkout.at(name), 'utf8'),
  );

test('newer packages that pass the self-test stay', async () => {
  using checkout = installation('#!/bin/sh\n[ "$1" = doctor ]\n');
  const outcome = await checkout.run(checkout.at('scripts/update-runtime'));
  expect(outcome).toMatchObject({ code: 0 });
  expect(outcome.stderr).toContain('  - numpy==1\n  + numpy==2\n');
  expect(state(checkout)).toEqual([NEWER_LOCK, NEWER_LOCK]);
});

test('newer packages that fail the self-test are replaced by the old ones', async () => {
  using checkout = installation('#!/bin/sh\nexit 1\n');
  const outcome = await checkout.run(checkout.at('scripts/update-runtime'));
  expect(outcome.code).toBe(1);
  expect(outcome.stderr).toContain('nothing has changed');
  expect(state(checkout)).toEqual([OLD_LOCK, OLD_LOCK]);
});
