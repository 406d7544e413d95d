import type { Clock } from '../../src/shared/clock.ts';

/** A clock that stands still until it is moved. */
export class TestClock implements Clock {
  #nowMs: number;
  #monotonicMs = 1000.5;

  /** @param nowMs The wall clock; by default the real time of this moment. */
  constructor(nowMs = Date.now()) {
    this.#nowMs = nowMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
    this.#monotonicMs += ms;
  }

  /** Sets the wall clock, as an operator does; durations do not notice. */
  setWallClock(nowMs: number): void {
    this.#nowMs = nowMs;
  }
}
