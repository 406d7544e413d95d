/** The keys of the service, for admin keys: make, list, show, change, rotate, revoke. */

import { Type } from 'typebox';
import { KEY_STATES, type Key, type KeyState } from '../../keys/key.ts';
import {
  type IssuedKey,
  type KeyAdministration,
  OVERLAP_SECONDS_MAX,
} from '../../keys/key-administration.ts';
import { NAME_LENGTH_MAX } from '../../keys/key-fields.ts';
import { keyResource } from '../../keys/key-resource.ts';
import type { LastUse } from '../../keys/last-use.ts';
import type { Clock } from '../../shared/clock.ts';
import type { App } from '../app.ts';
import { nextCursorSchema, PAGE_LIMIT_DEFAULT, PAGE_PARAMETERS, page, readCursor } from '../cursor.ts';
import {
  changeKeyBody,
  createKeyBody,
  issuedKeyReference,
  issuedKeySchema,
  keyReference,
  keySchema,
} from '../key-schema.ts';

export interface KeyRoutesOptions {
  administration: KeyAdministration;
  lastUse: LastUse;
  clock: Clock;
}

const keyParameters = Type.Object({ id: Type.String({ description: 'Id of a key, not its secret.' }) });

const BODY_ERRORS = ['payload_too_large', 'unsupported_media_type', 'overloaded'] as const;

/** `/v1/keys` and what is below it. */
export function keyRoutes(app: App, { administration, lastUse, clock }: KeyRoutesOptions): void {
  const shown = (key: Key) => keyResource(lastUse.applied(key), clock.now());
  const issued = ({ key, secret }: IssuedKey) => ({ ...shown(key), secret });
  app.addSchema(keySchema);
  app.addSchema(issuedKeySchema);

  app.route({
    method: 'POST',
    url: '/v1/keys',
    config: { access: 'admin', errors: [...BODY_ERRORS] },
    schema: {
      operationId: 'createKey',
      summary: 'Make a key',
      description: 'The answer has the secret, once: only a hash of it is stored.',
      body: createKeyBody,
      response: { 201: issuedKeyReference },
    },
    handler: async (request, reply) => {
      const made = await administration.create(request.body);
      return reply.code(201).header('Location', `/v1/keys/${made.key.id}`).send(issued(made));
    },
  });

  app.route({
    method: 'GET',
    url: '/v1/keys',
    config: { access: 'admin' },
    schema: {
      operationId: 'listKeys',
      summary: 'List keys, newest first',
      querystring: Type.Object(
        {
          team: Type.Optional(
            Type.String({ maxLength: NAME_LENGTH_MAX, description: 'Keys of this team alone.' }),
          ),
          state: Type.Optional(
            Type.Unsafe<KeyState>({
              type: 'string',
              enum: [...KEY_STATES],
              description: 'Keys in this state alone.',
            }),
          ),
          ...PAGE_PARAMETERS,
        },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object(
          { data: Type.Array(keyReference), next_cursor: nextCursorSchema },
          { description: 'A page of keys.' },
        ),
      },
    },
    handler: async (request) => {
      const { team, state, cursor, limit = PAGE_LIMIT_DEFAULT } = request.query;
      const beforeId = readCursor(cursor, 'key_');
      const found = await administration.list({ team, state, beforeId, limit: limit + 1 });
      const { items, nextCursor } = page(found, limit);
      return { data: items.map(shown), next_cursor: nextCursor };
    },
  });

  app.route({
    method: 'GET',
    url: '/v1/keys/:id',
    config: { access: 'admin', errors: ['not_found'] },
    schema: {
      operationId: 'getKey',
      summary: 'Show a key',
      params: keyParameters,
      response: { 200: keyReference },
    },
    handler: async (request) => shown(await administration.find(request.params.id)),
  });

  app.route({
    method: 'PATCH',
    url: '/v1/keys/:id',
    config: { access: 'admin', errors: ['not_found', ...BODY_ERRORS] },
    schema: {
      operationId: 'changeKey',
      summary: 'Change a key',
      description:
        'Fields and limits that are absent stay as they are. It takes effect with the next request of the key.',
      params: keyParameters,
      body: changeKeyBody,
      response: { 200: keyReference },
    },
    handler: async (request) => shown(await administration.change(request.params.id, request.body)),
  });

  app.route({
    method: 'DELETE',
    url: '/v1/keys/:id',
    config: { access: 'admin', errors: ['not_found'] },
    schema: {
      operationId: 'revokeKey',
      summary: 'Revoke a key for good',
      description:
        'The key stays in the list, as revoked. Its running programs are stopped, and what waits for it is refused.',
      params: keyParameters,
      response: { 200: keyReference },
    },
    handler: async (request) => shown(await administration.revoke(request.params.id)),
  });

  app.route({
    method: 'POST',
    url: '/v1/keys/:id/rotate',
    config: { access: 'admin', errors: ['not_found', ...BODY_ERRORS] },
    schema: {
      operationId: 'rotateKey',
      summary: 'Give a key a new secret',
      description:
        'The answer has the new secret, once. The one before goes on to work for `overlap_seconds`; any older one ends at once.',
      params: keyParameters,
      body: Type.Object(
        { overlap_seconds: Type.Integer({ minimum: 0, maximum: OVERLAP_SECONDS_MAX }) },
        { additionalProperties: false, examples: [{ overlap_seconds: 86_400 }] },
      ),
      response: { 200: issuedKeyReference },
    },
    handler: async (request) =>
      issued(await administration.rotate(request.params.id, request.body.overlap_seconds)),
  });
}
