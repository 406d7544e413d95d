/** The start page. It is whole in itself: no script, no font, no picture, nothing from elsewhere. */

/** Its style; the Content-Security-Policy names its hash, so the two cannot differ. */
export const STYLE = `
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
p code, dd code { font-size: 0.9em; background: var(--panel); border: 1px solid var(--line); border-radius: 5px; padding: 0.1em 0.35em; white-space: nowrap; }
dl { margin: 0; border-top: 1px solid var(--line); }
dl > div { display: flex; gap: 0.25rem 1.5rem; padding: 0.8rem 0; border-bottom: 1px solid var(--line); }
dt { flex: 0 0 11rem; font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.9rem; }
dd { margin: 0; color: var(--soft); }
footer { margin-top: 3rem; color: var(--soft); font-size: 0.85rem; }
@media (max-width: 34rem) { body { font-size: 16px; } pre { font-size: 0.72rem; } dl > div { flex-direction: column; } dt { flex-basis: auto; } }
`;

/**
 * The page.
 * @param options.origin Scheme, host and port that the caller used, checked to hold no markup.
 */
export function startPage(options: { origin: string; version: string }): string {
  const { origin, version } = options;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Codecell</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Codecell</h1>
<p class="lead">Send Python, get back everything that came of it: output, figures, the last value, errors with their
line. Each program runs alone, in a jail that the kernel enforces.</p>

<h2>Run something</h2>
<pre tabindex="0">KEY=<b>ck_…</b>  <i># printed at the first start, unless CODECELL_ADMIN_KEY is set</i>
curl ${origin}/v1/execute \\
  -H <b>"Authorization: Bearer $KEY"</b> \\
  -H <b>"Content-Type: application/json"</b> \\
  -d <b>'{"code": "print(6 * 7)"}'</b></pre>
<p>The answer, shortened:</p>
<pre tabindex="0">{
  "status": <b>"succeeded"</b>,
  "exit_code": 0,
  "stdout": <b>"42\\n"</b>,
  "stderr": <b>""</b>,
  "error": null,
  "usage": { "wall_ms": 3, "cpu_ms": 2, <i>…</i> },
  <i>…</i>
}</pre>

<h2>What there is</h2>
<dl>
<div><dt><a href="/openapi.json">/openapi.json</a></dt><dd>Every call with its schemas, as OpenAPI 3.1.</dd></div>
<div><dt>/v1/execute</dt><dd>Runs a program. What the program did is never an HTTP error: read <code>status</code>.</dd></div>
<div><dt>/v1/jobs</dt><dd>The same later: accepted for good, waited for with <code>?wait=30</code>, listed, cancelled.</dd></div>
<div><dt>/v1/runtime</dt><dd>Python version, packages, limits and rules: what an agent needs before it writes code.</dd></div>
<div><dt>/v1/me, /v1/usage</dt><dd>What is left of a key's limits, and what it has used.</dd></div>
<div><dt>/v1/keys, /metrics</dt><dd>For whoever runs the service: keys, and figures for Prometheus.</dd></div>
<div><dt><a href="/healthz">/healthz</a>, <a href="/readyz">/readyz</a></dt><dd>For load balancers and probes.</dd></div>
</dl>
<footer>Codecell ${version}. Lost the admin key? <code>codecell keys create --admin</code> makes another.</footer>
</main>
</body>
</html>
`;
}
