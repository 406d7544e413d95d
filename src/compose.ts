/** The one place that constructs things and ties them together. */

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { DestinationStream } from 'pino';
import { composeJobs } from './compose-jobs.ts';
import type { Config } from './config.ts';
import { AccessControl } from './http/access.ts';
import { type App, createApp, type ServerTimeouts } from './http/app.ts';
import type { BodyLimits } from './http/body-reader.ts';
import { addOpenApi, openApiRoute } from './http/openapi.ts';
import { docsPageRoute } from './http/routes/docs-page.ts';
import { executeRoute } from './http/routes/execute.ts';
import { healthRoutes } from './http/routes/health.ts';
import { jobRoutes } from './http/routes/jobs.ts';
import { keyRoutes } from './http/routes/keys.ts';
import { meRoute } from './http/routes/me.ts';
import { metricsRoute } from './http/routes/metrics.ts';
import { runtimeRoute } from './http/routes/runtime.ts';
import { startPageRoute } from './http/routes/start-page.ts';
import { usageRoute } from './http/routes/usage.ts';
import { Idempotency } from './idempotency/idempotency.ts';
import type { RetentionOptions } from './idempotency/retention.ts';
import { Authenticator } from './keys/authenticator.ts';
import { FailedAttempts } from './keys/failed-attempts.ts';
import { createFirstAdminKey } from './keys/first-admin-key.ts';
import { KeyAdministration } from './keys/key-administration.ts';
import { LastUse } from './keys/last-use.ts';
import { cancelRevoked } from './limits/cancel-revoked.ts';
import { KeyWork } from './limits/key-work.ts';
import { RateLimiter } from './limits/rate-limiter.ts';
import { RequestLimits } from './limits/request-limits.ts';
import { createLogger } from './logger.ts';
import { Metrics } from './metrics/metrics.ts';
import { Admission } from './runs/admission.ts';
import { TIMEOUT_MS_MAX } from './runs/limits.ts';
import { SynchronousRuns } from './runs/synchronous-runs.ts';
import { createSandbox } from './sandbox/create.ts';
import { readRuntime } from './sandbox/runtime.ts';
import { type Clock, systemClock } from './shared/clock.ts';
import { OperatorError } from './shared/errors.ts';
import { every } from './shared/every.ts';
import type { Logger } from './shared/logger.ts';
import { openForService, type ServiceDatabase } from './store/database.ts';
import { IdempotencyStore } from './store/idempotency-store.ts';
import { KeyStore } from './store/key-store.ts';
import { RateBucketStore } from './store/rate-bucket-store.ts';
import { UsageStore } from './store/usage-store.ts';
import { UsageRecorder } from './usage/recorder.ts';
import { UsageReports } from './usage/report.ts';
import { readVersion } from './version.ts';

const TIMEOUTS: Omit<ServerTimeouts, 'idleMs'> = {
  headersMs: 10_000,
  requestMs: 60_000,
  keepAliveMs: 72_000,
  checkMs: 1000,
};

/** A body holds three fields of 1, 4 and 4 MiB, whose characters may be written as escapes. */
const BODIES: BodyLimits = { bodyBytesMax: 16 * 2 ** 20, totalBytesMax: 256 * 2 ** 20 };

/** Bytes that waiting requests may hold together. */
const QUEUE_BYTES_MAX = 256 * 2 ** 20;

/** How long a shutdown waits for callers to take their last answers, in milliseconds. */
const LAST_ANSWERS_MS = 5000;

/** How often work is looked through for keys that another process has revoked, in milliseconds. */
const REVOCATIONS_MS = 1000;

/** How often it is written down when keys were last used, in milliseconds. */
const LAST_USE_MS = 60_000;

/** A service that answers requests. */
export interface Service {
  /** Where it listens: scheme, host, port. */
  url: string;
  /** Secret of the admin key that this start has made; null when there was one. It is nowhere else. */
  firstAdminKey: string | null;
  /** Requests that hold a slot, and requests that wait for one. */
  load(): { running: number; waiting: number };
  /** Refuses what is new or waiting, lets running programs finish and their answers go out, and ends everything. */
  stop(): Promise<void>;
}

