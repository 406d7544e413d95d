/**
 * What keys, limits, usage and metrics add to `POST /v1/execute`: the same run by three services that take turns, so
 * that what else the machine is doing hits all of them alike. They are compared round by round, and the median of those
 * ratios is what is told: the machine's own drift over a minute is larger than what is looked for.
 */

import { addLimitedKey, addYears } from './seed.ts';
import { BenchedService } from './service.ts';
import { percentile } from './statistics.ts';

const CODE = '1';
const ROUNDS = 120;
const RUNS_PER_ROUND = 25;

interface Contestant {
  name: string;
  service: BenchedService;
  rounds: number[][];
  /** Processor time of the service, which other programs on the machine change little. */
  cpuMs: number;
}

/** Runs the benchmark and prints its table. */
export async function benchUsage(): Promise<void> {
  const contestants: Contestant[] = [];
  const add = (name: string, service: BenchedService) =>
    contestants.push({ name, service, rounds: [], cpuMs: 0 });
  try {
    add('without', await BenchedService.start({ script: 'bare-service.ts' }));
    add('with', await BenchedService.start({ prepare: addLimitedKey }));
    const prepare = async (dataDir: string): Promise<string> => {
      await addYears(dataDir);
      return addLimitedKey(dataDir);
    };
    add('with, many rows', await BenchedService.start({ prepare }));
    for (const { service } of contestants) await round(service);
    const order = [...contestants];
    for (let count = 0; count < ROUNDS; count++) {
      for (const contestant of order) {
        const { service, rounds } = contestant;
        const before = service.cpuMs();
        rounds.push(await round(service));
        contestant.cpuMs += service.cpuMs() - before;
      }
      // Nobody always comes after the same one.
      if (count % 2 === 0) order.reverse();
      else order.push(order.shift()!);
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

function line({ name, rounds, cpuMs }: Contestant, base: Contestant): string {
  const samplesMs = rounds.flat();
  const times = [0.5, 0.9, 0.99].map((share) => percentile(samplesMs, share));
  const columns = [...times, cpuMs / samplesMs.length].map((value) => value.toFixed(2).padStart(8));
  const ratios = rounds.map(
    (each, index) => percentile(each, 0.5) / percentile(base.rounds[index] ?? [], 0.5),
  );
  const more = (percentile(ratios, 0.5) - 1) * 100;
  return `${name.padEnd(20)}  ${columns.join('  ')}   ${`${more.toFixed(1)} %`.padStart(8)}`;
}
