/** Keys as text for terminals. */

import type { KeyResource } from '../keys/key-resource.ts';
import { LIMIT_NAMES } from '../keys/limit-bounds.ts';
import { counted } from '../shared/counted.ts';
import { fitted } from './columns.ts';
import { paint } from './paint.ts';

const COLUMNS: { heading: string; width: number; text: (key: KeyResource) => string }[] = [
  { heading: 'id', width: 40, text: ({ id }) => id },
  { heading: 'name', width: 20, text: ({ name }) => name },
  { heading: 'team', width: 12, text: ({ team }) => team ?? '' },
  { heading: 'role', width: 5, text: ({ role }) => role },
  { heading: 'state', width: 7, text: ({ state }) => state },
  { heading: 'created', width: 10, text: ({ created_at }) => created_at.slice(0, 10) },
  { heading: 'last used', width: 16, text: ({ last_used_at }) => minute(last_used_at) },
];

const STATE_COLUMN = COLUMNS.findIndex(({ heading }) => heading === 'state');

/** One line for each key. */
export function keyTable(keys: KeyResource[]): string {
  if (keys.length === 0) return 'There are no such keys.\n';
  const heading = COLUMNS.map(({ heading, width }) => fitted(heading, width)).join('  ');
  const lines = keys.map((key) => {
    const cells = COLUMNS.map(({ text, width }) => fitted(text(key), width));
    cells[STATE_COLUMN] = paintState(key, cells[STATE_COLUMN] ?? '');
    return cells.join('  ').trimEnd();
  });
  return `${[paint('bold', heading.trimEnd()), ...lines, '', counted(keys.length, 'key')].join('\n')}\n`;
}

/** Everything about one key. */
export function keyDetails(key: KeyResource): string {
  const limits = LIMIT_NAMES.filter((name) => key.limits[name] !== undefined);
  const rows: [string, string][] = [
    ['id', key.id],
    ['name', key.name],
    ['team', key.team ?? 'none'],
    ['role', key.role],
    ['state', key.state],
    ['created', key.created_at],
    ['expires', key.expires_at ?? 'never'],
    ['last used', key.last_used_at ?? 'never'],
    ...limits.map((name): [string, string] => [name, String(key.limits[name])]),
  ];
  if (limits.length === 0) rows.push(['limits', 'none']);
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows
    .map(([name, value]) => {
      const cell = name === 'state' ? paintState(key, value) : fitted(value, 250).trimEnd();
      return `${paint('bold', fitted(name, width))}  ${cell}\n`;
    })
    .join('');
}

function minute(time: string | null): string {
  return time === null ? 'never' : time.slice(0, 16).replace('T', ' ');
}

function paintState({ state }: KeyResource, text: string): string {
  return paint(({ active: 'green', expired: 'yellow', revoked: 'red' } as const)[state], text);
}
