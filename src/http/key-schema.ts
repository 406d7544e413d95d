/** The `Key` of the contract as JSON Schema, and the fields of it that a caller may set. */

import { type Static, Type } from 'typebox';
import { KEY_STATES, ROLES } from '../keys/key.ts';
import { NAME_LENGTH_MAX } from '../keys/key-fields.ts';
import type { KeyResource } from '../keys/key-resource.ts';
import { LIMIT_BOUNDS, LIMIT_NAMES, type LimitName } from '../keys/limit-bounds.ts';
import { nullable } from './nullable.ts';

const role = Type.Unsafe<KeyResource['role']>({
  type: 'string',
  enum: [...ROLES],
  description: 'An admin key may call everything; a user key runs programs and sees its own.',
});

const time = (description: string) => Type.String({ format: 'date-time', description });

const ABSENT_LIMIT =
  "An absent limit is unlimited, but for max_queued_jobs (1000; of an admin key, any number) and for time and memory, where the service's ceilings hold.";

const limits = Type.Object(
  mapLimits(({ description }) => Type.Optional(Type.Integer({ description }))),
  { description: ABSENT_LIMIT },
);

export const keyFields = {
  id: Type.String({ examples: ['key_0199f3a2-6c1e-7d4b-9a53-2f8e5b1c7d90'] }),
  name: Type.String(),
  team: nullable(Type.String()),
  role,
  limits,
  state: Type.Unsafe<KeyResource['state']>({ type: 'string', enum: [...KEY_STATES] }),
  created_at: time('UTC.'),
  expires_at: nullable(time('From this moment on the key is refused. Null: never.')),
  last_used_at: nullable(time('When a request with this key was last let in.')),
};

export const keySchema = Type.Object(keyFields, {
  $id: 'Key',
  description: 'A key, without its secret.',
});

export const keyReference = Type.Unsafe<KeyResource>({ $ref: 'Key#' });

export const issuedKeySchema = Type.Object(
  {
    ...keyFields,
    secret: Type.String({
      description: 'What callers send. It is shown this once: only a hash of it is stored.',
      examples: ['ck_9pZ1…'],
    }),
  },
  { $id: 'IssuedKey', description: 'A key with a new secret.' },
);

export const issuedKeyReference = Type.Unsafe<Static<typeof issuedKeySchema>>({ $ref: 'IssuedKey#' });

const name = Type.String({ minLength: 1, maxLength: NAME_LENGTH_MAX, description: 'For people.' });
const team = nullable(
  Type.String({ minLength: 1, maxLength: NAME_LENGTH_MAX, description: 'Whom its usage is added up for.' }),
);
const expiresAt = nullable(
  Type.String({ description: 'RFC 3339, in the future.', examples: ['2030-12-31T23:59:59Z'] }),
);

export const createKeyBody = Type.Object(
  {
    name,
    team: Type.Optional(team),
    role: Type.Optional(role),
    limits: Type.Optional(
      Type.Object(
        mapLimits((bounds) => Type.Optional(Type.Integer(bounds))),
        {
          additionalProperties: false,
          description: ABSENT_LIMIT,
        },
      ),
    ),
    expires_at: Type.Optional(expiresAt),
  },
  {
    additionalProperties: false,
    examples: [
      { name: 'grader' },
      {
        name: 'chat',
        team: 'web',
        limits: { requests_per_minute: 120, burst: 20, concurrency: 4, cpu_seconds_per_day: 3600 },
        expires_at: '2099-12-31T23:59:59Z',
      },
    ],
  },
);

export const changeKeyBody = Type.Object(
  {
    name: Type.Optional(name),
    team: Type.Optional(team),
    role: Type.Optional(role),
    limits: Type.Optional(
      Type.Object(
        mapLimits((bounds) => Type.Optional(nullable(Type.Integer(bounds)))),
        {
          additionalProperties: false,
          description: 'Limits that are absent stay; null takes a limit away.',
        },
      ),
    ),
    expires_at: Type.Optional(expiresAt),
  },
  { additionalProperties: false, examples: [{ limits: { concurrency: 8, cpu_seconds_per_day: null } }] },
);

type Bounds = (typeof LIMIT_BOUNDS)[LimitName];

/** An object of schemas, one for each limit. */
function mapLimits<Schema>(
  toSchema: (bounds: { minimum: number; maximum: number; description: string }) => Schema,
) {
  const withBounds = ({ min, max, description }: Bounds) =>
    toSchema({ minimum: min, maximum: max, description });
  return Object.fromEntries(LIMIT_NAMES.map((limit) => [limit, withBounds(LIMIT_BOUNDS[limit])])) as Record<
    LimitName,
    Schema
  >;
}
