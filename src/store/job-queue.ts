/**
 * The queue of jobs as the rest of the service sees it. SQLite implements it in `job-store.ts`; an engine on PostgreSQL,
 * with workers on many machines, is to implement it without a change to its callers.
 *
 * A worker that claims a job gets a lease, which it renews while it runs the program, and a token. Each claim of a job
 * has a higher token than the one before. Whoever comes back with an old one is refused, so a worker that was slow, or
 * cut off, cannot overwrite what came after it. A lease that is not renewed runs out; then the job is taken over.
 *
 * The life of a job, and there is no other:
 *
 *   queued ──claim──▶ running ──complete──▶ ended
 *     │ ▲                │ │
 *     │ └──── again ─────┘ └── lost LOSSES_MAX times ──▶ ended
 *     └──cancel──▶ ended
 *
 * Every step is one transaction. A crash between any two leaves a job that is queued, or running with a lease that runs
 * out. An ended job never changes; it is deleted when it is too old or in the way of newer ones.
 */

import type { Transaction } from 'kysely';
import type { Database } from './schema.ts';
import type { RunCharge } from './usage-store.ts';

/** How often the service may lose the run of a job. */
export const LOSSES_MAX = 3;

/** Where a job stands, without its program and its result. Times are milliseconds since 1970, UTC. */
export interface JobRecord {
  id: string;
  keyId: string;
  /** `queued`, `running`, or how it has ended. */
  status: string;
  timeoutMs: number;
  memoryMb: number;
  createdAtMs: number;
  startedAtMs: number | null;
  /** Null until it has ended. */
  finishedAtMs: number | null;
  /** What lists show of an ended job, as JSON; null until then. */
  summary: string | null;
  /** Bytes of the result; 0 until there is one. */
  resultBytes: number;
}

/** The program of a job, in UTF-8. */
export interface JobProgram {
  code: Buffer;
  stdin: Buffer;
  inputsJson: Buffer;
}

export interface NewJob {
  id: string;
  keyId: string;
  timeoutMs: number;
  memoryMb: number;
  createdAtMs: number;
  program: JobProgram;
}

/** A claim on a job: the right to end it, as long as nobody has claimed it since. */
export interface Claim {
  id: string;
  token: number;
}

export interface ClaimedJob extends Claim, JobRecord {
  /** How often its run was lost before. */
  losses: number;
}

/** A job's end, ready to be stored. */
export interface JobEnd {
  status: string;
  startedAtMs: number | null;
  finishedAtMs: number;
  summary: string;
  /** The Run as JSON in UTF-8, made anew with each call, in parts of a MiB or so: making it whole would take 0.2 s. */
  result: () => Iterable<Buffer>;
  /** What its key is charged with; null for what is not charged. */
  charge: RunCharge | null;
}

/** Reads jobs. It needs no worker: commands of the terminal read while the service writes. */
export interface JobReader {
  find(id: string, keyId: string | undefined): Promise<JobRecord | null>;
  /** Newest first. */
  list(selection: JobSelection): Promise<JobRecord[]>;
  /** Up to `limit` ids of jobs of a key that have not ended and are not being cancelled. */
  unended(keyId: string, limit: number): Promise<string[]>;
  /** The key whose turn it is; null when no job waits but of keys that are passed over. */
  nextKeyId(turn: Turn): Promise<string | null>;
  /** Whether any job waits. */
  anyWaiting(): Promise<boolean>;
  /** How many jobs of a key wait; no more than `max` are counted. */
  queuedCount(keyId: string, max: number): Promise<number>;
  load(nowMs: number): Promise<JobLoad>;
  /** Which of these jobs have ended, or are gone. */
  endedAmong(ids: string[]): Promise<string[]>;
  /** The result of an ended job, in parts. Throws when it is removed meanwhile. */
  result(job: JobRecord): AsyncGenerator<Buffer>;
}

/** Whose job may be next: the key that follows `afterKeyId`, going round; none of `except`. */
export interface Turn {
  afterKeyId: string;
  except: string[];
}

/** Jobs of all keys that have not ended. */
export interface JobLoad {
  queued: number;
  running: number;
  /** How long the one that was accepted first has been queued; 0 when none is. */
  oldestQueuedMs: number;
}

export interface JobSelection {
  /** Only jobs of this key. */
  keyId?: string | undefined;
  status?: string | undefined;
  /** Only jobs that were made before the one of this id. */
  beforeId?: string | undefined;
  limit: number;
}

/** `key full`: the key has as many waiting as it may have. `full`: nothing can be removed to make room. */
export type Enqueued = 'queued' | 'key full' | 'full';

/** `requested`: it is running, and whoever runs it will stop it. */
export type Cancelled = 'missing' | 'ended' | 'requested';

export interface JobQueue {
  /**
   * Stores a job for good: it survives a loss of power once this has resolved.
   * @param queuedMax Jobs of this key that may wait; null is no bound.
   * @param alongside What is to be stored with it or not at all. It may be called twice.
   */
  enqueue(
    job: NewJob,
    queuedMax: number | null,
    alongside?: (transaction: Transaction<Database>) => Promise<void>,
  ): Promise<Enqueued>;
  /** Claims the oldest job of the key whose turn it is. */
  claim(turn: Turn): Promise<ClaimedJob | null>;
  /** The program of a claimed job. */
  program(claim: Claim): Promise<JobProgram>;
  /** Prolongs every lease of this worker. Answers the jobs that it still holds, and whether each is to be cancelled. */
  renew(): Promise<Map<string, { cancelRequested: boolean }>>;
  /** Ends a job and charges it, in one transaction. False when the claim no longer holds: then nothing has changed. */
  complete(claim: Claim, end: JobEnd): Promise<boolean>;
  /**
   * Gives a claimed job back after its run was lost this often: it is queued again, or ends as lost or cancelled. Does
   * nothing when the claim no longer holds.
   */
  giveBack(claim: Claim, losses: number): Promise<void>;
  /** Gives back the jobs of workers whose lease has run out. Answers how many there were. */
  takeOver(): Promise<number>;
  /** Cancels a job that is queued, or asks for that where it is running. */
  cancel(id: string, keyId: string | undefined): Promise<Cancelled>;
  /** Removes what is kept no longer. */
  purge(): Promise<void>;
  /**
   * Called when there may be a job to claim: one was accepted, or goes back into the queue. SQLite knows of this process;
   * an engine for several machines passes on what the others do.
   */
  onQueued: () => void;
  /**
   * Called for each job that has ended, once that is stored, with what its key was charged by this process. Of what others
   * have ended, SQLite does not know; an engine for several machines does.
   */
  onEnded: (id: string, charge: RunCharge | null) => void;
}
