/**
 * What keys, limits, usage and metrics add to `POST /v1/execute`: the same run by three services that take turns, so
 * that what else the machine is doing hits all of them alike.
 */

import { addLimitedKey, addYears } from './seed.ts';
import { BenchedService } from './service.ts';
import { percentile } from './statistics.ts';

const CODE = '1';
const ROUNDS = 60;
const RUNS_PER_ROUND = 25;

interface Contestant {
  name: string;
  service: BenchedService;
  samplesMs: number[];
  /** Processor time of the service, which other programs on the machine change little. */
  cpuMs: number;
}

/** Runs the benchmark and prints its table. */
export async function benchUsage(): Promise<void> {
  const contestants: Contestant[] = [];
  const add = (name: string, service: BenchedService) =>
    contestants.push({ name, service, samplesMs: [], cpuMs: 0 });
  try {
    add('without', await BenchedService.start({ script: 'bare-service.ts' }));
    add('with', await BenchedService.start({ prepare: addLimitedKey }));
    const prepare = async (dataDir: string): Promise<string> => {
      await addYears(dataDir);
      return addLimitedKey(dataDir);
    };
    add('with, many rows', await BenchedService.start({ prepare }));
    for (const { service } of contestants) await round(service);
    for (let count = 0; count < ROUNDS; count++) {
      for (const contestant of contestants) {
        const { service, samplesMs } = contestant;
        const before = service.cpuMs();
        samplesMs.push(...(await round(service)));
        contestant.cpuMs += service.cpuMs() - before;
      }
    }
  } finally {
    for (const { service } of contestants) await service.stop();
  }
  const lines = [
    'usage: what keys, limits, usage and metrics add to one run of "1"',
    'many rows = 10,000 keys, a million hours of usage, a million runs of today',
    `${ROUNDS} rounds of ${RUNS_PER_ROUND} by each, in turn; one caller`,
    '',
    'service                 p50 ms    p90 ms    p99 ms    CPU ms   p50 against "without"',
    ...contestants.map((contestant) => line(contestant, contestants[0]!)),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}

async function round(service: BenchedService): Promise<number[]> {
  const samplesMs: number[] = [];
  for (let count = 0; count < RUNS_PER_ROUND; count++) samplesMs.push(await service.execute(CODE));
  return samplesMs;
}

function line({ name, samplesMs, cpuMs }: Contestant, base: Contestant): string {
  const times = [0.5, 0.9, 0.99].map((share) => percentile(samplesMs, share));
  const columns = [...times, cpuMs / samplesMs.length].map((value) => value.toFixed(2).padStart(8));
  const ratio = percentile(samplesMs, 0.5) / percentile(base.samplesMs, 0.5);
  return `${name.padEnd(20)}  ${columns.join('  ')}   ${`${((ratio - 1) * 100).toFixed(1)} %`.padStart(8)}`;
}