/** What tests shrink or look into. */
export interface ServiceOptions {
  timeouts?: Partial<ServerTimeouts>;
  logDestination?: DestinationStream;
  clock?: Clock;
  answers?: Partial<Pick<RetentionOptions, 'bytesMax' | 'purgeMs'>>;
}

/**
 * Starts the whole service. It listens only once its sandbox has proved that it can hold programs.
 * @throws OperatorError when a prerequisite is missing, with the remedy.
 */
export async function startService(config: Config, options: ServiceOptions = {}): Promise<Service> {
  const logger = createLogger(config.logLevel, options.logDestination);
  const version = readVersion();
  const runtime = await orOperatorError(readRuntime());
  const { memoryMbMax, concurrency, queueMax, queueWaitMs } = config;
  const sandbox = createSandbox({ concurrency, memoryMbMax, logger });
  // The sandbox takes about a second to warm up; everything else is made ready meanwhile.
  const sandboxStarted = sandbox.start();
  // Whoever awaits it below handles its error; until then it is not an unhandled one.
  sandboxStarted.catch(() => undefined);
  let opened: ServiceDatabase | undefined;
  let usage: UsageRecorder | undefined;
  let answers: Idempotency | undefined;
  const clock = options.clock ?? systemClock;
  try {
    opened = await openForService(config.dataDir);
    const { db } = opened;
    const keys = new KeyStore(db);
    const admission = new Admission({ concurrency, queueMax, queueWaitMs, queueBytesMax: QUEUE_BYTES_MAX });
    const load = () => ({ running: admission.running, waiting: admission.waiting });
    const metrics = new Metrics({
      version,
      concurrency,
      load,
      sandbox: () => sandbox.statistics(),
      jobs: () => jobs.jobs.load(),
      usageWritable: () => usage?.writable ?? true,
    });
    const usageStore = new UsageStore(db);
    usage = await UsageRecorder.open({ store: usageStore, clock, logger, observer: metrics });
    const recorder = usage;
    const rates = await RateLimiter.open(new RateBucketStore(db), clock);
    const work = new KeyWork();
    const limits = new RequestLimits({ rates, work, cpuUsage: recorder, clock });
    const lastUse = new LastUse({ keys, clock });
    const jobs = await composeJobs({
      ...{ config, db, sandbox, admission, work, keys, usageStore, usage, clock, logger },
    });
    const administration = new KeyAdministration({
      keys,
      clock,
      lastAdminMayGo: config.adminKey !== undefined,
      onRevoked: (keyId) => {
        work.cancel(keyId);
        jobs.cancelAll(keyId);
      },
    });
    const store = new IdempotencyStore(db);
    const idempotency = await Idempotency.open({ store, clock, logger, ...options.answers });
    answers = idempotency;
    const { app, connections } = createApp({
      logger,
      access: new AccessControl({
        authenticator: new Authenticator({ keys, clock, environmentAdminKey: config.adminKey }),
        failedAttempts: new FailedAttempts({
          clock,
          max: 30,
          windowMs: 60_000,
          addressesMax: 10_000,
        }),
        lastUse,
      }),
      trustedProxies: config.trustedProxies,
      bodies: BODIES,
      timeouts: { ...TIMEOUTS, idleMs: idleMs(queueWaitMs), ...options.timeouts },
      closing: () => !admission.open,
      onAnswered: (answer) => metrics.answered(answer),
      limits,
      idempotency,
      refusals: recorder,
    });
    await addOpenApi(app, version);
    executeRoute(app, {
      runs: new SynchronousRuns({ sandbox, admission, usage, clock }),
      idempotency,
      limits,
      memoryMbMax,
    });
    jobRoutes(app, { jobs: jobs.jobs, idempotency, memoryMbMax, closing: () => !admission.open });
    runtimeRoute(app, { runtime, memoryMbMax });
    keyRoutes(app, { administration, lastUse, clock });
    meRoute(app, { limits, jobs: jobs.jobs, lastUse, clock });
    usageRoute(app, { reports: new UsageReports(db), clock });
    metricsRoute(app, { metrics });
    healthRoutes(app, {
      readiness: () => {
        if (!admission.open) return 'shutting down';
        return sandbox.ready && recorder.writable ? 'ready' : 'unavailable';
      },
    });
    openApiRoute(app);
    docsPageRoute(app);
    startPageRoute(app, { version });
    await app.ready();
    await orOperatorError(sandboxStarted);
    const url = await listen(app, config);
    const firstAdminKey =
      config.adminKey === undefined ? await orOperatorError(createFirstAdminKey(keys, clock)) : null;
    logger.info({ url, version, concurrency }, 'the service is ready');
    jobs.start();
    const stopWatch = every(
      REVOCATIONS_MS,
      () => cancelRevoked(keys, work),
      (error) => logger.error({ err: error }, 'revoked keys could not be looked up'),
    );
    const stopWriting = every(
      LAST_USE_MS,
      () => lastUse.write(),
      (error) => logger.warn({ err: error }, 'the last use of keys could not be stored'),
    );
    return {
      url,
      firstAdminKey,
      load,
      stop: async () => {
        logger.info(load(), 'the service is shutting down');
        admission.close();
        jobs.endWaits();
        await admission.idle();
        await jobs.stop();
        // Who waits for its charge to be stored has an answer to come.
        await recorder.settled();
        await atMost(LAST_ANSWERS_MS, connections.idle());
        app.server.close();
        app.server.closeAllConnections();
        await app.close();
        await sandbox.stop();
        await Promise.all([stopWatch(), stopWriting(), idempotency.close()]);
        await recorder.close();
        await writeLast(logger, [() => rates.close(), () => lastUse.write()]);
        await opened?.close();
      },
    };
  } catch (error) {
    // A sandbox that is still starting cannot be stopped: it would go on.
    await sandboxStarted.catch(() => undefined);
    await sandbox.stop();
    await usage?.close();
    await answers?.close();
    await opened?.close();
    throw error;
  }
}

