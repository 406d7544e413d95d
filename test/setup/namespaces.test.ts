import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Checkout, isRoot } from './checkout.ts';

/** A host on which bubblewrap fails until a profile is loaded, and a setting of the kernel reads as given. */
function hostWith(setting: string, value: number): Checkout {
  return new Checkout()
    .withEverythingInstalled()
    .fake(
      'bwrap',
      '[ -e "$HERE/profile-loaded" ] || { echo "bwrap: setting up uid map: Permission denied"; exit 1; }',
    )
    .fake('cat', `case $1 in */${setting}) echo ${value} ;; *) exec /bin/cat "$@" ;; esac`)
    .fake('apt-get', 'echo "apt-get $*" >>"$HERE/commands"')
    .fake('cp', 'echo "cp $*" >>"$HERE/commands"')
    .fake('apparmor_parser', 'echo "apparmor_parser $*" >>"$HERE/commands"; : >"$HERE/profile-loaded"');
}

const profile = '/usr/share/apparmor/extra-profiles/bwrap-userns-restrict';

test("Ubuntu's restriction: an ordinary user is shown how to load the distribution's own profile", async () => {
  using checkout = hostWith('kernel/apparmor_restrict_unprivileged_userns', 1);
  const outcome = await checkout.setup({ ordinaryUser: true });
  expect(outcome.code).toBe(1);
  expect(outcome.stderr).toContain(
    `  sudo apt-get install -y apparmor-profiles\n  sudo cp ${profile} /etc/apparmor.d/\n  sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict\n`,
  );
  expect(outcome.stderr).not.toContain('sysctl');
  expect(checkout.has('commands')).toBe(false);
});

test.runIf(isRoot)(
  "Ubuntu's restriction: root loads the profile, says so, and leaves the sysctl alone",
  async () => {
    using checkout = hostWith('kernel/apparmor_restrict_unprivileged_userns', 1);
    const outcome = await checkout.setup();
    expect(outcome.code).toBe(0);
    expect(outcome.stderr).toContain('the distribution has a profile that allows it.');
    expect(readFileSync(checkout.at('commands'), 'utf8')).toBe(
      `apt-get install -y apparmor-profiles\ncp ${profile} /etc/apparmor.d/\napparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict\n`,
    );
  },
);

test.each([
  ['kernel/unprivileged_userns_clone', 'kernel.unprivileged_userns_clone=1'],
  ['user/max_user_namespaces', 'user.max_user_namespaces=15000'],
])('%s=0: the remedy is shown and never applied', async (setting, remedy) => {
  using checkout = hostWith(setting, 0);
  const outcome = await checkout.setup();
  expect(outcome.code).toBe(1);
  expect(outcome.stderr).toContain(
    `  echo ${remedy} | sudo tee /etc/sysctl.d/60-codecell.conf\n  sudo sysctl --system\n`,
  );
  expect(checkout.has('commands')).toBe(false);
});

test('for any other reason, bubblewrap has the word', async () => {
  using checkout = hostWith('nothing', 0);
  const outcome = await checkout.setup();
  expect(outcome.code).toBe(1);
  expect(outcome.stderr).toContain('bwrap: setting up uid map: Permission denied');
});

test('an image is built where there can be no namespaces', async () => {
  using checkout = hostWith('nothing', 0);
  const outcome = await checkout.run(checkout.at('scripts/setup'), ['--image']);
  expect([outcome.code, outcome.stderr]).toEqual([0, expect.not.stringContaining('bwrap:')]);
});
