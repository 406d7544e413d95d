/** What the pages of the service have in common. Each is whole in itself: no script, no font, nothing from elsewhere. */

import { createHash } from 'node:crypto';

/** What the pages look like: one sheet for all. */
const STYLE = `
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --ink: #1d1d1b; --soft: #64625c; --line: #e2dfd6; --panel: #ffffff; --accent: #1f6f54;
  --code: #15211c; --code-ink: #e4efe9; --code-soft: #86a396; --code-text: #f2c879;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #121513; --ink: #e9ebe8; --soft: #9ba39e; --line: #2a302d; --panel: #191d1b; --accent: #6cc7a3;
    --code: #0b0e0c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 17px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 46rem; margin: 0 auto; padding: clamp(2rem, 8vh, 6rem) 1.25rem 4rem; }
h1 { font-size: clamp(2.2rem, 7vw, 3.2rem); line-height: 1.1; letter-spacing: -0.03em; margin: 0 0 0.75rem; }
h2 { font-size: 1.05rem; margin: 2.5rem 0 0.75rem; }
.lead { font-size: 1.2rem; color: var(--soft); margin: 0 0 2rem; max-width: 36rem; }
p { margin: 0 0 1rem; }
a { color: var(--accent); text-underline-offset: 0.2em; }
a:focus-visible, pre:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
pre {
  background: var(--code); color: var(--code-ink); border: 1px solid var(--line); border-radius: 12px;
  padding: 1.1rem 1.25rem; margin: 0 0 1rem; font-size: 0.85rem; line-height: 1.7;
  white-space: pre-wrap; overflow-wrap: anywhere;
}
pre b { font-weight: 400; color: var(--code-text); }
pre i { font-style: normal; color: var(--code-soft); }
p code, dd code, td code { font-size: 0.9em; background: var(--panel); border: 1px solid var(--line); border-radius: 5px; padding: 0.1em 0.35em; white-space: nowrap; }
dl { margin: 0; border-top: 1px solid var(--line); }
dl > div { display: flex; gap: 0.25rem 1.5rem; padding: 0.8rem 0; border-bottom: 1px solid var(--line); }
dt { flex: 0 0 11rem; font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.9rem; }
dd { margin: 0; color: var(--soft); }
footer { margin-top: 3rem; color: var(--soft); font-size: 0.85rem; }
table { border-collapse: collapse; width: 100%; margin: 0 0 1rem; font-size: 0.9rem; }
td { border-top: 1px solid var(--line); padding: 0.45rem 0.75rem 0.45rem 0; vertical-align: top; color: var(--soft); }
td:first-child { color: var(--ink); overflow-wrap: anywhere; width: 34%; }
td:nth-child(2) { width: 20%; }
td:first-child code { white-space: normal; }
h3 { font-size: 0.9rem; margin: 1.5rem 0 0.5rem; color: var(--soft); font-weight: 600; }
.call { border-top: 1px solid var(--line); padding-top: 0.5rem; margin-top: 2.5rem; }
.call > h2 { margin: 1rem 0 0.25rem; font-size: 1.15rem; overflow-wrap: anywhere; }
.call > h2 code { font-size: 1em; }
.method { color: var(--accent); }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { padding: 0.15rem 0; overflow-wrap: anywhere; }
@media (max-width: 34rem) {
  tr { display: block; border-top: 1px solid var(--line); padding: 0.5rem 0; }
  td, td:first-child, td:nth-child(2) { display: block; border: 0; padding: 0.1rem 0; width: auto; }
  td:empty { display: none; }
  body { font-size: 16px; }
  pre { font-size: 0.72rem; }
  dl > div { flex-direction: column; }
  dt { flex-basis: auto; }
}
`;

/** Header fields of a page. Nothing but its own style is loaded or run; the policy names that by its hash. */
export const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};

/** A page of this content, which is HTML. */
export function htmlPage(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${content}
</main>
</body>
</html>
`;
}
