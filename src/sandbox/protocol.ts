/**
 * The bytes between the service, the zygote and the run processes; `sandbox/zygote.py` and `sandbox/run.py` are
 * the other ends. Control records are of fixed size. Frames come from a process that runs the caller's code:
 * whatever they hold is checked, and dropped when it makes no sense.
 */

export const TOKEN_BYTES = 16;
/** Token, then one byte that says which connection this is. */
export const HELLO_BYTES = TOKEN_BYTES + 1;
export const CONNECTION_KINDS = ['stdin', 'stdout', 'stderr', 'frames'] as const;
export type ConnectionKind = (typeof CONNECTION_KINDS)[number];

const COMMAND_BYTES = 32;
const OPERATIONS = { fork: 1, arm: 2, kill: 3, ping: 4 } as const;

/** A command to the zygote. `core` chooses among the cores it may use; `timeoutMs` counts from receipt. */
export type Command =
  | { operation: 'fork'; sequence: number; core: number; token: Buffer }
  | { operation: 'arm'; sequence: number; timeoutMs: number }
  | { operation: 'kill'; sequence: number }
  | { operation: 'ping' };

/** Encodes a command as one record. */
export function encodeCommand(command: Command): Buffer {
  const record = Buffer.alloc(COMMAND_BYTES);
  record.writeUInt8(OPERATIONS[command.operation], 0);
  if (command.operation === 'ping') return record;
  record.writeUInt32LE(command.sequence, 4);
  if (command.operation === 'arm') record.writeBigUInt64LE(BigInt(command.timeoutMs), 8);
  if (command.operation === 'fork') {
    record.writeUInt8(command.core & 0xff, 1);
    command.token.copy(record, 16);
  }
  return record;
}

const REPORT_BYTES = 32;
const DEADLINE_PASSED = 1;

/** What the zygote reports. Times in microseconds, memory in KB, `waitStatus` as wait4 gives it. */
export type Report =
  | { operation: 'warm' | 'pong' }
  | { operation: 'forkFailed'; sequence: number; errno: number }
  | {
      operation: 'exited';
      sequence: number;
      waitStatus: number;
      deadlinePassed: boolean;
      peakMemoryKb: number;
      cpuMicroseconds: number;
    };

/** Splits the control channel's bytes into reports. */
export class ReportReader {
  #pending: Buffer = Buffer.alloc(0);

  /** Takes more bytes and yields the reports that are complete. */
  *read(chunk: Buffer): Generator<Report> {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (this.#pending.length >= REPORT_BYTES) {
      const record = this.#pending.subarray(0, REPORT_BYTES);
      this.#pending = this.#pending.subarray(REPORT_BYTES);
      yield decodeReport(record);
    }
  }
}

function decodeReport(record: Buffer): Report {
  const sequence = record.readUInt32LE(4);
  const status = record.readInt32LE(8);
  switch (record.readUInt8(0)) {
    case 1:
      return { operation: 'warm' };
    case 2:
      return {
        operation: 'exited',
        sequence,
        waitStatus: status,
        deadlinePassed: (record.readUInt8(1) & DEADLINE_PASSED) !== 0,
        peakMemoryKb: record.readUInt32LE(12),
        cpuMicroseconds: Number(record.readBigUInt64LE(16) + record.readBigUInt64LE(24)),
      };
    case 3:
      return { operation: 'forkFailed', sequence, errno: status };
    case 4:
      return { operation: 'pong' };
    default:
      throw new Error(`the zygote sent a record of unknown kind ${record.readUInt8(0)}`);
  }
}

/** The header that precedes code, inputs and stdin on a run's stdin connection. */
export function encodeRequestHeader(request: {
  codeBytes: number;
  inputsBytes: number;
  timeoutMs: number;
  memoryMb: number;
}): Buffer {
  const header = Buffer.alloc(16);
  header.writeUInt32LE(request.codeBytes, 0);
  header.writeUInt32LE(request.inputsBytes, 4);
  header.writeUInt32LE(request.timeoutMs, 8);
  header.writeUInt32LE(request.memoryMb, 12);
  return header;
}

/** How a process ended, from the status that wait4 gives. */
export function decodeWaitStatus(status: number): { code: number } | { signalNumber: number } {
  const signalNumber = status & 0x7f;
  return signalNumber === 0 ? { code: (status >> 8) & 0xff } : { signalNumber };
}
