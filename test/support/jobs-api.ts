/** `/v1/jobs` as a key calls it. */

import { expect } from 'vitest';
import type { JobSummary } from '../../src/runs/jobs/job-end.ts';
import type { Run } from '../../src/runs/run.ts';

export interface JobAnswer {
  status: number;
  headers: Headers;
  text: string;
}

export interface JobPage {
  data: JobSummary[];
  next_cursor: string | null;
}

/** A program that runs until it is stopped, or for 29 s. */
export const ENDLESS = 'import time; time.sleep(29)';

export class JobsApi {
  readonly #url: string;
  readonly #key: string;

  constructor(url: string, key: string) {
    this.#url = url;
    this.#key = key;
  }

  async call(
    method: string,
    path = '',
    {
      body,
      headers = {},
      signal,
    }: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<JobAnswer> {
    const json = body === undefined ? {} : { 'Content-Type': 'application/json' };
    const response = await fetch(`${this.#url}/v1/jobs${path}`, {
      method,
      headers: { 'X-API-Key': this.#key, ...json, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  /** Sends a job that is expected to be accepted. Answers its id. */
  async submit(code: string, more: object = {}): Promise<string> {
    const answer = await this.call('POST', '', { body: { code, ...more } });
    return runOf(answer, 202).id;
  }

  async show(id: string, waitSeconds = 0): Promise<Run> {
    return runOf(await this.call('GET', `/${id}?wait=${waitSeconds}`));
  }

  /** The Run of a job once it has ended. */
  async ended(id: string): Promise<Run> {
    for (;;) {
      const run = await this.show(id, 30);
      if (run.finished_at !== null) return run;
    }
  }

  async running(id: string): Promise<Run> {
    for (;;) {
      const run = await this.show(id);
      if (run.status === 'running') return run;
      expect(run.status).toBe('queued');
    }
  }

  async cancel(id: string): Promise<Run> {
    return runOf(await this.call('DELETE', `/${id}`));
  }

  async list(query = ''): Promise<JobPage> {
    const answer = await this.call('GET', query);
    expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, '']);
    return JSON.parse(answer.text) as JobPage;
  }
}

export function runOf(answer: JobAnswer, status = 200): Run {
  expect([answer.status, answer.status === status ? '' : answer.text]).toEqual([status, '']);
  return JSON.parse(answer.text) as Run;
}