/** Writes what is only good to have. What cannot be written, as on a full disk, does not hold up the end. */
async function writeLast(logger: Logger, writes: (() => Promise<void>)[]): Promise<void> {
  for (const write of writes) {
    await write().catch((error: unknown) =>
      logger.error({ err: error }, 'limits and last uses of keys could not be stored at the end'),
    );
  }
}

/** No byte passes while a request waits and its program runs; that is no reason to close a connection. */
function idleMs(queueWaitMs: number): number {
  return queueWaitMs + TIMEOUT_MS_MAX + 60_000;
}

/** Waits for `promise`, but no longer than `timeoutMs`. */
async function atMost(timeoutMs: number, promise: Promise<void>): Promise<void> {
  const { promise: patience, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, timeoutMs);
  await Promise.race([promise, patience]);
  clearTimeout(timer);
}

async function listen(app: App, config: Config): Promise<string> {
  try {
    app.server.listen({ host: config.host, port: config.port });
    await once(app.server, 'listening');
  } catch (error) {
    throw new OperatorError(
      `Cannot listen on ${config.host}, port ${config.port} (${(error as Error).message}). CODECELL_HOST and CODECELL_PORT set them.`,
      { cause: error },
    );
  }
  const { port } = app.server.address() as AddressInfo;
  return `http://${reachableHost(config.host)}:${port}`;
}

/** An address that a caller on this host can use; `0.0.0.0` and `::` only say "every address". */
function reachableHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

async function orOperatorError<Value>(promise: Promise<Value>): Promise<Value> {
  try {
    return await promise;
  } catch (error) {
    throw new OperatorError((error as Error).message, { cause: error });
  }
}
