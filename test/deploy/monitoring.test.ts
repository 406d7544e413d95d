/** The dashboard and the alert rules ask only for metrics, labels and values that there are. */

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Metrics } from '../../src/metrics/metrics.ts';
import { charge } from '../support/charge.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

async function exposed(): Promise<Map<string, Map<string, Set<string>>>> {
  const metrics = new Metrics({
    version: '1.2.3',
    concurrency: 2,
    load: () => ({ running: 0, waiting: 0 }),
    sandbox: () => ({ sparesReady: 3, zygoteRestarts: 0, runsLost: 0 }),
    usageWritable: () => true,
    jobs: async () => ({ queued: 0, running: 0, oldestQueuedMs: 0 }),
  });
  metrics.ran(charge(), 'request');
  metrics.stored(1);
  for (const status of [200, 400, 500]) {
    metrics.answered({ method: 'POST', route: '/v1/execute', status, durationMs: 5 });
  }
  const series = new Map<string, Map<string, Set<string>>>();
  for (const line of (await metrics.text()).split('\n')) {
    const [, name, labels = ''] = /^([a-z_\d]+)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    const known = series.get(name) ?? new Map<string, Set<string>>();
    series.set(name, known);
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="([^"]*)"/g)) {
      known.set(label, (known.get(label) ?? new Set()).add(value));
    }
  }
  return series;
}

/** Names that Prometheus itself adds, or that are words of its language. */
const GIVEN = ['job', 'instance', 'up'];
const WORDS =
  'sum min max by rate increase histogram_quantile label_values and or on ignoring without bool le'.split(
    ' ',
  );

interface Expression {
  where: string;
  text: string;
}

function dashboardExpressions(): Expression[] {
  const dashboard = JSON.parse(read('deploy/grafana/dashboard.json')) as {
    panels: { title: string; targets: { expr: string }[] }[];
    templating: { list: { name: string; query: { query: string } | string }[] };
  };
  const panels = dashboard.panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => ({ where: title, text: expr })),
  );
  const variables = dashboard.templating.list
    .filter(({ query }) => typeof query === 'object')
    .map(({ name, query }) => ({ where: `variable ${name}`, text: (query as { query: string }).query }));
  return [...panels, ...variables];
}

function alertExpressions(): Expression[] {
  return [
    ...read('deploy/prometheus/alerts.yml').matchAll(
      /alert: (\w+)\n\s+expr: (\|\n)?([\s\S]*?)\n\s+(?:for|labels):/g,
    ),
  ].map(([, where = '', , text = '']) => ({ where, text }));
}

describe.each([
  ['deploy/grafana/dashboard.json', dashboardExpressions()],
  ['deploy/prometheus/alerts.yml', alertExpressions()],
])('%s', (_file, expressions) => {
  it('has expressions', () => {
    expect(expressions.length).toBeGreaterThan(8);
  });

  it.each(expressions)('asks in "$where" for what there is', async ({ text }) => {
    const series = await exposed();
    const selectors = [...text.matchAll(/([a-z][a-z_\d]*)\s*(\{[^}]*\})?/g)].filter(
      ([, name = '']) => name.includes('_') && !WORDS.includes(name),
    );
    const outsideLabels = text.replace(/\{[^}]*\}|\[[^\]]*\]/g, '').replace(/by \([^)]*\)/g, '');
    const metrics = [...outsideLabels.matchAll(/[a-z][a-z_\d]*/g)].map(([name]) => name);
    for (const name of metrics.filter((each) => !WORDS.includes(each) && !GIVEN.includes(each))) {
      expect([...series.keys()], name).toContain(name);
    }
    for (const [, name = '', labels = ''] of selectors) {
      for (const [, label = '', operator, value = ''] of labels.matchAll(/(\w+)(=~|!=|=)"([^"]*)"/g)) {
        if (GIVEN.includes(label)) continue;
        const values = series.get(name)?.get(label);
        expect([...(values ?? [])], `${name}{${label}}`).not.toEqual([]);
        if (operator !== '=~') expect([...(values ?? [])], `${name}{${label}}`).toContain(value);
      }
    }
    for (const [, labels = ''] of text.matchAll(/by \(([^)]*)\)/g)) {
      for (const label of labels.split(',').map((each) => each.trim())) {
        const known = [...series.values()].some((its) => its.has(label));
        expect([label, known || GIVEN.includes(label)]).toEqual([label, true]);
      }
    }
  });
});

describe('files to deploy with', () => {
  it('are all here', () => {
    expect(
      globSync('deploy/**/*', { cwd: ROOT, withFileTypes: true }).filter((entry) => entry.isFile()),
    ).toHaveLength(6);
  });

  it('put into an image only what exists', () => {
    const named = read('deploy/docker/Dockerfile.dockerignore').match(/^!.*$/gm) ?? [];
    expect(named.length).toBeGreaterThan(5);
    for (const line of named) expect(globSync(line.slice(1), { cwd: ROOT })).toHaveLength(1);
  });

  it('never ask for privilege', () => {
    for (const file of [
      'deploy/docker/Dockerfile',
      'deploy/docker/compose.yaml',
      'deploy/systemd/codecell.service',
    ]) {
      const instructions = read(file)
        .split('\n')
        .filter((line) => !line.trim().startsWith('#'))
        .join('\n');
      expect(instructions).not.toMatch(/privileged|SYS_ADMIN|cap_add/);
    }
  });
});
