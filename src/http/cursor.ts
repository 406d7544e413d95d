/** Lists are read page by page: a cursor names the last item of a page, in a form that says nothing to callers. */

import { Type } from 'typebox';
import { invalidRequest } from '../shared/errors.ts';

/** The query parameters of every list. */
export const PAGE_PARAMETERS = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Items of a page.' }),
  ),
  cursor: Type.Optional(
    Type.String({
      maxLength: 200,
      description: '`next_cursor` of the page before; none for the first page.',
    }),
  ),
};

export const PAGE_LIMIT_DEFAULT = 20;

/** `next_cursor` of a page. */
export const nextCursorSchema = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: 'Where the next page begins; null at the end.',
});

/** The id that a cursor names. @throws ServiceError `invalid_request` for what is no cursor of this list. */
export function readCursor(cursor: string | undefined, prefix: string): string | undefined {
  if (cursor === undefined) return undefined;
  const id = Buffer.from(cursor, 'base64url').toString('latin1');
  if (/^[a-z]+_[0-9A-Za-z-]{1,60}$/.test(id) && id.startsWith(prefix) && writeCursor(id) === cursor)
    return id;
  throw invalidRequest([
    { path: '/cursor', message: 'must be next_cursor of an earlier page, as it was given' },
  ]);
}

/**
 * A page of a list.
 * @param found One item more than `limit` where there are so many: it says that another page follows.
 */
export function page<Item extends { id: string }>(
  found: Item[],
  limit: number,
): { items: Item[]; nextCursor: string | null } {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, nextCursor: found.length > limit && last !== undefined ? writeCursor(last.id) : null };
}

function writeCursor(id: string): string {
  return Buffer.from(id, 'latin1').toString('base64url');
}
