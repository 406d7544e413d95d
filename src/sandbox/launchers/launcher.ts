/** Starts a zygote inside an isolation of some kind. */

import type { ChildProcess } from 'node:child_process';

/** Layers that a test may leave out to show that the others hold alone. Never a setting. */
export type Layer = 'namespaces' | 'landlock' | 'seccomp';

export interface LaunchOptions {
  /** The Unix socket that run processes connect to. */
  socketPath: string;
  without: ReadonlySet<Layer>;
}

export interface Launcher {
  readonly name: string;
  /**
   * Starts one zygote: descriptors 0 to 2 are pipes (2 carries its complaints), 3 is the control channel.
   * The process that is returned leads a process group. Everything inside must end with it, and it with this
   * service.
   */
  launch(options: LaunchOptions): ChildProcess;
  /** How many processes the kernel has ended for want of memory, where that can be known; else 0. */
  readonly killedForMemory?: number;
  /** Lets go of what outlives the processes. */
  close?(): Promise<void>;
}

/** What the zygote needs to know, as its one argument. Paths are as seen from inside. */
export interface ZygoteConfiguration {
  importFrom: string[];
  matplotlibFolder: string;
  socket: string;
  /** Files and folders that runs may read. */
  readable: string[];
  /** Layers that run processes leave out. */
  without: string[];
}
