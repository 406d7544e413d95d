/** The tables as the queries see them. Times are milliseconds since 1970, UTC; JSON is text. */

export interface Database {
  keys: KeysTable;
  key_secrets: KeySecretsTable;
  rate_buckets: RateBucketsTable;
  usage_runs: UsageRunsTable;
  usage_hours: UsageHoursTable;
  idempotency_answers: IdempotencyAnswersTable;
  idempotency_parts: IdempotencyPartsTable;
  jobs: JobsTable;
  job_pieces: JobPiecesTable;
  job_totals: JobTotalsTable;
  jobs_kept: JobsKeptTable;
}

export interface KeysTable {
  id: string;
  name: string;
  team: string | null;
  role: string;
  /** JSON of `KeyLimits`. */
  limits: string;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  last_used_at: number | null;
}

/** A table of its own, because a key that is being rotated has two secrets for a while. */
export interface KeySecretsTable {
  /** SHA-256 of the secret, in hexadecimal. */
  hash: string;
  key_id: string;
  created_at: number;
  /** From this moment on the secret is refused, whatever its key says. */
  expires_at: number | null;
}

/** What is left of a key's requests per minute, so that a restart does not fill its bucket. */
export interface RateBucketsTable {
  key_id: string;
  /** In 60,000ths of a request; may be below 0. At `at` the key had this much left, or more. */
  level: number;
  at: number;
}

/** What a run or many are charged with. All are integers, so that sums are exact in any order. */
export interface ChargeColumns {
  queue_ms: number;
  wall_ms: number;
  cpu_ms: number;
  /** `memory_mb` in force × `wall_ms`. */
  memory_mb_ms: number;
  bytes_in: number;
  bytes_out: number;
  images: number;
}

/** One ended run. Kept for a day. */
export interface UsageRunsTable extends ChargeColumns {
  /** Ids sort by the time they were made, so old ones go by id. */
  id: string;
  key_id: string;
  status: string;
  ended_at: number;
}

/** What the runs and refusals of one key within one hour add up to, by outcome. */
export interface UsageHoursTable extends ChargeColumns {
  /** Start of the hour. */
  hour: number;
  key_id: string;
  /** Status of an ended run, or code of a refusal. */
  outcome: string;
  count: number;
}

/** An answer that is given again to whoever sends the same request. Kept for a day. */
export interface IdempotencyAnswersTable {
  /** The id of the request that was answered: it sorts by time. */
  id: string;
  key_id: string;
  /** Method and path. */
  route: string;
  idempotency_key: string;
  /** SHA-256 of the request's body, in hexadecimal. */
  request_hash: string;
  status: number;
  location: string | null;
  created_at: number;
  body_bytes: number;
  /** The first part of the body. */
  body_start: Uint8Array;
}

/** A further part of an answer's body. */
export interface IdempotencyPartsTable {
  answer_id: string;
  /** From 1 on. */
  position: number;
  bytes: Uint8Array;
}

/** A job, from the moment it is accepted. Its program and its result are in `job_pieces`. */
export interface JobsTable {
  id: string;
  key_id: string;
  /** `queued`, `running`, or how it has ended. */
  status: string;
  timeout_ms: number;
  memory_mb: number;
  created_at: number;
  started_at: number | null;
  finished_at: number | null;
  /** The process that runs it. */
  worker: string | null;
  /** From this moment on another process may take it over. */
  lease_until: number | null;
  /** Grows with every claim; an end under an older one is refused. Of an ended job, the attempt of its result. */
  token: number;
  /** How often the service has lost its run. */
  losses: number;
  /** 0 or 1. */
  cancel_requested: number;
  code_bytes: number;
  stdin_bytes: number;
  inputs_bytes: number;
  result_bytes: number;
  /** JSON that lists show of an ended job. */
  summary: string | null;
}

/** Programs and results of jobs, cut into pieces. */
export interface JobPiecesTable {
  job_id: string;
  /** 0 for the program, otherwise the token of the claim whose result it is. */
  attempt: number;
  part: number;
  content: Uint8Array;
}

/** One row: how many jobs there are, and their bytes together. */
export interface JobTotalsTable {
  jobs: number;
  bytes: number;
}

/** How many ended jobs of a key are kept, and the bytes of their results together. */
export interface JobsKeptTable {
  key_id: string;
  jobs: number;
  bytes: number;
}
