/**
 * Idempotency-Key for the routes that do work: its header, and the way of a request that may have been sent before.
 *
 * | the first request                       | this one is answered                        |
 * | --------------------------------------- | ------------------------------------------- |
 * | is not known, or older than a day       | after its own work                          |
 * | had another body, running or answered   | 422 `idempotency_mismatch`                  |
 * | is being worked on                      | 409 `idempotency_conflict`, `Retry-After: 1` |
 * | was answered 200 or 202                 | the same bytes, with `Idempotent-Replay`     |
 * | ended otherwise: 4xx, 5xx, hang-up      | after its own work                          |
 *
 * Work comes after all this, so a replay waits for no slot and no queue refuses it.
 */

import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import {
  conflict,
  type FirstAnswer,
  type Idempotency,
  type Replay,
  type Reservation,
} from '../idempotency/idempotency.ts';
import type { Work } from '../limits/key-work.ts';
import type { ErrorCode } from '../shared/errors.ts';
import type { AnswerName } from '../store/idempotency-store.ts';
import { inParts } from './in-parts.ts';

/** Schema of the header; others are not looked at. */
export const idempotencyHeaders = Type.Object({
  'Idempotency-Key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[!-~]*$',
      description:
        'Names this request, for 24 h, among all requests of this key to this address: the same body sent again is given the first answer, and runs nothing. A new one for each request, such as a UUID. Visible ASCII characters, no spaces.',
    }),
  ),
});

/** What answers of such a route have. */
export const replayHeaders = {
  'Idempotent-Replay': Type.Optional(
    Type.Literal('true', {
      description: 'The first answer to this Idempotency-Key, given again. Absent from the first one.',
    }),
  ),
};

/** What a route with the header may answer besides its own errors. */
export const IDEMPOTENCY_ERRORS: ErrorCode[] = ['idempotency_conflict', 'idempotency_mismatch'];

/**
 * Answers a request: again, where it was answered before, else with what `task` makes of it. The task records its
 * answer with the reservation, which is null for a request without an Idempotency-Key.
 * @throws ServiceError `idempotency_conflict` or `idempotency_mismatch`, and what the task throws.
 */
export async function answerOnce(
  request: FastifyRequest,
  reply: FastifyReply,
  idempotency: Idempotency,
  task: (work: Work, reservation: Reservation | null) => Promise<FirstAnswer>,
): Promise<FastifyReply> {
  const { work, bodyHash, id: requestId } = request;
  const name = answerName(request);
  if (name === null || bodyHash === null) {
    if (work === null) throw new Error('A request that was let in has work.');
    return sendAnswer(reply, await task(work, null));
  }
  const begun = await idempotency.begin({ ...name, requestHash: bodyHash, requestId });
  if (begun.kind === 'replay') return sendReplay(reply, begun);
  try {
    // It was let in as one that is known, and the first has been given up since: its limits have to be looked at anew.
    if (work === null) throw conflict();
    return sendAnswer(reply, await task(work, begun));
  } finally {
    begun.release();
  }
}

/** Whether a request is one whose first is known, so that it will run nothing. Its body has not been read. */
export async function isSentAgain(request: FastifyRequest, idempotency: Idempotency): Promise<boolean> {
  const name = answerName(request);
  return name !== null && (await idempotency.knows(name));
}

/** What the answer to a request is recorded under; null for one that has no Idempotency-Key, or none that is valid. */
function answerName({ key, method, headers, routeOptions }: FastifyRequest): AnswerName | null {
  const idempotencyKey = headers['idempotency-key'];
  if (key === null || typeof idempotencyKey !== 'string' || idempotencyKey.length > 255) return null;
  return { keyId: key.id, route: `${method} ${routeOptions.url}`, idempotencyKey };
}

function sendAnswer(reply: FastifyReply, { status, location, body }: FirstAnswer): FastifyReply {
  return headed(reply, status, location).send(body);
}

/** A large answer goes out in parts, as the caller takes them: it may be of tens of MB. */
async function sendReplay(reply: FastifyReply, replay: Replay): Promise<FastifyReply> {
  reply.request.logFields.idempotent_replay = true;
  // Before the head is sent, so that a failure can still be answered.
  const start = await replay.part(0);
  headed(reply, replay.status, replay.location).header('Idempotent-Replay', 'true');
  if (replay.parts === 1) return reply.send(Buffer.from(start));
  reply.header('Content-Length', replay.bodyBytes);
  return reply.send(inParts(start, partsAfterFirst(replay)));
}

async function* partsAfterFirst({ part, parts }: Replay): AsyncGenerator<Uint8Array> {
  for (let position = 1; position < parts; position++) yield await part(position);
}

function headed(reply: FastifyReply, status: number, location: string | null): FastifyReply {
  if (location !== null) reply.header('Location', location);
  return reply.code(status).type('application/json; charset=utf-8');
}
