/**
 * A control group around all processes of the sandbox, where this service may make one: the backstop for what no
 * limit of a single process counts, such as page tables and socket buffers, and for the number of processes.
 *
 * Version 1 has a tree for each controller, version 2 one for all, in which a group that has groups below it may
 * hold no process: there the service first moves itself one level down, if it is alone in its group.
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

const MOUNT = '/sys/fs/cgroup';
const PREFIX = 'codecell-';
const REMOVE_ATTEMPTS = 40;
const REMOVE_INTERVAL_MS = 25;

export interface CgroupLimits {
  memoryBytes: number;
  processes: number;
}

export class Cgroup {
  readonly version: 1 | 2;
  /** One folder in version 2, one for each controller in version 1. */
  readonly #folders: string[];

  private constructor(version: 1 | 2, folders: string[]) {
    this.version = version;
    this.#folders = folders;
  }

  /** Makes one, or answers null where that is not to be had. */
  static create(limits: CgroupLimits): Cgroup | null {
    const lines = readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n');
    return Cgroup.#unified(lines, limits) ?? Cgroup.#byController(lines, limits);
  }

  static #unified(lines: string[], { memoryBytes, processes }: CgroupLimits): Cgroup | null {
    const path = lines.find((line) => line.startsWith('0::'))?.slice(3);
    if (path === undefined) return null;
    try {
      const parent = join(MOUNT, path);
      delegate(parent);
      const folder = makeFolder(parent);
      write(folder, 'memory.max', memoryBytes);
      write(folder, 'pids.max', processes);
      return new Cgroup(2, [folder]);
    } catch {
      return null;
    }
  }

  static #byController(lines: string[], { memoryBytes, processes }: CgroupLimits): Cgroup | null {
    try {
      const folders = ['memory', 'pids'].map((controller) => {
        const path = lines.map((line) => line.split(':')).find(([, names]) => names === controller)![2]!;
        return makeFolder(join(MOUNT, controller, path));
      });
      write(folders[0]!, 'memory.limit_in_bytes', memoryBytes);
      write(folders[1]!, 'pids.max', processes);
      return new Cgroup(1, folders);
    } catch {
      return null;
    }
  }

  /** Takes a process in; what it starts later is in as well. Answers whether that is allowed. */
  add(processId: number): boolean {
    try {
      for (const folder of this.#folders) write(folder, 'cgroup.procs', processId);
      return true;
    } catch {
      return false;
    }
  }

  /** How many processes the kernel has ended in it for want of memory. */
  get killedForMemory(): number {
    const file = this.version === 2 ? 'memory.events' : 'memory.oom_control';
    let text: string;
    try {
      text = readFileSync(join(this.#folders[0]!, file), 'utf8');
    } catch {
      // Somebody has removed the group: nothing is known, and the sandbox goes on without it.
      return 0;
    }
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
  }

  /** Removes it, once the last process in it is gone; what is left after a second, the next start removes. */
  async remove(): Promise<void> {
    for (let attempt = 0; attempt < REMOVE_ATTEMPTS; attempt++) {
      if (this.#folders.map(removeIfEmpty).every((removed) => removed)) return;
      await setTimeout(REMOVE_INTERVAL_MS);
    }
  }
}

/** Makes the controllers available below `parent`. Throws when they are not delegated to this service. */
function delegate(parent: string): void {
  const available = readFileSync(join(parent, 'cgroup.controllers'), 'utf8').trim().split(' ');
  if (!available.includes('memory') || !available.includes('pids')) throw new Error('not delegated');
  const controllers = '+memory +pids';
  try {
    write(parent, 'cgroup.subtree_control', controllers);
  } catch {
    const inside = readFileSync(join(parent, 'cgroup.procs'), 'utf8').trim().split('\n');
    if (inside.length !== 1 || Number(inside[0]) !== process.pid) throw new Error('others are in the group');
    const service = join(parent, 'service');
    mkdirSync(service, { recursive: true });
    write(service, 'cgroup.procs', process.pid);
    write(parent, 'cgroup.subtree_control', controllers);
  }
}

/** A new folder below `parent`. Those of services that have ended are removed; a living one may be empty too. */
function makeFolder(parent: string): string {
  for (const name of readdirSync(parent)) {
    const owner = new RegExp(`^${PREFIX}(\\d+)-\\d+$`).exec(name)?.[1];
    if (owner !== undefined && !existsSync(`/proc/${owner}`)) removeIfEmpty(join(parent, name));
  }
  for (let number = 0; ; number++) {
    const folder = join(parent, `${PREFIX}${process.pid}-${number}`);
    try {
      mkdirSync(folder);
      return folder;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** Writes to a file that the kernel made, and makes none where it did not. */
function write(folder: string, file: string, value: string | number): void {
  writeFileSync(join(folder, file), String(value), { flag: 'r+' });
}

/** Answers whether the folder is gone. */
function removeIfEmpty(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}
