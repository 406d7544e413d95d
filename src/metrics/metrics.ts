/**
 * What Prometheus is told. Labels take few values, all of them known beforehand: statuses, error codes, routes as they
 * are written in the code. No label holds a key, a name or a path that somebody asked for.
 */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { SandboxStatistics } from '../sandbox/execution.ts';
import type { JobLoad } from '../store/job-queue.ts';
import type { RunCharge } from '../store/usage-store.ts';
import type { RunKind, UsageObserver } from '../usage/recorder.ts';
import { REFUSAL_CODES, type RefusalCode } from '../usage/refusals.ts';
import { CHARGED_STATUSES } from '../usage/report.ts';

/** What is asked for at the moment of a scrape. */
export interface MetricsSources {
  version: string;
  concurrency: number;
  load: () => { running: number; waiting: number };
  sandbox: () => SandboxStatistics;
  usageWritable: () => boolean;
  jobs: () => Promise<JobLoad>;
}

/** A request that has been answered, or whose caller has gone. */
export interface AnsweredRequest {
  method: string;
  /** As it is written in the code; null when nothing is at the address. */
  route: string | null;
  /** Null when the caller hung up. */
  status: number | null;
  durationMs: number;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'];

/** Upper bounds. A run takes 30 s at most; with 10 s in the queue, a request takes 40. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60];

export class Metrics implements UsageObserver {
  readonly #registry = new Registry();
  readonly #sources: MetricsSources;
  /** As they were at the start of a scrape. */
  #jobs: JobLoad = { queued: 0, running: 0, oldestQueuedMs: 0 };
  readonly #runs: Counter<'status'>;
  readonly #runSeconds: Histogram;
  readonly #waitSeconds: Histogram<'kind'>;
  readonly #cpuSeconds: Counter;
  readonly #refusals: Counter<'reason'>;
  readonly #storeSeconds: Histogram;
  readonly #httpSeconds: Histogram<'method' | 'route' | 'status'>;

  constructor(sources: MetricsSources) {
    this.#sources = sources;
    this.#runs = this.#counter('runs_total', 'Runs that have ended and were charged, by status.', ['status']);
    for (const status of CHARGED_STATUSES) this.#runs.inc({ status }, 0);
    this.#runSeconds = this.#histogram('run_seconds', 'Running time of runs that have ended.');
    this.#waitSeconds = this.#histogram('queue_wait_seconds', 'Time that runs waited for a free slot.', [
      'kind',
    ]);
    for (const kind of ['request', 'job'] satisfies RunKind[]) this.#waitSeconds.zero({ kind });
    this.#cpuSeconds = this.#counter('run_cpu_seconds_total', 'Processor time of runs that have ended.');
    this.#refusals = this.#counter('refusals_total', 'Requests refused to a key, by error code.', ['reason']);
    for (const reason of REFUSAL_CODES) this.#refusals.inc({ reason }, 0);
    this.#storeSeconds = this.#histogram('usage_store_seconds', 'Time of transactions that store usage.');
    this.#httpSeconds = this.#histogram(
      'http_request_seconds',
      'Time from the head of a request to its answer.',
      ['method', 'route', 'status'],
    );
    this.#gauge('build_info', 'Always 1; the version is in the label.', () => 1, {
      version: sources.version,
    });
    this.#gauge('slots', 'Programs that may run at the same time.', () => sources.concurrency);
    this.#gauge('runs_running', 'Runs that hold a slot.', () => sources.load().running);
    this.#gauge('runs_waiting', 'Runs that wait for a slot.', () => sources.load().waiting);
    this.#gauge('spares_ready', 'Processes that wait for a program.', () => sources.sandbox().sparesReady);
    this.#gauge('usage_writable', '1 while usage can be stored; at 0 nothing is run.', () =>
      sources.usageWritable() ? 1 : 0,
    );
    this.#gauge('jobs_queued', 'Jobs that wait for their turn.', () => this.#jobs.queued);
    this.#gauge('jobs_running', 'Jobs whose program runs.', () => this.#jobs.running);
    this.#gauge(
      'jobs_oldest_queued_seconds',
      'How long the job that was accepted first has waited; 0 when none waits.',
      () => this.#jobs.oldestQueuedMs / 1000,
    );
    this.#counted(
      'zygote_restarts_total',
      'Zygotes that ended without being asked to.',
      () => sources.sandbox().zygoteRestarts,
    );
    this.#counted(
      'runs_lost_total',
      'Times that a program was lost with its zygote.',
      () => sources.sandbox().runsLost,
    );
    collectDefaultMetrics({ register: this.#registry });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Everything, in Prometheus's text format. */
  async text(): Promise<string> {
    this.#jobs = await this.#sources.jobs();
    return this.#registry.metrics();
  }

  ran(charge: RunCharge, kind: RunKind): void {
    this.#runs.inc({ status: charge.status });
    // A job that was cancelled while it waited has run for no time, and waited for no slot that it got.
    if (charge.status === 'cancelled' && charge.wall_ms === 0) return;
    this.#runSeconds.observe(charge.wall_ms / 1000);
    this.#waitSeconds.observe({ kind }, charge.queue_ms / 1000);
    this.#cpuSeconds.inc(charge.cpu_ms / 1000);
  }

  refused(reason: RefusalCode): void {
    this.#refusals.inc({ reason });
  }

  stored(durationMs: number): void {
    this.#storeSeconds.observe(durationMs / 1000);
  }

  answered({ method, route, status, durationMs }: AnsweredRequest): void {
    this.#httpSeconds.observe(
      {
        method: METHODS.includes(method) ? method : 'other',
        route: route ?? 'none',
        status: status === null ? 'none' : `${Math.floor(status / 100)}xx`,
      },
      durationMs / 1000,
    );
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[] = []): Counter<Label> {
    return new Counter({ name: `codecell_${name}`, help, labelNames, registers: [this.#registry] });
  }

  #histogram<Label extends string>(name: string, help: string, labelNames: Label[] = []): Histogram<Label> {
    const registers = [this.#registry];
    return new Histogram({ name: `codecell_${name}`, help, labelNames, buckets: SECONDS, registers });
  }

  /** A value that is read when it is asked for. */
  #gauge(name: string, help: string, value: () => number, labels: Record<string, string> = {}): void {
    new Gauge({
      name: `codecell_${name}`,
      help,
      labelNames: Object.keys(labels),
      registers: [this.#registry],
      collect() {
        this.set(labels, value());
      },
    });
  }

  /** A count that somebody else keeps. */
  #counted(name: string, help: string, value: () => number): void {
    new Counter({
      name: `codecell_${name}`,
      help,
      registers: [this.#registry],
      collect() {
        this.reset();
        this.inc(value());
      },
    });
  }
}
