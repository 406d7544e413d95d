/**
 * `codecell bench`: the service against the floor, in one run. Rounds of both alternate, so that what else the
 * machine is doing hits both; ratios are what to look at.
 */

import { availableParallelism, cpus } from 'node:os';
import { Floor } from './floor.ts';
import { BenchedService } from './service.ts';
import { percentile } from './statistics.ts';

const CODE = 'print(1)';
const ROUNDS = 25;
const RUNS_PER_ROUND = 20;

/** Times of single runs, and the time in which all of them were done, in milliseconds. */
interface Measurement {
  samplesMs: number[];
  elapsedMs: number;
}

/** Runs the benchmark and prints its table. Answers the exit code. */
export async function bench(_args: string[]): Promise<number> {
  const cores = availableParallelism();
  const floors = await Promise.all(Array.from({ length: cores }, () => Floor.start()));
  const service = await BenchedService.start();
  try {
    const print = (line = ''): void => void process.stdout.write(`${line}\n`);
    print(`${CODE} on ${cores} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}`);
    print(
      `${ROUNDS} alternating rounds of ${RUNS_PER_ROUND} runs per caller; floor = bare fork with the three libraries`,
    );
    print();
    print('concurrency            p50 ms    p99 ms    runs/s');
    for (const concurrency of cores === 1 ? [1] : [1, cores]) {
      const floor: Measurement = { samplesMs: [], elapsedMs: 0 };
      const http: Measurement = { samplesMs: [], elapsedMs: 0 };
      const floorCaller = (caller: number) => floors[caller]!.run(CODE, RUNS_PER_ROUND);
      const httpCaller = async (): Promise<number[]> => {
        const samplesMs: number[] = [];
        for (let count = 0; count < RUNS_PER_ROUND; count++) samplesMs.push(await service.execute(CODE));
        return samplesMs;
      };
      await measure({ samplesMs: [], elapsedMs: 0 }, concurrency, httpCaller);
      for (let round = 0; round < ROUNDS; round++) {
        await measure(floor, concurrency, floorCaller);
        await measure(http, concurrency, httpCaller);
      }
      print(row(`${concurrency}  floor`, floor));
      print(row(`${concurrency}  HTTP`, http));
      const latency = percentile(http.samplesMs, 0.5) / percentile(floor.samplesMs, 0.5);
      const throughput = rate(http) / rate(floor);
      print(
        `${concurrency}  HTTP / floor      ${latency.toFixed(2).padStart(6)}              ${throughput.toFixed(2).padStart(6)}`,
      );
    }
    return 0;
  } finally {
    for (const floor of floors) floor.stop();
    await service.stop();
  }
}

async function measure(
  into: Measurement,
  concurrency: number,
  caller: (index: number) => Promise<number[]>,
): Promise<void> {
  const startMs = performance.now();
  const samples = await Promise.all(Array.from({ length: concurrency }, (_, index) => caller(index)));
  into.elapsedMs += performance.now() - startMs;
  into.samplesMs.push(...samples.flat());
}

function rate({ samplesMs, elapsedMs }: Measurement): number {
  return (samplesMs.length / elapsedMs) * 1000;
}

function row(name: string, measurement: Measurement): string {
  const { samplesMs } = measurement;
  const columns = [percentile(samplesMs, 0.5), percentile(samplesMs, 0.99)].map((ms) =>
    ms.toFixed(2).padStart(8),
  );
  return `${name.padEnd(20)} ${columns.join('  ')}  ${rate(measurement).toFixed(0).padStart(8)}`;
}
