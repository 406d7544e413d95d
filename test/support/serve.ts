/** `codecell serve` as a process that is killed and started again on the same data folder. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JobsApi } from './jobs-api.ts';
import { CodecellProcess } from './process.ts';

const ADMIN_KEY = 'an-admin-key-of-more-than-32-characters';

export class ServedFolder {
  readonly dataDir: string;
  readonly #settings: Record<string, string>;
  process!: CodecellProcess;
  url = '';

  private constructor(dataDir: string, settings: Record<string, string>) {
    this.dataDir = dataDir;
    this.#settings = settings;
  }

  /** Starts a service on an empty folder. `settings` are CODECELL_ variables, without the prefix. */
  static async start(settings: Record<string, string> = {}): Promise<ServedFolder> {
    const folder = new ServedFolder(await mkdtemp(join(tmpdir(), 'codecell-test-')), settings);
    await folder.restart();
    return folder;
  }

  get environment(): Record<string, string> {
    const settings = Object.entries(this.#settings).map(([name, value]) => [`CODECELL_${name}`, value]);
    return {
      CODECELL_PORT: '0',
      CODECELL_DATA_DIR: this.dataDir,
      CODECELL_ADMIN_KEY: ADMIN_KEY,
      ...Object.fromEntries(settings),
    };
  }

  get jobs(): JobsApi {
    return new JobsApi(this.url, ADMIN_KEY);
  }

  /** Any request by the admin key. */
  async get(path: string): Promise<unknown> {
    const response = await fetch(this.url + path, { headers: { 'X-API-Key': ADMIN_KEY } });
    return response.json();
  }

  /** Starts a service without waiting for it. */
  begin(): void {
    this.process = new CodecellProcess(['serve'], { environment: this.environment });
  }

  async restart(): Promise<void> {
    this.begin();
    this.url = await this.process.url();
  }

  async kill(): Promise<void> {
    this.process.child.kill('SIGKILL');
    await this.process.ended();
  }

  /** Kills what runs and removes the folder. */
  async remove(): Promise<void> {
    await this.kill();
    await rm(this.dataDir, { recursive: true, force: true });
  }
}
