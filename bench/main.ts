/**
 * `codecell bench`: the service against the floor, in one run. Rounds of both alternate, so that what else the
 * machine is doing hits both; ratios are what to look at.
 */

import { availableParallelism, cpus } from 'node:os';
import { Floor } from './floor.ts';
import { benchJobs } from './jobs.ts';
import { BenchedService } from './service.ts';
import { percentile } from './statistics.ts';
import { benchUsage } from './usage.ts';
import { WORKLOADS, type Workload } from './workloads.ts';

/** Times of single runs, and the time in which all of them were done, in milliseconds. */
interface Measurement {
  samplesMs: number[];
  elapsedMs: number;
}

interface Contest {
  floors: Floor[];
  service: BenchedService;
}

/** Benchmarks of their own, which have nothing to do with the floor. They run only where they are named. */
const OTHERS: Record<string, () => Promise<void>> = { usage: benchUsage, jobs: benchJobs };

/** Runs the benchmark, or what is named, and prints its tables. Answers the exit code. */
export async function bench(names: string[]): Promise<number> {
  const known = [...WORKLOADS.map(({ name }) => name), ...Object.keys(OTHERS)];
  if (names.some((name) => !known.includes(name))) {
    process.stderr.write(`codecell: benchmarks are ${known.join(', ')}\n`);
    return 2;
  }
  for (const [name, run] of Object.entries(OTHERS)) if (names.includes(name)) await run();
  const chosen = WORKLOADS.filter(({ name }) => names.length === 0 || names.includes(name));
  return chosen.length === 0 ? 0 : await benchAgainstFloor(chosen);
}

async function benchAgainstFloor(chosen: Workload[]): Promise<number> {
  const cores = availableParallelism();
  const floors = await Promise.all(Array.from({ length: cores }, () => Floor.start()));
  const service = await BenchedService.start();
  try {
    print(`${cores} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}`);
    print('Rounds of both alternate. floor = bare fork of an interpreter with numpy, pandas and matplotlib');
    for (const workload of chosen) {
      print(`\n${workload.name}: ${workload.what}`);
      print('callers                   p50 ms    p99 ms    runs/s');
      for (const callers of workload.inParallel && cores > 1 ? [1, cores] : [1]) {
        await compare(workload, callers, { floors, service });
      }
    }
    return 0;
  } finally {
    for (const floor of floors) floor.stop();
    await service.stop();
  }
}

async function compare(workload: Workload, callers: number, { floors, service }: Contest): Promise<void> {
  const { code, floorCode, rounds, runsPerRound } = workload;
  const floorCaller = (caller: number) => floors[caller]!.run(floorCode, runsPerRound);
  const httpCaller = async (): Promise<number[]> => {
    const samplesMs: number[] = [];
    for (let count = 0; count < runsPerRound; count++) samplesMs.push(await service.execute(code));
    return samplesMs;
  };
  const floor: Measurement = { samplesMs: [], elapsedMs: 0 };
  const http: Measurement = { samplesMs: [], elapsedMs: 0 };
  await measure({ samplesMs: [], elapsedMs: 0 }, callers, httpCaller);
  for (let round = 0; round < rounds; round++) {
    await measure(floor, callers, floorCaller);
    await measure(http, callers, httpCaller);
  }
  const latency = percentile(http.samplesMs, 0.5) / percentile(floor.samplesMs, 0.5);
  print(row(`${callers}  floor`, floor));
  print(row(`${callers}  HTTP`, http));
  print(
    `${`${callers}  HTTP / floor`.padEnd(22)} ${latency.toFixed(2).padStart(8)}            ${(rate(http) / rate(floor)).toFixed(2).padStart(8)}`,
  );
}

async function measure(
  into: Measurement,
  callers: number,
  caller: (index: number) => Promise<number[]>,
): Promise<void> {
  const startMs = performance.now();
  const samples = await Promise.all(Array.from({ length: callers }, (_, index) => caller(index)));
  into.elapsedMs += performance.now() - startMs;
  into.samplesMs.push(...samples.flat());
}

function rate({ samplesMs, elapsedMs }: Measurement): number {
  return (samplesMs.length / elapsedMs) * 1000;
}

function row(name: string, measurement: Measurement): string {
  const { samplesMs } = measurement;
  const columns = [0.5, 0.99].map((share) => percentile(samplesMs, share).toFixed(2).padStart(8));
  return `${name.padEnd(22)} ${columns.join('  ')}  ${rate(measurement).toFixed(0).padStart(8)}`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
