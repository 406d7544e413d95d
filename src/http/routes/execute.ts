import type { FirstAnswer, Idempotency, Reservation } from '../../idempotency/idempotency.ts';
import type { RequestLimits } from '../../limits/request-limits.ts';
import { limitRange } from '../../runs/limits.ts';
import { runJsonBytes } from '../../runs/run-json.ts';
import type { SynchronousRuns } from '../../runs/synchronous-runs.ts';
import type { Logger } from '../../shared/logger.ts';
import type { App } from '../app.ts';
import { callersKey } from '../caller.ts';
import { answerOnce, IDEMPOTENCY_ERRORS, idempotencyHeaders } from '../idempotent.ts';
import { runReference } from '../run-schema.ts';
import { executeBodySchema, toExecutionRequest } from './execute-request.ts';

export interface ExecuteRouteOptions {
  runs: SynchronousRuns;
  idempotency: Idempotency;
  limits: Pick<RequestLimits, 'checkQuota'>;
  /** The service's ceiling of memory_mb. */
  memoryMbMax: number;
}

/** `POST /v1/execute`: runs a program and answers the finished Run, whatever became of it. */
export function executeRoute(
  app: App,
  { runs, idempotency, limits, memoryMbMax }: ExecuteRouteOptions,
): void {
  app.route({
    method: 'POST',
    url: '/v1/execute',
    config: {
      access: 'key',
      limited: 'execution',
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
      operationId: 'execute',
      summary: 'Run a Python program',
      description:
        'Answers 200 with the finished Run, also when the program failed, ran out of time or crashed: see `status`. A caller that hangs up stops the run. Answers of 5xx mean that nothing was charged and the request can be sent again.',
      headers: idempotencyHeaders,
      body: executeBodySchema(memoryMbMax),
      response: { 200: runReference },
    },
    handler: async (request, reply) => {
      const key = callersKey(request);
      const { jsonBody, hangUp } = request;
      if (jsonBody === null) throw new Error('A validated request has a body.');
      return answerOnce(request, reply, idempotency, async (work, reservation) => {
        // Here, since what was answered before is answered again, whatever the key may ask for by now.
        const range = limitRange(key.limits, memoryMbMax);
        const execution = toExecutionRequest(request.body, jsonBody.members, range);
        request.log.debug('the program is asked to be run');
        const run = await runs.run(execution, {
          keyId: key.id,
          mayStart: () => limits.checkQuota(key),
          // Text may take two bytes a character in memory.
          bytes: 2 * jsonBody.byteLength,
          signal: AbortSignal.any([hangUp, work.signal]),
        });
        Object.assign(request.logFields, { run_id: run.id, run_status: run.status, ...run.usage });
        const answer = { status: 200, location: null, body: await runJsonBytes(run) } as const;
        if (run.status !== 'cancelled') await record(reservation, answer, request.log);
        return answer;
      });
    },
  });
}

/** The run has been charged, so its caller gets the answer also when it cannot be recorded. */
async function record(reservation: Reservation | null, answer: FirstAnswer, logger: Logger): Promise<void> {
  try {
    await reservation?.record(answer);
  } catch (error) {
    logger.error(
      { err: error },
      'an answer could not be recorded: the request would run again if it were sent again',
    );
  }
}
