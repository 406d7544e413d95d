/** `codecell jobs`: every key's jobs, from the data folder, also while the service runs on it. */

import { loadConfig } from '../config.ts';
import { summaryJson, unendedRun } from '../runs/jobs/job-end.ts';
import type { Run, RunStatus } from '../runs/run.ts';
import { runJson } from '../runs/run-json.ts';
import { counted } from '../shared/counted.ts';
import { ArgumentError, OperatorError } from '../shared/errors.ts';
import { openExistingDatabase } from '../store/database.ts';
import type { JobRecord } from '../store/job-queue.ts';
import { fitted, INVISIBLE } from './columns.ts';
import { type CommandJobs, commandJobs } from './command-jobs.ts';
import { paint } from './paint.ts';
import { showWaiting } from './spinner.ts';

export interface JobOptions {
  json: boolean;
}

export interface JobListOptions extends JobOptions {
  status?: RunStatus;
  key?: string;
  limit: string;
}

/** How often the database is asked while a command waits, in milliseconds. */
const ASK_MS = 100;

/** Prints jobs, newest first. */
export async function listJobs(environment: NodeJS.ProcessEnv, options: JobListOptions): Promise<void> {
  const limit = Number(options.limit);
  if (!/^\d{1,5}$/.test(options.limit) || limit < 1) {
    throw new ArgumentError('--limit must be a whole number, 1 to 99999');
  }
  await withJobs(environment, async ({ reader }) => {
    const jobs = await reader.list({ keyId: options.key, status: options.status, limit });
    if (options.json) {
      process.stdout.write(`[${jobs.map(summaryJson).join(',')}]\n`);
      return;
    }
    if (jobs.length === 0) process.stdout.write('There are no such jobs.\n');
    else process.stdout.write(`${table(jobs)}\n`);
  });
}

/** Prints a job as it is now. */
export async function showJob(
  environment: NodeJS.ProcessEnv,
  id: string,
  options: JobOptions,
): Promise<void> {
  await withJobs(environment, async (jobs) => printJob(jobs, await existing(jobs, id), options));
}

/** Waits until a job has ended, and prints it. Answers the exit code: 0 for one that succeeded. */
export async function waitForJob(
  environment: NodeJS.ProcessEnv,
  id: string,
  options: JobOptions,
): Promise<number> {
  return withJobs(environment, async (jobs) => {
    const job = await ended(jobs, id);
    await printJob(jobs, job, options);
    return job.status === 'succeeded' ? 0 : 1;
  });
}

/** Cancels a job, waits until its process is gone, and prints it. */
export async function cancelJob(
  environment: NodeJS.ProcessEnv,
  id: string,
  options: JobOptions,
): Promise<void> {
  await withJobs(environment, async (jobs) => {
    // Again and again, since whoever runs it may be gone before it is stopped.
    const cancel = async (): Promise<void> => {
      if ((await jobs.queue.cancel(id, undefined)) === 'missing') throw noSuchJob(id);
    };
    await printJob(jobs, await ended(jobs, id, cancel), options);
    // The program of a job that never ran.
    await jobs.queue.purge();
  });
}

async function withJobs<Result>(
  environment: NodeJS.ProcessEnv,
  body: (jobs: CommandJobs) => Promise<Result>,
): Promise<Result> {
  const { config } = loadConfig(environment);
  const db = await openExistingDatabase(config.dataDir);
  try {
    return await body(commandJobs(db));
  } finally {
    await db.destroy();
  }
}

async function ended(
  jobs: CommandJobs,
  id: string,
  beforeEachLook: () => Promise<void> = async () => undefined,
): Promise<JobRecord> {
  const waiting = showWaiting();
  try {
    for (;;) {
      await beforeEachLook();
      const job = await existing(jobs, id);
      if (job.finishedAtMs !== null) return job;
      waiting.update(job.status);
      await new Promise((resolve) => setTimeout(resolve, ASK_MS));
    }
  } finally {
    waiting.end();
  }
}

async function existing({ reader }: CommandJobs, id: string): Promise<JobRecord> {
  const job = await reader.find(id, undefined);
  if (job === null) throw noSuchJob(id);
  return job;
}

function noSuchJob(id: string): OperatorError {
  return new OperatorError(`There is no job ${fitted(id, Math.min(60, id.length)).trim()}.`);
}

async function printJob({ reader }: CommandJobs, job: JobRecord, { json }: JobOptions): Promise<void> {
  const parts: Buffer[] = [];
  if (job.finishedAtMs !== null) for await (const part of reader.result(job)) parts.push(part);
  const text = job.finishedAtMs === null ? runJson(unendedRun(job)) : Buffer.concat(parts).toString();
  process.stdout.write(json ? `${text}\n` : described(JSON.parse(text) as Run, job.keyId));
}

function described(run: Run, keyId: string): string {
  const { usage, error } = run;
  const lines = [
    `${run.id}  ${painted(run.status)}`,
    `key      ${keyId}`,
    `created  ${run.created_at}`,
    `started  ${run.started_at ?? '-'}`,
    `ended    ${run.finished_at ?? '-'}`,
  ];
  if (usage.wall_ms !== null) {
    lines.push(`waited ${usage.queue_ms} ms, ran ${usage.wall_ms} ms, used ${usage.cpu_ms} ms of CPU`);
  }
  if (error !== null) lines.push(visible(`${error.type}: ${error.message}`));
  if (error?.hint) lines.push(`hint: ${error.hint}`);
  if (run.value !== null) lines.push(`--- value\n${visible(run.value.text)}`);
  if (run.images.length > 0) lines.push(`${counted(run.images.length, 'image')}: in --json`);
  const streams = (['stdout', 'stderr'] as const).filter((name) => run[name] !== '');
  return `${[...lines, ...streams.map((name) => `--- ${name}\n${visible(run[name])}`)].join('\n')}\n`;
}

/** What a program wrote may hold commands to the terminal. */
function visible(text: string): string {
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => line.replace(INVISIBLE, (character) => (character === '\t' ? '\t' : '?')))
    .join('\n');
}

function table(jobs: JobRecord[]): string {
  const heading = `${'id'.padEnd(40)} ${'status'.padEnd(15)} ${'created'.padEnd(20)} key`;
  return [
    paint('bold', heading),
    ...jobs.map((job) => {
      const created = new Date(job.createdAtMs).toISOString().slice(0, 19);
      return `${job.id} ${painted(job.status, 15)} ${created}Z ${job.keyId}`;
    }),
  ].join('\n');
}

function painted(status: string, width = 0): string {
  const colour = status === 'succeeded' ? 'green' : ['queued', 'running'].includes(status) ? 'cyan' : 'red';
  return paint(colour, status.padEnd(width));
}
