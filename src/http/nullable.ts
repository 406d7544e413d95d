import { type Static, type TSchema, type TUnsafe, Type } from 'typebox';

/**
 * The schema with null allowed, written as a list of types: a union would make the serialiser try one branch
 * after the other for every value.
 */
export function nullable<Schema extends TSchema & { type: string }>(
  schema: Schema,
): TUnsafe<Static<Schema> | null> {
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [schema.type, 'null'] });
}
