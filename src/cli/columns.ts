/** Text in columns of a terminal. */

/** Characters that take two columns: East Asian scripts, full-width forms, emoji. */
const WIDE =
  /\p{Emoji_Presentation}|[ᄀ-ᅟ⺀-〾ぁ-㏿㐀-䶿一-鿿ꀀ-꓆가-힣豈-﫿︰-﹏＀-｠￠-￦]|[\u{20000}-\u{3fffd}]/u;

/** What moves the cursor, changes colours, hides or turns text around. */
export const INVISIBLE = /[\p{Control}\p{Format}\p{Surrogate}\p{Line_Separator}\p{Paragraph_Separator}]/gu;

/**
 * A text in exactly `width` columns: filled up with spaces, or cut with an ellipsis. Names are of somebody's choice, so
 * nothing in them reaches the terminal but characters that can be seen.
 */
export function fitted(text: string, width: number): string {
  const characters = [...new Intl.Segmenter().segment(text.replace(INVISIBLE, '?'))].map(
    ({ segment }) => segment,
  );
  const total = characters.reduce((sum, character) => sum + columns(character), 0);
  if (total <= width) return text.replace(INVISIBLE, '?') + ' '.repeat(width - total);
  let cut = '';
  let used = 1;
  for (const character of characters) {
    if (used + columns(character) > width) break;
    cut += character;
    used += columns(character);
  }
  return `${cut}…${' '.repeat(width - used)}`;
}

function columns(character: string): number {
  return WIDE.test(character) ? 2 : 1;
}
