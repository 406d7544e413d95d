/** HTTP at the level of bytes, for what no client would send. */

import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  status: number;
  /** Names in lower case. */
  headers: Record<string, string>;
  body: string;
}

/** A connection that collects what arrives. */
export class RawConnection {
  readonly socket: Socket;
  #received = '';
  #closed = false;
  #onChange: () => void = () => undefined;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text: string) => {
      this.#received += text;
      this.#onChange();
    });
    // A reset closes the connection too, which is all that callers look at.
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.#closed = true;
      this.#onChange();
    });
  }

  write(text: string | Buffer): void {
    this.socket.write(text);
  }

  /** The next answers that are complete, as soon as there are `count`; fewer if the connection closes. */
  async answers(count: number): Promise<RawAnswer[]> {
    for (;;) {
      const answers = parseAnswers(this.#received);
      if (answers.length >= count || this.#closed) return answers;
      await this.#change();
    }
  }

  /** Resolves when the server has closed the connection. */
  async closed(): Promise<void> {
    while (!this.#closed) await this.#change();
  }

  destroy(): void {
    this.socket.destroy();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#onChange = resolve;
    });
  }
}

/** Sends bytes on a connection of its own and returns the first answer. */
export async function sendRaw(port: number, text: string | Buffer): Promise<RawAnswer> {
  const connection = new RawConnection(port);
  connection.write(text);
  const [answer] = await connection.answers(1);
  connection.destroy();
  if (answer === undefined) throw new Error('The connection was closed without an answer.');
  return answer;
}

function parseAnswers(text: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = text;
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n');
    if (headEnd === -1) return answers;
    const [statusLine = '', ...lines] = rest.slice(0, headEnd).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 2),
      ]),
    );
    const bodyStart = headEnd + 4;
    const status = Number(statusLine.split(' ')[1]);
    const length = status === 100 ? 0 : Number(headers['content-length'] ?? 0);
    if (rest.length < bodyStart + length) return answers;
    if (status !== 100) answers.push({ status, headers, body: rest.slice(bodyStart, bodyStart + length) });
    rest = rest.slice(bodyStart + length);
  }
}
