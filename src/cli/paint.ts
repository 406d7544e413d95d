import { styleText } from 'node:util';

/** Text in a style, on a terminal alone; NO_COLOR and the like are honoured. */
export function paint(style: Parameters<typeof styleText>[0], text: string): string {
  return styleText(style, text, { stream: process.stdout });
}
