/**
 * `codecell serve` without keys, limits, usage and metrics: what they cost is the difference to the service as it is.
 * Nothing of the service knows of this; the methods that a request passes through are replaced by nothing.
 */

import { serve } from '../src/cli/serve.ts';
import { AccessControl } from '../src/http/access.ts';
import type { Key } from '../src/keys/key.ts';
import { RequestLimits } from '../src/limits/request-limits.ts';
import { Metrics } from '../src/metrics/metrics.ts';
import { UsageRecorder } from '../src/usage/recorder.ts';

const KEY: Key = {
  id: 'key_bare',
  name: 'bare',
  team: null,
  role: 'user',
  limits: {},
  createdAt: new Date(),
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
};
const WORK = { signal: new AbortController().signal, end: () => undefined };

AccessControl.prototype.check = async () => KEY;
RequestLimits.prototype.admit = () => WORK;
RequestLimits.prototype.saved = async () => undefined;
RequestLimits.prototype.headers = () => ({});
UsageRecorder.prototype.record = async () => undefined;
Metrics.prototype.answered = () => undefined;

await serve(process.env);
