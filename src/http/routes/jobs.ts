/** `/v1/jobs`: programs that are sent now and whose Run is fetched later. */

import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { summaryJson, unendedRun } from '../../runs/jobs/job-end.ts';
import type { Jobs } from '../../runs/jobs/jobs.ts';
import { limitRange } from '../../runs/limits.ts';
import { RUN_STATUSES, type Run, type RunStatus } from '../../runs/run.ts';
import { runJson } from '../../runs/run-json.ts';
import { ServiceError } from '../../shared/errors.ts';
import type { JobRecord } from '../../store/job-queue.ts';
import type { App } from '../app.ts';
import { callersKey } from '../caller.ts';
import { PAGE_LIMIT_DEFAULT, PAGE_PARAMETERS, page, readCursor } from '../cursor.ts';
import { answerOnce, IDEMPOTENCY_ERRORS, idempotencyHeaders } from '../idempotent.ts';
import { inParts } from '../in-parts.ts';
import { jobListSchema, jobSummarySchema } from '../job-schema.ts';
import { runReference } from '../run-schema.ts';
import { executeBodySchema, toExecutionRequest } from './execute-request.ts';

export interface JobRoutesOptions {
  jobs: Jobs;
  idempotency: Idempotency;
  /** The service's ceiling of memory_mb. */
  memoryMbMax: number;
  /** True while the service ends. */
  closing: () => boolean;
}

const JSON_TYPE = 'application/json; charset=utf-8';

/** The longest wait of `GET /v1/jobs/{id}`, in seconds. */
const WAIT_SECONDS_MAX = 30;

const jobParameters = Type.Object({ id: Type.String({ description: 'Id of a job.' }) });

/** The routes of `/v1/jobs`: accept, show, list and cancel. */
export function jobRoutes(app: App, { jobs, idempotency, memoryMbMax, closing }: JobRoutesOptions): void {
  app.addSchema(jobSummarySchema);

  app.route({
    method: 'POST',
    url: '/v1/jobs',
    config: {
      access: 'key',
      limited: 'job',
      errors: [
        'payload_too_large',
        'unsupported_media_type',
        ...IDEMPOTENCY_ERRORS,
        'concurrency_limited',
        'quota_exceeded',
        'overloaded',
        'shutting_down',
      ],
    },
    schema: {
      operationId: 'createJob',
      summary: 'Run a Python program later',
      description:
        'Answers 202 with the queued Run once it is stored for good: it survives a crash of the service and loss of power. `Location` is where to fetch it. A job runs when it is its turn, and again if the service loses it.',
      headers: idempotencyHeaders,
      body: executeBodySchema(memoryMbMax),
      response: { 202: runReference },
    },
    handler: async (request, reply) => {
      const key = callersKey(request);
      const { jsonBody } = request;
      if (jsonBody === null) throw new Error('A validated request has a body.');
      return answerOnce(request, reply, idempotency, async (_work, reservation) => {
        // Here, since what was answered before is answered again, whatever the key may ask for by now.
        const range = limitRange(key.limits, memoryMbMax);
        const program = toExecutionRequest(request.body, jsonBody.members, range);
        if (closing()) throw new ServiceError('shutting_down', SHUTTING_DOWN);
        const run = await jobs.submit(key, program, async (transaction, queued) => {
          await reservation?.recordWithin(transaction, accepted(queued));
        });
        request.logFields.run_id = run.id;
        return accepted(run);
      });
    },
  });

  app.route({
    method: 'GET',
    url: '/v1/jobs',
    config: { access: 'key' },
    schema: {
      operationId: 'listJobs',
      summary: "The key's own jobs, newest first",
      description: 'Without what may be large: fetch a job by its id for that.',
      querystring: Type.Object(
        {
          status: Type.Optional(
            Type.Unsafe<RunStatus>({
              type: 'string',
              enum: [...RUN_STATUSES],
              description: 'Jobs of this status alone.',
            }),
          ),
          ...PAGE_PARAMETERS,
        },
        { additionalProperties: false },
      ),
      response: { 200: jobListSchema },
    },
    handler: async (request, reply) => {
      const { status, cursor, limit = PAGE_LIMIT_DEFAULT } = request.query;
      const beforeId = readCursor(cursor, 'run_');
      const found = await jobs.list(callersKey(request), { status, beforeId, limit: limit + 1 });
      const { items, nextCursor } = page(found, limit);
      const data = items.map(summaryJson).join(',');
      return asWritten(reply, `{"data":[${data}],"next_cursor":${JSON.stringify(nextCursor)}}`);
    },
  });

  app.route({
    method: 'GET',
    url: '/v1/jobs/:id',
    config: { access: 'key', errors: ['not_found'] },
    schema: {
      operationId: 'getJob',
      summary: 'The Run of a job',
      description:
        'With `wait`, answers as soon as the job ends, or after so many seconds with what it is then. Results are kept for a time: after that, 404.',
      params: jobParameters,
      querystring: Type.Object(
        {
          wait: Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: WAIT_SECONDS_MAX,
              default: 0,
              description: 'Seconds to wait for the end of the job.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      response: { 200: runReference },
    },
    handler: async (request, reply) => {
      const wait = { waitMs: 1000 * (request.query.wait ?? 0), signal: request.hangUp };
      return sendRun(reply, jobs, await jobs.find(callersKey(request), request.params.id, wait));
    },
  });

  app.route({
    method: 'DELETE',
    url: '/v1/jobs/:id',
    config: { access: 'key', errors: ['not_found'] },
    schema: {
      operationId: 'cancelJob',
      summary: 'Cancel a job',
      description:
        'Answers the Run once its process is gone. Whichever ending came first stands: a job that has ended is answered as it is.',
      params: jobParameters,
      response: { 200: runReference },
    },
    handler: async (request, reply) =>
      sendRun(reply, jobs, await jobs.cancel(callersKey(request), request.params.id, request.hangUp)),
  });
}

function accepted(run: Run) {
  return { status: 202, location: `/v1/jobs/${run.id}`, body: Buffer.from(runJson(run)) } as const;
}

/** What is stored as JSON is not read and written anew. */
function asWritten(reply: FastifyReply, json: string | Buffer): FastifyReply {
  return reply.type(JSON_TYPE).send(json);
}

/** A large result goes out in parts, as the caller takes them. */
async function sendRun(reply: FastifyReply, jobs: Jobs, job: JobRecord): Promise<FastifyReply> {
  const { logFields } = reply.request;
  Object.assign(logFields, { run_id: job.id, run_status: job.status });
  if (job.finishedAtMs === null) return asWritten(reply, runJson(unendedRun(job)));
  const parts = jobs.result(job);
  // Before the head is sent, so that a failure can still be answered.
  const first = await parts.next();
  const start = first.done ? Buffer.alloc(0) : first.value;
  if (start.length === job.resultBytes) return asWritten(reply, start);
  reply.type(JSON_TYPE).header('Content-Length', job.resultBytes);
  return reply.send(inParts(start, parts));
}

const SHUTTING_DOWN = 'The service is shutting down. Nothing was accepted: send the request again.';
