/** docs/reference/metrics.md has every metric of the service's own, with its kind and labels. */

import { expect, test } from 'vitest';
import { Metrics } from '../../src/metrics/metrics.ts';
import { charge } from '../support/charge.ts';
import { names, readText, tableRows } from './markdown.ts';

async function exposed(): Promise<string> {
  const metrics = new Metrics({
    version: '1.2.3',
    concurrency: 2,
    load: () => ({ running: 0, waiting: 0 }),
    sandbox: () => ({ sparesReady: 3, zygoteRestarts: 0, runsLost: 0 }),
    usageWritable: () => true,
    jobs: async () => ({ queued: 0, running: 0, oldestQueuedMs: 0 }),
  });
  metrics.ran(charge(), 'request');
  metrics.answered({ method: 'GET', route: '/', status: 200, durationMs: 1 });
  return metrics.text();
}

test('metrics.md has every metric with its kind and labels', async () => {
  const text = await exposed();
  const actual = [...text.matchAll(/^# TYPE (codecell_\w+) (\w+)$/gm)].map(([, name = '', kind]) => {
    const samples = [...text.matchAll(new RegExp(`^${name}(?:_count)?\\{(.*)\\} `, 'gm'))];
    const labels = samples.flatMap(([, pairs = '']) =>
      [...pairs.matchAll(/(\w+)="/g)].map(([, label]) => label),
    );
    return [name, kind, [...new Set(labels)].filter((label) => label !== 'le').join()];
  });
  const described = tableRows(readText('docs/reference/metrics.md')).map(([name, kind, labels]) => [
    names(name)[0],
    kind,
    names(labels).join(),
  ]);
  expect(actual.length).toBeGreaterThan(10);
  expect(described.sort()).toEqual(actual.sort());
});

test('the metrics of Node.js that metrics.md names are there', async () => {
  const text = await exposed();
  const named = names(readText('docs/reference/metrics.md')).filter((name) =>
    /^(process|nodejs)_/.test(name),
  );
  expect(named.length).toBeGreaterThan(5);
  for (const name of named) expect(text).toContain(`# TYPE ${name} `);
});
