/**
 * Whose job is next. Keys are gone round by their ids; of a key, the oldest job is next. A key is passed over, and its
 * jobs wait, while it has as many executions as it may (`concurrency`), or a request of its own was refused because of
 * its jobs and may come back, or it has used its processor time of today (`cpu_seconds_per_day`): nobody waits for them.
 */

import { cpuLeftMs } from '../../limits/cpu-quota.ts';
import type { KeyWork } from '../../limits/key-work.ts';
import type { Clock } from '../../shared/clock.ts';
import type { ClaimedJob, JobQueue, JobReader } from '../../store/job-queue.ts';
import type { KeyStore } from '../../store/key-store.ts';
import type { RunCharge } from '../../store/usage-store.ts';
import type { CpuUsage } from '../../usage/cpu-usage.ts';

export interface JobTurnsOptions {
  queue: Pick<JobQueue, 'claim'>;
  reader: Pick<JobReader, 'anyWaiting' | 'nextKeyId'>;
  work: KeyWork;
  keys: Pick<KeyStore, 'findAll'>;
  usage: CpuUsage;
  clock: Clock;
}

export class JobTurns {
  readonly #options: JobTurnsOptions;
  #afterKeyId = '';
  /** Keys that have used their time of today, as far as they have come up. */
  readonly #spent = new Set<string>();
  /** Processor milliseconds by key of jobs whose program has ended, and whose charge is being stored. */
  readonly #unstored = new Map<string, number>();
  #passedOver = false;

  constructor(options: JobTurnsOptions) {
    this.#options = options;
  }

  /** Whether jobs wait for nothing but their own key. */
  get passedOver(): boolean {
    return this.#passedOver;
  }

  /** Claims the next job; null when there is none whose key may run one. */
  async claim(): Promise<ClaimedJob | null> {
    const { queue, reader, work, clock } = this.#options;
    const awaited = work.awaitedKeyIds(clock.monotonicMs());
    const except = new Set([...(await this.#busy()), ...awaited, ...this.#spent]);
    for (;;) {
      const turn = { afterKeyId: this.#afterKeyId, except: [...except] };
      const keyId = await reader.nextKeyId(turn);
      if (keyId === null) {
        this.#passedOver = except.size > 0 && (await reader.anyWaiting());
        return null;
      }
      if (await this.#hasSpent(keyId)) {
        this.#spent.add(keyId);
        except.add(keyId);
        continue;
      }
      const job = await queue.claim(turn);
      if (job !== null) {
        this.#afterKeyId = job.keyId;
        return job;
      }
    }
  }

  /** Counts what an ended program has used until its charge is stored, since the next one may be claimed before. */
  ended({ key_id, cpu_ms }: RunCharge): { onStored: () => void } {
    this.#addUnstored(key_id, cpu_ms);
    return { onStored: () => this.#addUnstored(key_id, -cpu_ms) };
  }

  #addUnstored(keyId: string, cpuMs: number): void {
    const sum = (this.#unstored.get(keyId) ?? 0) + cpuMs;
    if (sum === 0) this.#unstored.delete(keyId);
    else this.#unstored.set(keyId, sum);
  }

  /** Looks whether keys that had used their time have some again: at midnight, or after a change of their limits. */
  async refresh(): Promise<void> {
    for (const keyId of this.#spent) if (!(await this.#hasSpent(keyId))) this.#spent.delete(keyId);
  }

  /** Keys that have as many executions as they may. Only those that have any are looked up. */
  async #busy(): Promise<string[]> {
    const { work, keys } = this.#options;
    return (await keys.findAll(work.keyIds()))
      .filter(({ id, limits }) => work.count(id) >= (limits.concurrency ?? Number.POSITIVE_INFINITY))
      .map(({ id }) => id);
  }

  async #hasSpent(keyId: string): Promise<boolean> {
    const { keys, usage } = this.#options;
    const usedMs = usage.usedTodayMs(keyId) + (this.#unstored.get(keyId) ?? 0);
    if (usedMs === 0) return false;
    const [key] = await keys.findAll([keyId]);
    // That of a revoked key is claimed, to be cancelled.
    return key !== undefined && key.revokedAt === null && cpuLeftMs(key, usedMs) === 0;
  }
}
