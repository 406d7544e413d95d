/**
 * A look at JSON text without parsing it, for what `JSON.parse` cannot tell: the text of a member exactly as it was
 * sent (`1.0` is 1 once parsed, and a big integer is rounded), and how deep it nests. It runs before the parser,
 * because a parser given eight million `[` takes a second to find out.
 *
 * It never throws. On text that is not valid JSON its findings mean nothing, so callers use them only for text that
 * `JSON.parse` accepts. One pass over the text; strings are skipped at the speed of `indexOf`.
 */

export interface JsonScan {
  /**
   * The text of each member of the top-level object, by its name with escapes resolved. Of a name that occurs
   * more than once the last counts, as for `JSON.parse`.
   */
  members: Map<string, string>;
  /** Why the scan ended before the end of the text, if it did. */
  refused: null | { reason: 'too deep'; member: string | null } | { reason: 'too many members' };
}

export interface JsonScanLimits {
  /** Arrays and objects within one another, the outermost included. */
  depthMax: number;
  /** Members of the top-level object, repeated names included. */
  membersMax: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Scans `text`; see above. */
export function scanJson(text: string, limits: JsonScanLimits): JsonScan {
  const members = new Map<string, string>();
  let depth = 0;
  let memberCount = 0;
  let topLevelIsObject = false;
  /** Name of the top-level member that the scan is in; null between members. */
  let name: string | null = null;
  let valueStart = -1;

  const endMember = (end: number) => {
    if (name !== null && valueStart !== -1) members.set(name, text.slice(valueStart, end).trim());
    name = null;
    valueStart = -1;
  };

  for (let index = 0; index < text.length; index++) {
    switch (text.charCodeAt(index)) {
      case QUOTE: {
        const end = stringEnd(text, index);
        if (depth === 1 && topLevelIsObject && valueStart === -1) {
          name = stringValue(text.slice(index, end));
          if (++memberCount > limits.membersMax) return { members, refused: { reason: 'too many members' } };
        }
        index = end - 1;
        break;
      }
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        if (depth === 0) topLevelIsObject = text.charCodeAt(index) === OPEN_OBJECT;
        if (++depth > limits.depthMax) return { members, refused: { reason: 'too deep', member: name } };
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        if (--depth === 0) endMember(index);
        break;
      case COMMA:
        if (depth === 1) endMember(index);
        break;
      case COLON:
        if (depth === 1 && valueStart === -1) valueStart = index + 1;
        break;
    }
  }
  return { members, refused: null };
}

/** Index behind the closing quote of the string that opens at `start`; the end of the text if it never closes. */
function stringEnd(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (quote !== -1 && isEscaped(text, quote)) quote = text.indexOf('"', quote + 1);
  return quote === -1 ? text.length : quote + 1;
}

/** True when an odd number of backslashes precedes. */
function isEscaped(text: string, index: number): boolean {
  let first = index;
  while (text.charCodeAt(first - 1) === BACKSLASH) first--;
  return (index - first) % 2 === 1;
}

function stringValue(literal: string): string | null {
  try {
    return JSON.parse(literal) as string;
  } catch {
    // Not JSON: the parser that runs next says so to the caller.
    return null;
  }
}
