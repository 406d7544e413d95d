/** Processes as /proc shows them. */

import { readdirSync, readFileSync } from 'node:fs';

/** The process and everything below it. */
export function processTree(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const parent = parentOf(Number(entry));
    if (parent !== null) children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const tree = [root];
  for (const process of tree) tree.push(...(children.get(process) ?? []));
  return tree.filter(isAlive);
}

/** Whether a process exists and is no zombie. */
export function isAlive(process: number): boolean {
  const fields = statusOf(process);
  return fields !== null && fields.state !== 'Z';
}

function parentOf(process: number): number | null {
  return statusOf(process)?.parent ?? null;
}

function statusOf(process: number): { state: string; parent: number } | null {
  try {
    const [, state, parent] = /^\d+ \(.*\) (\S) (\d+)/s.exec(readFileSync(`/proc/${process}/stat`, 'utf8'))!;
    return { state: state!, parent: Number(parent) };
  } catch {
    return null;
  }
}
