/** Hints: one for each rule of the sandbox, and none where the error is the program's own. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const run = (code: string, more: object = {}) => service.execute({ code, ...more });

const NETWORK = /no network/;
const READ = /No files can be read/;
const WRITE = /No files can be written/;
const PROCESSES = /No other process/;
const PACKAGE = /is not installed/;

describe('a hint is given for', () => {
  test.each([
    ['a socket', 'import socket\nsocket.socket()', NETWORK],
    ['a connection', 'import socket\nsocket.create_connection(("127.0.0.1", 80))', NETWORK],
    ['a name look-up', 'import socket\nsocket.getaddrinfo("example.test", 80)', NETWORK],
    ['urllib', 'import urllib.request\nurllib.request.urlopen("http://example.test")', NETWORK],
    [
      'http.client',
      'import http.client\nhttp.client.HTTPConnection("example.test").request("GET", "/")',
      NETWORK,
    ],
    ['requests, which is missing', 'import requests', NETWORK],
    ['read_csv of an address', 'import pandas as pd\npd.read_csv("http://example.test/a.csv")', NETWORK],
    ['asyncio streams', 'import asyncio\nawait asyncio.open_connection("127.0.0.1", 80)', NETWORK],
    ['pip as a module', 'import pip', /cannot be installed/],
    [
      'pip as a command',
      'import subprocess, sys\nsubprocess.check_call([sys.executable, "-m", "pip", "install", "x"])',
      PROCESSES,
    ],
    ['reading a file', 'open("data.csv")', READ],
    ['read_csv of a path', 'import pandas as pd\npd.read_csv("data.csv")', READ],
    ['pathlib', 'import pathlib\npathlib.Path("/etc/passwd").read_text()', READ],
    ['writing a file', 'open("out.txt", "w")', WRITE],
    ['to_csv', 'import pandas as pd\npd.DataFrame({"a": [1]}).to_csv("out.csv")', WRITE],
    ['numpy.save', 'import numpy as np\nnp.save("a.npy", np.eye(2))', WRITE],
    ['making a folder', 'import os\nos.makedirs("/tmp/a")', WRITE],
    ['a Pillow image', 'from PIL import Image\nImage.new("L", (1, 1)).save("a.png")', WRITE],
    ['a temporary file', 'import tempfile\ntempfile.NamedTemporaryFile()', /temporary files/],
    ['a database file', 'import sqlite3\nsqlite3.connect("a.db")', /:memory:/],
    ['subprocess', 'import subprocess\nsubprocess.run(["ls"])', PROCESSES],
    ['os.popen', 'import os\nos.popen("ls")', PROCESSES],
    ['os.fork', 'import os\nos.fork()', PROCESSES],
    ['os.exec', 'import os\nos.execv("/bin/ls", ["ls"])', PROCESSES],
    ['multiprocessing', 'import multiprocessing as mp\nmp.Process(target=print).start()', PROCESSES],
    ['a pool of processes', 'import multiprocessing as mp\nmp.Pool(2)', PROCESSES],
    [
      'an executor of processes',
      'from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor().submit(print).result()',
      PROCESSES,
    ],
    ['a signal to others', 'import os\nos.kill(1, 15)', /Signals/],
    [
      'too many threads',
      'import threading, time\nfor _ in range(99): threading.Thread(target=time.sleep, args=(.5,), daemon=True).start()',
      /64 threads/,
    ],
    ['a package that is missing', 'import torch', PACKAGE],
    ['a misspelt package', 'import pandsa', /Did you mean pandas\?/],
    ['a misspelt standard module', 'import colections', /Did you mean collections\?/],
    ['a submodule of a missing package', 'import tensorflow.keras', /^tensorflow is not installed/],
    ['input at the end', 'input("name? ")', /stdin has ended/],
    ['a magic', 'import os\n%matplotlib inline\n', /Notebook commands/],
    ['a shell line', '!pip install x', /Notebook commands/],
    ['a question mark', 'len?', /Notebook commands/],
    ['memory', 'bytearray(1 << 40)', /memory_mb/],
    ['recursion', 'def f(): return f()\nf()', /nested calls/],
    ['a GUI toolkit', 'import tkinter\ntkinter.Tk()', /no screen/],
    ['another GUI toolkit', 'import PyQt5.QtWidgets', /no screen/],
    [
      'an error that a library wraps',
      'import pandas as pd\ntry:\n    pd.read_csv("a.csv")\nexcept Exception as e:\n    raise RuntimeError("no data") from e',
      READ,
    ],
  ])('%s', async (_name, code, hint) => {
    const { error } = await run(code);
    expect(error?.hint, error?.traceback ?? '').toMatch(hint);
  });

  test('libraries that do not fit into memory_mb, whatever says so', async () => {
    for (const module of ['scipy.stats', 'sklearn.cluster', 'sympy', 'statsmodels.api']) {
      const { error } = await run(`import ${module}`, { memory_mb: 32 });
      if (error !== null) expect([module, error.hint]).toEqual([module, expect.stringMatching(/memory_mb/)]);
    }
  });

  test('time', async () => {
    expect((await run('while True: pass', { timeout_ms: 100 })).error?.hint).toMatch(/timeout_ms/);
  });

  test('output', async () => {
    expect((await run('while True: print("x" * 9999)')).error?.hint).toMatch(/1 MiB/);
  });
});

describe('no hint is given for', () => {
  test.each([
    ['an ordinary exception', '1/0'],
    ['a missing key', '{}["a"]'],
    ['a file error that the program made', 'raise FileNotFoundError("a.csv")'],
    ['a permission that the program denies', 'raise PermissionError("you may not")'],
    ['an import error that the program made', 'raise ModuleNotFoundError("a")'],
    ['an end of file that the program made', 'raise EOFError("my own")'],
    ['a missing name in a module that is there', 'from numpy import nonsense'],
    ['a missing submodule of one that is there', 'import numpy.nonsense'],
    ['an ordinary syntax error', 'x = (1'],
    ['a remainder', 'x = 5 %\n'],
    ['an exit', 'import sys\nsys.exit(3)'],
    ['an interrupt', 'raise KeyboardInterrupt'],
    ['a recursion error that the program made', 'raise RecursionError("mine")'],
    ['a runtime error that the program made', 'raise RuntimeError("no")'],
    [
      'an exception with hostile attributes',
      'class E(OSError):\n    @property\n    def errno(self): raise ValueError\nraise E()',
    ],
  ])('%s', async (_name, code) => {
    const { error } = await run(code);
    expect(error).not.toBeNull();
    expect(error?.hint).toBeNull();
  });
});
