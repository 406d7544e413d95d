/** The Python runtime that set-up made: read from `.runtime/manifest.json`, written by `sandbox/prepare.py`. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface RuntimeManifest {
  python: { version: string; executable: string; standardLibrary: string };
  /** Below the runtime folder. */
  packagesFolder: string;
  sharedLibraries: string[];
  /** Where the C library keeps the locale of runs. */
  localeFolders: string[];
  packages: { name: string; version: string }[];
}

/** The runtime and where it lies on this host. */
export interface Runtime extends RuntimeManifest {
  /** The folder that set-up built. */
  folder: string;
  /** The Python source of the sandbox itself. */
  sandboxFolder: string;
}

/** The repository's own folder. */
export const PROJECT_FOLDER = join(import.meta.dirname, '..', '..');

/**
 * Reads the manifest.
 * @throws Error that says to run set-up, when there is none.
 */
export async function readRuntime(projectFolder: string = PROJECT_FOLDER): Promise<Runtime> {
  const folder = join(projectFolder, '.runtime');
  let text: string;
  try {
    text = await readFile(join(folder, 'manifest.json'), 'utf8');
  } catch (cause) {
    throw new Error(`The Python runtime is missing (${folder}). Run: scripts/setup`, { cause });
  }
  return { ...(JSON.parse(text) as RuntimeManifest), folder, sandboxFolder: join(projectFolder, 'sandbox') };
}
