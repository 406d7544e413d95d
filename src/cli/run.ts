/**
 * `codecell run`: one program in the same sandbox, without a server. What it prints passes through as it comes;
 * images become files; the rest is said on stderr.
 *
 * A run that is lost with its zygote is repeated by the sandbox only while none of its output has been passed
 * through, so nothing appears twice; after that it is reported as lost. SIGINT, SIGTERM, SIGHUP and a reader of
 * our output that has gone stop the program and keep what it has shown; a second signal ends this process at once.
 */

import { statSync } from 'node:fs';
import { finishedRun } from '../runs/outcome.ts';
import type { Run, RunImage } from '../runs/run.ts';
import { runJson } from '../runs/run-json.ts';
import { createSandbox } from '../sandbox/create.ts';
import { type Execution, type OutputListener, SandboxFaultError } from '../sandbox/execution.ts';
import { SILENT_LOGGER } from '../sandbox/logger.ts';
import { ArgumentError } from '../shared/errors.ts';
import { newRunId } from '../shared/ids.ts';
import { makeFolder } from '../shared/make-folder.ts';
import { writeImages } from './run-images.ts';
import { EXIT_CODES, exitCodeOf, noticesOf, signalExitCode } from './run-report.ts';
import { MEMORY_MB_MAX, type RunArguments, readRequest } from './run-request.ts';

export interface RunOptions extends RunArguments {
  /** Folder for the images; by default the current one. */
  images?: string;
  /** Print the Run as JSON and nothing else. */
  json: boolean;
}

/** Runs the program and answers the exit code. */
export async function run(options: RunOptions): Promise<number> {
  const stop = stopSignal();
  try {
    const run = await execute(options, stop);
    const code = await report(run, options);
    return stop.aborted ? signalExitCode(stop.reason) : code;
  } catch (error) {
    if (stop.aborted) return signalExitCode(stop.reason);
    if (error instanceof ArgumentError) return complain(error.message, EXIT_CODES.badUsage);
    if (error instanceof SandboxFaultError) return complain(error.message, EXIT_CODES.sandboxFault);
    throw error;
  }
}

interface FinishedRun {
  run: Run;
  execution: Execution;
  /** Whether a stream has ended within a line, so that ours has to begin a new one. */
  openLine: Record<'stdout' | 'stderr', boolean>;
}

async function execute(options: RunOptions, stop: AbortSignal): Promise<FinishedRun> {
  const createdAt = new Date();
  const readTheRest = await readRequest(options, stop);
  if (options.images !== undefined) makeImageFolder(options.images);
  const sandbox = createSandbox({ concurrency: 1, memoryMbMax: MEMORY_MB_MAX, logger: SILENT_LOGGER });
  // It warms up while standard input arrives. Whoever awaits it below handles its error.
  const started = sandbox.start();
  started.catch(() => undefined);
  try {
    const request = await readTheRest();
    await started;
    const openLine = { stdout: false, stderr: false };
    const passThrough: OutputListener = (stream, chunk) => {
      process[stream].write(chunk);
      openLine[stream] = chunk.at(-1) !== 0x0a;
    };
    const execution = await sandbox.execute(request, {
      signal: stop,
      ...(options.json ? {} : { onOutput: passThrough }),
    });
    const limits = { timeout_ms: request.timeoutMs, memory_mb: request.memoryMb };
    return { run: finishedRun({ id: newRunId(), createdAt, limits }, execution, 0), execution, openLine };
  } finally {
    // A sandbox that is still starting cannot be stopped: it would go on.
    await started.catch(() => undefined);
    await sandbox.stop();
  }
}

/** Says everything that has not passed through yet. Answers the exit code. */
async function report({ run, execution, openLine }: FinishedRun, options: RunOptions): Promise<number> {
  const code = exitCodeOf(run, execution.ending);
  if (options.json) {
    process.stdout.write(`${runJson(run)}\n`);
    return code;
  }
  if (run.value !== null) {
    process.stdout.write(`${openLine.stdout ? '\n' : ''}${run.value.text}\n`);
  }
  const say = (line: string): void => {
    process.stderr.write(`${openLine.stderr ? '\n' : ''}${line}\n`);
    openLine.stderr = false;
  };
  for (const notice of noticesOf(run)) say(notice);
  try {
    await writeImages(run.images, options.images ?? '', (path, image) =>
      say(`image: ${path}${sizeOf(image)}`),
    );
  } catch (error) {
    say(`codecell: cannot write an image: ${(error as Error).message}`);
    return code === 0 ? EXIT_CODES.cannotWriteImages : code;
  }
  return code;
}

function sizeOf({ width, height }: RunImage): string {
  return width === null || height === null ? '' : ` (${width} × ${height})`;
}

function makeImageFolder(path: string): void {
  try {
    makeFolder(path);
  } catch (error) {
    throw new ArgumentError(`--images ${path}: the folder cannot be made (${(error as Error).message})`);
  }
  if (!statSync(path).isDirectory()) throw new ArgumentError(`--images ${path}: this is no folder`);
}

function complain(message: string, exitCode: number): number {
  process.stderr.write(`codecell: ${message}\n`);
  return exitCode;
}

/** Aborted, with the signal's name as the reason, when the user wants no more of it. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(signalExitCode(signal));
      controller.abort(signal);
    });
  }
  // Whoever read our output has gone: to a program of the shell that would be SIGPIPE.
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', () => controller.abort('SIGPIPE'));
  return controller.signal;
}
