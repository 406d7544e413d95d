/** What the sandbox needs of the host: present or not, what it gives, and the exact remedy where it is missing. */

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { release, totalmem } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Cgroup } from './cgroup.ts';
import { UNPRIVILEGED_ID } from './launchers/bubblewrap.ts';
import { readRuntime } from './runtime.ts';

export interface Prerequisite {
  name: string;
  /** What it is there for. */
  gives: string;
  state: 'ok' | 'warning' | 'missing';
  /** What was found. */
  found: string;
  /** What to do, when something is to be done. */
  remedy: string | null;
}

const run = promisify(execFile);
const MEMORY_OF_SERVICE_MB = 512;
/** From here on RLIMIT_NPROC counts within a user namespace. */
const KERNEL_MIN = [5, 14] as const;

/** Looks at the host. Never throws: what cannot be found out counts as missing. */
export async function checkPrerequisites(limits: {
  concurrency: number;
  memoryMbMax: number;
}): Promise<Prerequisite[]> {
  return [
    checkPlatform(),
    checkKernelVersion(),
    await checkRuntime(),
    ...(await checkKernel()),
    await checkBubblewrap(),
    await checkCgroup(),
    checkMemory(limits),
  ];
}

function checkPlatform(): Prerequisite {
  const found = `${process.platform} ${process.arch}`;
  return {
    name: 'platform',
    gives: 'the system-call filter is written for Linux on x86-64',
    state: found === 'linux x64' ? 'ok' : 'missing',
    found,
    remedy: found === 'linux x64' ? null : `Run on Linux x86-64; ${found} is not supported.`,
  };
}

function checkKernelVersion(): Prerequisite {
  const found = release();
  const [major = 0, minor = 0] = found.split('.').map(Number);
  const enough = major > KERNEL_MIN[0] || (major === KERNEL_MIN[0] && minor >= KERNEL_MIN[1]);
  return {
    name: 'kernel',
    gives: 'threads are counted for each run on its own',
    state: enough ? 'ok' : 'missing',
    found,
    remedy: enough ? null : `Linux ${KERNEL_MIN.join('.')} or newer.`,
  };
}

async function checkRuntime(): Promise<Prerequisite> {
  const base = { name: 'Python runtime', gives: 'the interpreter and the packages of every run' };
  try {
    const { python, packages } = await readRuntime();
    return {
      ...base,
      state: 'ok',
      found: `Python ${python.version}, ${packages.length} packages`,
      remedy: null,
    };
  } catch {
    return { ...base, state: 'missing', found: 'not set up', remedy: 'scripts/setup' };
  }
}

async function checkKernel(): Promise<Prerequisite[]> {
  let probe: { landlock: number; seccomp: boolean; libseccomp: boolean } | null = null;
  try {
    const { folder, sandboxFolder } = await readRuntime();
    const python = join(folder, 'venv', 'bin', 'python');
    const { stdout } = await run(python, ['-I', '-B', join(sandboxFolder, 'probe.py')]);
    probe = JSON.parse(stdout);
  } catch {
    // Without a runtime there is nothing to ask with; the runtime's own row says so.
  }
  const unknown = 'unknown: the Python runtime is missing';
  const check = (
    name: string,
    gives: string,
    there: boolean,
    found: string,
    remedy: string,
  ): Prerequisite => ({
    name,
    gives,
    state: there ? 'ok' : 'missing',
    found: probe === null ? unknown : found,
    remedy: there ? null : remedy,
  });
  const landlock = probe?.landlock ?? 0;
  return [
    check(
      'Landlock',
      'files outside the runtime cannot be opened',
      landlock > 0,
      landlock > 0 ? `ABI ${landlock}` : 'not in this kernel',
      'Linux 5.13 or newer, with landlock in the lsm= boot parameter (see /sys/kernel/security/lsm).',
    ),
    check(
      'seccomp',
      'only the system calls of an ordinary computation',
      probe?.seccomp === true,
      probe?.seccomp ? 'available' : 'not in this kernel',
      'A kernel built with CONFIG_SECCOMP_FILTER.',
    ),
    check(
      'libseccomp',
      'compiles the system-call filter',
      probe?.libseccomp === true,
      probe?.libseccomp ? 'libseccomp.so.2' : 'not installed',
      'apt-get install -y libseccomp2',
    ),
  ];
}

async function checkBubblewrap(): Promise<Prerequisite> {
  const base = {
    name: 'bubblewrap',
    gives: 'namespaces: no network, no other processes, a file tree of its own',
  };
  let version: string;
  try {
    version = (await run('bwrap', ['--version'])).stdout.trim();
  } catch {
    return { ...base, state: 'missing', found: 'not installed', remedy: 'apt-get install -y bubblewrap' };
  }
  try {
    const identity = process.getuid?.() === 0 ? { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID } : {};
    const isolation = ['--unshare-user', '--unshare-pid', '--unshare-net', '--ro-bind', '/', '/'];
    await run('bwrap', [...isolation, '/bin/true'], { ...identity, cwd: '/' });
    return { ...base, state: 'ok', found: version, remedy: null };
  } catch (error) {
    const words = String((error as { stderr?: string }).stderr ?? error).trim();
    return { ...base, state: 'missing', found: `${version}, but: ${words}`, remedy: userNamespaceRemedy() };
  }
}

/** Why an unprivileged user namespace may be refused on this host, and what to do about it. */
function userNamespaceRemedy(): string {
  const setting = (name: string): string => {
    const path = `/proc/sys/${name.replaceAll('.', '/')}`;
    return existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  };
  if (setting('kernel.apparmor_restrict_unprivileged_userns') === '1') {
    return (
      'AppArmor forbids it. Load the distribution’s profile for bwrap: apt-get install -y apparmor-profiles && ' +
      'cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && ' +
      'apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict'
    );
  }
  if (setting('kernel.unprivileged_userns_clone') === '0')
    return 'sysctl -w kernel.unprivileged_userns_clone=1';
  if (setting('user.max_user_namespaces') === '0') return 'sysctl -w user.max_user_namespaces=15000';
  if (existsSync('/.dockerenv') || existsSync('/run/.containerenv')) {
    return 'In a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined';
  }
  return 'Unprivileged user namespaces must be allowed on this host.';
}

async function checkCgroup(): Promise<Prerequisite> {
  const base = {
    name: 'control group',
    gives: 'bounds what no limit of one process counts: kernel memory, processes',
  };
  const cgroup = Cgroup.create({ memoryBytes: 2 ** 30, processes: 100 });
  await cgroup?.remove();
  if (cgroup !== null) return { ...base, state: 'ok', found: `version ${cgroup.version}`, remedy: null };
  const remedy =
    'Start the service in a delegated group (systemd: Delegate=yes), or plan memory for it: see SECURITY.md.';
  return { ...base, state: 'warning', found: 'none that this user may make', remedy };
}

function checkMemory({
  concurrency,
  memoryMbMax,
}: {
  concurrency: number;
  memoryMbMax: number;
}): Prerequisite {
  const machineMb = Math.floor(totalmem() / 2 ** 20);
  const neededMb = concurrency * memoryMbMax + MEMORY_OF_SERVICE_MB;
  const enough = neededMb <= machineMb;
  return {
    name: 'memory',
    gives: 'all slots can run at the largest memory limit',
    state: enough ? 'ok' : 'warning',
    found: `${machineMb} MB; ${concurrency} × ${memoryMbMax} MB + ${MEMORY_OF_SERVICE_MB} MB can be asked for`,
    remedy: enough ? null : 'Lower CODECELL_CONCURRENCY or CODECELL_MEMORY_MB_MAX, or add memory.',
  };
}
