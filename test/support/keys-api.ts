/** `/v1/keys` as an admin key calls it. */

import { expect } from 'vitest';
import type { FieldError } from '../../src/shared/errors.ts';
import { type Answer, problemOf, type TestService } from './service.ts';

/** A Key of the contract, with the secret where the answer has one. */
export interface KeyAnswer {
  id: string;
  name: string;
  team: string | null;
  role: string;
  limits: Record<string, number>;
  state: string;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  secret?: string;
}

export class KeysApi {
  readonly #service: TestService;

  constructor(service: TestService) {
    this.#service = service;
  }

  /** Any call below `/v1/keys`, by the service's admin key unless another one is named. */
  call(method: string, path = '', body?: unknown, key = this.#service.adminKey): Promise<Answer> {
    const json = body === undefined ? {} : { 'Content-Type': 'application/json' };
    return this.#service.send(`/v1/keys${path}`, {
      method,
      headers: { 'X-API-Key': key, ...json },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  }

  /** Makes a key that is expected to be made. */
  async create(fields: object = {}): Promise<KeyAnswer & { secret: string }> {
    const answer = await this.call('POST', '', { name: 'test', ...fields });
    return expectKey(answer, 201) as KeyAnswer & { secret: string };
  }

  async get(id: string): Promise<KeyAnswer> {
    return expectKey(await this.call('GET', `/${id}`));
  }

  async change(id: string, changes: object): Promise<KeyAnswer> {
    return expectKey(await this.call('PATCH', `/${id}`, changes));
  }

  async rotate(id: string, overlapSeconds: number): Promise<KeyAnswer & { secret: string }> {
    const answer = await this.call('POST', `/${id}/rotate`, { overlap_seconds: overlapSeconds });
    return expectKey(answer) as KeyAnswer & { secret: string };
  }

  async revoke(id: string): Promise<KeyAnswer> {
    return expectKey(await this.call('DELETE', `/${id}`));
  }

  /** What a key is answered that calls a route which any key may call. */
  async statusOf(secret: string): Promise<number> {
    return (await this.#service.send('/v1/me', { headers: { 'X-API-Key': secret } })).status;
  }
}

export function expectKey(answer: Answer, status = 200): KeyAnswer {
  expect([answer.status, answer.status === status ? '' : answer.text]).toEqual([status, '']);
  return JSON.parse(answer.text) as KeyAnswer;
}

/** The errors of a 400, which must be one. */
export function expectInvalid(answer: Answer): FieldError[] {
  expect(answer.status).toBe(400);
  const problem = problemOf(answer);
  expect(problem.code).toBe('invalid_request');
  return problem.errors ?? [];
}
