/** Each layer left out in turn: the others still keep files, network and processes out of reach. */

import { createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Layer } from '../../src/sandbox/launchers/launcher.ts';
import type { PoolOptions } from '../../src/sandbox/pool.ts';
import { readRuntime } from '../../src/sandbox/runtime.ts';
import { BareLauncher } from '../support/bare-launcher.ts';
import { startPool } from '../support/pool.ts';

const FILES = `
import os, pathlib
def attempt(what, action):
    try: result = action()
    except OSError as e: print('held', what, type(e).__name__)
    else: print('ESCAPED', what, result)
attempt('read passwd', lambda: open('/etc/passwd').read())
attempt('read shadow', lambda: open('/etc/shadow').read())
attempt('list home', lambda: os.listdir('/root') or os.listdir('/home'))
attempt('list proc', lambda: os.listdir('/proc'))
attempt('environment of init', lambda: open('/proc/1/environ', 'rb').read())
for path in ('/tmp/x', 'x', '/dev/shm/x', '/var/tmp/x', '/usr/lib/python3/x', os.path.join(os.path.dirname(os.__file__), 'x.py')):
    attempt('write ' + path, lambda: open(path, 'w'))
attempt('make a folder', lambda: os.mkdir('/tmp/codecell-escaped'))
attempt('remove', lambda: os.unlink(os.__file__))
`;

const network = (port: number) => `
import socket
def attempt(what, action):
    try: result = action()
    except OSError as e: print('held', what, type(e).__name__)
    else: print('ESCAPED', what, result)
attempt('connect to the host', lambda: socket.create_connection(('127.0.0.1', ${port}), 1))
attempt('name lookup', lambda: socket.getaddrinfo('example.test', 80))
def send():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    return s.sendto(b'x', ('169.254.169.254', 53))
attempt('send a datagram out', send)
`;

const PROCESSES = `
import ctypes, os, signal
def attempt(what, action):
    try: result = action()
    except OSError as e: print('held', what, type(e).__name__)
    else: print('ESCAPED', what, result)
parent = os.getppid()
attempt('run a shell', lambda: os.execv('/bin/sh', ['sh', '-c', 'echo ESCAPED']))
def poke():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, parent, 0, 0) < 0: raise OSError(ctypes.get_errno(), 'ptrace')
attempt('trace the zygote', poke)
`;

const KILL_PARENT = `
import os, signal
try: os.kill(os.getppid(), signal.SIGKILL)
except OSError as e: print('held', type(e).__name__)
else: print('sent')
`;

const variants: { without: Layer; options: () => Promise<Partial<PoolOptions>> }[] = [
  { without: 'landlock', options: async () => ({ without: new Set<Layer>(['landlock']) }) },
  { without: 'seccomp', options: async () => ({ without: new Set<Layer>(['seccomp']) }) },
  { without: 'namespaces', options: async () => ({ launcher: new BareLauncher(await readRuntime()) }) },
];

for (const { without, options } of variants) {
  describe(`without ${without}`, () => {
    test('no file outside the runtime is read, none is written', async () => {
      const { run } = await startPool(await options());
      const { stdout, stderr } = await run(FILES);
      expect(stderr).toBe('');
      expect(stdout.match(/^held /gm)).toHaveLength(13);
      expect(stdout).not.toContain('ESCAPED');
    });

    test('nothing reaches the network', async () => {
      let reached = false;
      const listener = createServer(() => {
        reached = true;
      }).listen(0, '127.0.0.1');
      onTestFinished(() => void listener.close());
      await new Promise((resolve) => listener.once('listening', resolve));
      const { run } = await startPool(await options());
      const { stdout, stderr } = await run(network((listener.address() as { port: number }).port));
      expect(stderr).toBe('');
      expect(stdout.match(/^held /gm)).toHaveLength(3);
      expect(reached).toBe(false);
    });

    test('no other program runs, and the zygote is out of reach', async () => {
      const { run, pool } = await startPool(await options());
      const { stdout } = await run(PROCESSES);
      expect(stdout).not.toContain('ESCAPED');
      expect(stdout.match(/^held /gm)).toHaveLength(2);
      const launchers = pool.launcherProcessIds;
      expect((await run(KILL_PARENT)).stdout).toMatch(/^(held|sent)/);
      expect((await run('print(1)')).stdout).toBe('1\n');
      expect(pool.launcherProcessIds).toEqual(launchers);
    });
  });
}

test('a layer that the kernel refuses ends the process before any program runs', async () => {
  const launcher = new BareLauncher({ ...(await readRuntime()), sharedLibraries: ['/nowhere.so'] });
  await expect(startPool({ launcher })).rejects.toThrow(/nowhere\.so/);
});
