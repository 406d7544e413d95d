/**
 * The Unix socket that run processes connect to. Each connection opens with a hello: the one-use token that the
 * service gave when it asked for the process, and which of the four connections this is. A connection with any
 * other beginning is closed; no run can reach the socket once it is confined.
 */

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CONNECTION_KINDS, type ConnectionKind, HELLO_BYTES, TOKEN_BYTES } from './protocol.ts';

export type ConnectionListener = (kind: ConnectionKind, connection: Socket, early: Buffer) => void;

const HELLO_TIMEOUT_MS = 5000;

export class RunChannels {
  readonly #expected = new Map<string, { listener: ConnectionListener; kinds: Set<ConnectionKind> }>();
  readonly #server: Server;
  #folder = '';

  constructor() {
    // A run's stdin ends by a half-close: its answers come on the other connections.
    // A high-water mark of one byte makes `pause` stop the reading itself, on which `readGently` depends.
    const options = { allowHalfOpen: true, highWaterMark: 1 };
    this.#server = createServer(options, (connection) => this.#greet(connection));
  }

  /** Starts to listen. Answers the path of the socket, in a fresh folder. */
  async listen(): Promise<string> {
    this.#folder = await mkdtemp(join(tmpdir(), 'codecell-'));
    const path = join(this.#folder, 'service.sock');
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(path, resolve);
    });
    // Runs of a root service have a uid of their own; the token is what admits.
    await chmod(this.#folder, 0o711);
    await chmod(path, 0o666);
    return path;
  }

  /** Hands the four connections that say `token` to `listener`, until `forget`. */
  expect(token: Buffer, listener: ConnectionListener): void {
    this.#expected.set(token.toString('latin1'), { listener, kinds: new Set(CONNECTION_KINDS) });
  }

  /** The process with this token has ended. */
  forget(token: Buffer): void {
    this.#expected.delete(token.toString('latin1'));
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    if (this.#folder !== '') await rm(this.#folder, { recursive: true, force: true });
  }

  #greet(connection: Socket): void {
    let hello: Buffer = Buffer.alloc(0);
    const patience = setTimeout(() => connection.destroy(), HELLO_TIMEOUT_MS);
    // A process that ends while it writes resets the connection: its exit record says all there is to say.
    connection.on('error', () => connection.destroy());
    connection.on('close', () => clearTimeout(patience));
    const read = (chunk: Buffer): void => {
      hello = hello.length === 0 ? chunk : Buffer.concat([hello, chunk]);
      if (hello.length < HELLO_BYTES) return;
      connection.off('data', read);
      clearTimeout(patience);
      const token = hello.toString('latin1', 0, TOKEN_BYTES);
      const kind = CONNECTION_KINDS[hello[TOKEN_BYTES]!];
      const expected = this.#expected.get(token);
      if (kind === undefined || !expected?.kinds.delete(kind)) {
        connection.destroy();
        return;
      }
      expected.listener(kind, connection, hello.subarray(HELLO_BYTES));
    };
    connection.on('data', read);
  }
}
