import type { Kysely } from 'kysely';
import { describe, expect, it } from 'vitest';
import {
  type FirstAnswer,
  Idempotency,
  type IdempotentRequest,
  type Replay,
  type Reservation,
} from '../../src/idempotency/idempotency.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { ServiceError } from '../../src/shared/errors.ts';
import { openDatabase } from '../../src/store/database.ts';
import { IdempotencyStore, PART_BYTES } from '../../src/store/idempotency-store.ts';
import type { Database } from '../../src/store/schema.ts';
import { withFolder } from '../support/folder.ts';

interface Parts {
  db: Kysely<Database>;
  store: IdempotencyStore;
  idempotency: Idempotency;
}

/** Calls `body` with a store of its own. */
function withIdempotency(body: (parts: Parts) => Promise<void>): Promise<void> {
  return withFolder(async (folder) => {
    const db = await openDatabase(folder);
    const store = new IdempotencyStore(db);
    const logger = { warn: fail };
    const idempotency = await Idempotency.open({ store, clock: systemClock, logger });
    await body({ db, store, idempotency });
    await idempotency.close();
    await db.destroy();
  });
}

function fail(_fields: object, message: string): never {
  throw new Error(message);
}

let requests = 0;

function request(more: Partial<IdempotentRequest> = {}): IdempotentRequest {
  const requestId = `req_${++requests}`;
  return {
    keyId: 'key_1',
    route: 'POST /v1/jobs',
    idempotencyKey: 'a',
    requestHash: 'one',
    requestId,
    ...more,
  };
}

const accepted: FirstAnswer = {
  status: 202,
  location: '/v1/jobs/run_1',
  body: Buffer.from('{"id":"run_1"}'),
};

async function reserve(idempotency: Idempotency, asked = request()): Promise<Reservation> {
  const begun = await idempotency.begin(asked);
  if (begun.kind !== 'reservation') throw new Error('It was answered before.');
  return begun;
}

async function replay(idempotency: Idempotency, asked = request()): Promise<Replay> {
  const begun = await idempotency.begin(asked);
  if (begun.kind !== 'replay') throw new Error('It was not answered before.');
  return begun;
}

async function bodyOf({ parts, part }: Replay): Promise<Buffer> {
  const bytes: Uint8Array[] = [];
  for (let position = 0; position < parts; position++) bytes.push(await part(position));
  return Buffer.concat(bytes);
}

function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'none',
    (error) => (error instanceof ServiceError ? error.code : String(error)),
  );
}

describe('a reservation', () => {
  it('is for one of any number that arrive at the same time', () =>
    withIdempotency(async ({ idempotency }) => {
      const begun = await Promise.allSettled(Array.from({ length: 50 }, () => idempotency.begin(request())));
      expect(begun.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    }));

  it('is free again once released without a record, for another body too', () =>
    withIdempotency(async ({ idempotency }) => {
      const first = await reserve(idempotency);
      expect(await codeOf(idempotency.begin(request()))).toBe('idempotency_conflict');
      expect(await codeOf(idempotency.begin(request({ requestHash: 'two' })))).toBe('idempotency_mismatch');
      first.release();
      const second = await reserve(idempotency, request({ requestHash: 'two' }));
      first.release();
      expect(await codeOf(idempotency.begin(request()))).toBe('idempotency_mismatch');
      second.release();
    }));

  it('is of one API key and one route', () =>
    withIdempotency(async ({ idempotency }) => {
      const names = [{}, { keyId: 'key_2' }, { route: 'POST /v1/execute' }, { idempotencyKey: 'b' }];
      for (const name of names) await reserve(idempotency, request(name));
    }));

  it('cannot record after its release', () =>
    withIdempotency(async ({ idempotency }) => {
      const reservation = await reserve(idempotency);
      reservation.release();
      await expect(reservation.record(accepted)).rejects.toThrow('released');
    }));

  it('is freed when looking for the answer fails', () =>
    withIdempotency(async ({ idempotency, store }) => {
      const { find } = store;
      store.find = () => Promise.reject(new Error('the disk is gone'));
      expect(await codeOf(idempotency.begin(request()))).toContain('the disk is gone');
      store.find = find;
      await reserve(idempotency);
    }));
});

describe('a record', () => {
  it.each([0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES])('gives %i bytes again', (length) =>
    withIdempotency(async ({ idempotency }) => {
      const body = Buffer.from(Array.from({ length }, (_, index) => index % 251));
      const reservation = await reserve(idempotency);
      await reservation.record({ status: 200, location: null, body });
      reservation.release();
      const again = await replay(idempotency);
      expect([again.status, again.location, again.bodyBytes]).toEqual([200, null, length]);
      expect(body.equals(await bodyOf(again))).toBe(true);
    }),
  );

  it('is there with the transaction that it is written in', () =>
    withIdempotency(async ({ db, idempotency }) => {
      const reservation = await reserve(idempotency);
      await db.transaction().execute((transaction) => reservation.recordWithin(transaction, accepted));
      reservation.release();
      const again = await replay(idempotency);
      expect([again.status, again.location]).toEqual([202, '/v1/jobs/run_1']);
      expect(accepted.body.equals(await bodyOf(again))).toBe(true);
    }));

  it('is gone with a transaction that is undone', () =>
    withIdempotency(async ({ db, idempotency }) => {
      const reservation = await reserve(idempotency);
      const undone = db.transaction().execute(async (transaction) => {
        await reservation.recordWithin(transaction, accepted);
        throw new Error('undone');
      });
      await expect(undone).rejects.toThrow('undone');
      reservation.release();
      await reserve(idempotency);
    }));

  it('is made by one of two processes on one database', () =>
    withIdempotency(async ({ db, idempotency, store }) => {
      const logger = { warn: fail };
      const other = await Idempotency.open({ store, clock: systemClock, logger });
      const [one, two] = [await reserve(idempotency), await reserve(other)];
      const record = (reservation: Reservation) =>
        db.transaction().execute((transaction) => reservation.recordWithin(transaction, accepted));
      await record(one);
      await expect(record(two)).rejects.toThrow('UNIQUE');
      await other.close();
    }));
});
