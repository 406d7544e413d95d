/** Starts the zygote without any namespace, to show that the other layers hold alone. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Launcher, LaunchOptions } from '../../src/sandbox/launchers/launcher.ts';
import type { Runtime } from '../../src/sandbox/runtime.ts';

export class BareLauncher implements Launcher {
  readonly name = 'bare';
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  launch(options: LaunchOptions): ChildProcess {
    const { python, folder, packagesFolder, sandboxFolder, sharedLibraries } = this.#runtime;
    const parent = mkdtempSync(join(tmpdir(), 'codecell-bare-'));
    symlinkSync(sandboxFolder, join(parent, '_codecell'));
    const packages = join(folder, packagesFolder);
    const configuration = {
      importFrom: [python.standardLibrary, join(python.standardLibrary, 'lib-dynload'), packages],
      matplotlibFolder: join(folder, 'matplotlib'),
      socket: options.socketPath,
      readable: [
        python.standardLibrary,
        packages,
        join(folder, 'matplotlib'),
        ...sharedLibraries,
        '/dev/null',
      ],
      without: [...options.without],
    };
    const zygote = join(parent, '_codecell', 'zygote.py');
    return spawn(python.executable, ['-I', '-S', '-B', zygote, JSON.stringify(configuration)], {
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      detached: true,
      cwd: dirname(options.socketPath),
      env: { HOME: '/', LANG: 'C.UTF-8', TZ: 'UTC' },
    });
  }
}
