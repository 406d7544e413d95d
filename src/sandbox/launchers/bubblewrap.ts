/**
 * Launches the zygote with bubblewrap: namespaces of its own, no capability, and a file tree that holds the
 * Python runtime, read-only, and nothing else.
 *
 * A service that runs as root starts bubblewrap as an unprivileged uid, so that no process of the sandbox is
 * ever root. Where that uid could not reach the files (a checkout below a home folder of mode 0700), they are
 * bound to a reachable place in a private mount namespace first.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Cgroup } from '../cgroup.ts';
import type { Runtime } from '../runtime.ts';
import type { Launcher, LaunchOptions, ZygoteConfiguration } from './launcher.ts';

/** Runs of a root service have this uid and gid. It belongs to no range that distributions assign. */
export const UNPRIVILEGED_ID = 60_999;

const JAIL = {
  packages: '/packages',
  matplotlib: '/matplotlib',
  sandbox: '/codecell/_codecell',
  socket: '/codecell/service.sock',
  currentFolder: '/script',
} as const;
const LOADER_CACHE = '/etc/ld.so.cache';

/**
 * Waits for a line, by which time it is in its control group; the out-of-memory killer takes the sandbox first, and
 * raising one's own score needs no privilege.
 */
const BEGIN = 'read -r _; echo 1000 >/proc/self/oom_score_adj 2>/dev/null; exec "$@"';

/** [path on the host, path in the jail] */
type Bind = [string, string];

export class BubblewrapLauncher implements Launcher {
  readonly name = 'bubblewrap';
  readonly #runtime: Runtime;
  readonly #cgroup: Cgroup | null;

  /** `cgroup` bounds all that is launched, where there is one. */
  constructor(runtime: Runtime, cgroup: Cgroup | null = null) {
    this.#runtime = runtime;
    this.#cgroup = cgroup;
  }

  get killedForMemory(): number {
    return this.#cgroup?.killedForMemory ?? 0;
  }

  async close(): Promise<void> {
    await this.#cgroup?.remove();
  }

  launch(options: LaunchOptions): ChildProcess {
    const asRoot = process.getuid?.() === 0;
    const binds = this.#binds(options.socketPath);
    const unreachable = asRoot ? binds.filter(([source]) => !isReachableByOthers(source)) : [];
    const staged = new Map(unreachable.map(([source], index) => [source, `/mnt/${index}`]));
    const jailed = [
      'bwrap',
      ...isolationArguments(),
      ...binds.flatMap(([source, target]) => ['--ro-bind', staged.get(source) ?? source, target]),
      ...['--dev-bind', '/dev/null', '/dev/null', '--dir', JAIL.currentFolder, '--remount-ro', '/'],
      ...['--chdir', JAIL.currentFolder, '--'],
      this.#runtime.python.executable,
      ...['-I', '-S', '-B', `${JAIL.sandbox}/zygote.py`, JSON.stringify(this.#configuration(options))],
    ];
    const command = ['/bin/sh', '-c', BEGIN, 'sh', ...jailed];
    const [file, ...rest] = staged.size > 0 ? [...stagingCommand(staged), ...command] : command;
    const launched = spawn(file!, rest, {
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      cwd: '/',
      // A group of its own: a terminal's Ctrl-C is for the service, and `kill` reaches all that a launch started.
      detached: true,
      env: { PATH: process.env.PATH ?? '/usr/bin:/bin' },
      ...(asRoot && staged.size === 0 ? { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID } : {}),
    });
    if (launched.pid !== undefined) this.#cgroup?.add(launched.pid);
    launched.stdin?.write('\n');
    return launched;
  }

  #binds(socketPath: string): Bind[] {
    const { python, folder, packagesFolder, sandboxFolder } = this.#runtime;
    return [
      ...[python.executable, ...this.#systemPaths()].map((path): Bind => [path, path]),
      [join(folder, packagesFolder), JAIL.packages],
      [join(folder, 'matplotlib'), JAIL.matplotlib],
      [sandboxFolder, JAIL.sandbox],
      [socketPath, JAIL.socket],
    ];
  }

  #configuration(options: LaunchOptions): ZygoteConfiguration {
    const { standardLibrary } = this.#runtime.python;
    return {
      importFrom: [standardLibrary, join(standardLibrary, 'lib-dynload'), JAIL.packages],
      matplotlibFolder: JAIL.matplotlib,
      socket: JAIL.socket,
      readable: [
        ...[JAIL.packages, JAIL.matplotlib, JAIL.currentFolder, '/dev/null'],
        ...this.#systemPaths(),
      ],
      without: [...options.without],
    };
  }

  /** What runs read of the host's own files, at the same paths. */
  #systemPaths(): string[] {
    const { python, sharedLibraries, localeFolders } = this.#runtime;
    const loaderCache = existsSync(LOADER_CACHE) ? [LOADER_CACHE] : [];
    return [python.standardLibrary, ...sharedLibraries, ...localeFolders, ...loaderCache];
  }
}

function isolationArguments(): string[] {
  return [
    ...['--unshare-user', '--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts'],
    ...['--unshare-cgroup', '--hostname', 'codecell', '--die-with-parent', '--new-session'],
    // The zygote is process 1 of its namespace: no run can signal it, and when it ends, all runs do.
    ...['--cap-drop', 'ALL', '--as-pid-1', '--clearenv'],
    ...['--setenv', 'HOME', '/', '--setenv', 'USER', 'user', '--setenv', 'PATH', '/usr/bin'],
    ...['--setenv', 'LANG', 'C.UTF-8', '--setenv', 'TZ', 'UTC'],
  ];
}

/** Binds unreachable sources below a tmpfs in a private mount namespace, then becomes unprivileged. */
function stagingCommand(staged: Map<string, string>): string[] {
  const script = [
    'set -e',
    'mount -t tmpfs -o mode=0755 tmpfs /mnt',
    'while [ "$1" != -- ]; do',
    '  if [ -d "$1" ]; then mkdir "$2"; else : >"$2"; fi',
    '  mount --bind "$1" "$2"',
    '  shift 2',
    'done',
    'shift',
    `exec setpriv --reuid=${UNPRIVILEGED_ID} --regid=${UNPRIVILEGED_ID} --clear-groups -- "$@"`,
  ].join('\n');
  const pairs = [...staged].flat();
  return [
    'unshare',
    '--mount',
    '--propagation',
    'private',
    '--',
    '/bin/sh',
    '-c',
    script,
    'sh',
    ...pairs,
    '--',
  ];
}

/** Whether a user without any special right can read a path: every folder above it lets others through. */
export function isReachableByOthers(path: string): boolean {
  const real = realpathSync(path);
  const status = statSync(real);
  const needed = status.isDirectory() ? 0o005 : 0o004;
  if ((status.mode & needed) !== needed) return false;
  for (let folder = dirname(real); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false;
    if (folder === '/') return true;
  }
}
