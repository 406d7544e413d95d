import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawConnection } from '../support/raw-http.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ settings: { CONCURRENCY: '1', QUEUE_WAIT_MS: '20000' } });
});
afterAll(() => service.stop());

const LONG = { code: 'import time; time.sleep(25)' };

function request(body: unknown): string {
  const text = JSON.stringify(body);
  return [
    'POST /v1/execute HTTP/1.1',
    'Host: x',
    `X-API-Key: ${service.adminKey}`,
    'Content-Type: application/json',
    `Content-Length: ${text.length}`,
    '',
    text,
  ].join('\r\n');
}

const hungUp = () => service.log.filter(({ message }) => message === 'caller hung up').length;

describe('a caller who hangs up', () => {
  it.each([
    ['closing the connection', (connection: RawConnection) => connection.destroy()],
    ['resetting it', (connection: RawConnection) => connection.socket.resetAndDestroy()],
    ['ending its own side', (connection: RawConnection) => connection.socket.end()],
  ])('by %s stops the run and frees its slot', async (_name, leave) => {
    const connection = new RawConnection(service.port);
    connection.write(request(LONG));
    await service.loaded(1, 0);
    const before = hungUp();
    leave(connection);
    await service.loaded(0, 0);
    expect(hungUp()).toBe(before + 1);
    expect((await service.execute({ code: 'print(1)' })).stdout).toBe('1\n');
  });

  it('gives up a place in the queue', async () => {
    const running = new RawConnection(service.port);
    running.write(request(LONG));
    await service.loaded(1, 0);
    const caller = new AbortController();
    const waiting = service.post({ code: 'print("never")' }, { signal: caller.signal });
    await service.loaded(1, 1);
    caller.abort();
    await expect(waiting).rejects.toThrow();
    await service.loaded(1, 0);
    running.destroy();
    await service.loaded(0, 0);
  });

  it('stops every run that was asked for on the connection', async () => {
    const connection = new RawConnection(service.port);
    connection.write(request(LONG) + request(LONG) + request(LONG));
    await service.loaded(1, 2);
    connection.destroy();
    await service.loaded(0, 0);
  });

  it('while sending the body leaves nothing behind', async () => {
    const connection = new RawConnection(service.port);
    const before = hungUp();
    connection.write(request({ code: 'x'.repeat(1_000_000) }).slice(0, -10));
    await until(() => connection.socket.bytesWritten > 900_000);
    // Its head has been read once a request that came after it has been answered.
    await service.send('/healthz');
    connection.destroy();
    await until(() => hungUp() === before + 1);
    expect((await service.execute({ code: 'print(4)' })).stdout).toBe('4\n');
    expect(service.log.filter(({ level }) => level === 'error')).toEqual([]);
  });
});
