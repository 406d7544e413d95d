import { htmlPage } from '../html-page.ts';

/**
 * The start page.
 * @param options.origin Scheme, host and port that the caller used, checked to hold no markup.
 */
export function startPage(options: { origin: string; version: string }): string {
  const { origin, version } = options;
  return htmlPage(
    'Codecell',
    `<h1>Codecell</h1>
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
<div><dt><a href="/docs">/docs</a>, <a href="/openapi.json">/openapi.json</a></dt><dd>Every call with its schemas, for people and as OpenAPI 3.1.</dd></div>
<div><dt>/v1/execute</dt><dd>Runs a program. What the program did is never an HTTP error: read <code>status</code>.</dd></div>
<div><dt>/v1/jobs</dt><dd>The same later: accepted for good, waited for with <code>?wait=30</code>, listed, cancelled.</dd></div>
<div><dt>/v1/runtime</dt><dd>Python version, packages, limits and rules: what an agent needs before it writes code.</dd></div>
<div><dt>/v1/me, /v1/usage</dt><dd>What is left of a key's limits, and what it has used.</dd></div>
<div><dt>/v1/keys, /metrics</dt><dd>For whoever runs the service: keys, and figures for Prometheus.</dd></div>
<div><dt><a href="/healthz">/healthz</a>, <a href="/readyz">/readyz</a></dt><dd>For load balancers and probes.</dd></div>
</dl>
<footer>Codecell ${version}. Lost the admin key? <code>codecell keys create --admin</code> makes another.</footer>`,
  );
}
