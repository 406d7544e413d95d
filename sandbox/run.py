"""One run process, from the fork to its end. It serves one request and exits.

Before it is confined it opens four connections to the service, each with a hello of its one-use token and
the connection's kind; then it gives up everything in `confine`, says that it is ready, and waits. Standard
input carries the request, then the caller's stdin. Any failure before the request is read ends the process:
nothing of a caller's ever runs in a process that is not fully confined.
"""

import builtins
import functools
import gc
import os
import random
import resource
import signal
import socket
import struct
import sys
import threading
import traceback
import types
import typing
from collections.abc import Callable
from itertools import pairwise
from os import _exit as leave
from os import open as plain_open

import faulthandler

from . import confine, frames, substitutes, warm
from .program import Program
from .report import EXIT_EXCEPTION
from .value import display

if typing.TYPE_CHECKING:
    from .figures import Images

STDIN, STDOUT, STDERR, FRAMES, NULL = 0, 1, 2, frames.DESCRIPTOR, substitutes.NULL_DESCRIPTOR
UNIX, WRITING = int(socket.AF_UNIX), int(socket.SHUT_WR)
REQUEST = struct.Struct("<IIII")  # bytes of code, bytes of inputs, timeout in ms, memory in MB
NICENESS = 5
# What the interpreter itself maps while it reads and compiles a request, on top of what the zygote has.
PREPARATION_BYTES = 4 << 20
EXIT_NOT_STARTED = 70


class RunProcess:
    """Everything a run process needs, prepared in the zygote."""

    def __init__(self, configuration: dict, images: "Images", flush_signal: int, trace_signal: int) -> None:
        self._service_socket = configuration["socket"]
        self._policy = confine.Policy(configuration["readable"], frozenset(configuration["without"]))
        self._cores = sorted(os.sched_getaffinity(0))
        self._fonts = warm.open_font_files()
        resource.setrlimit(resource.RLIMIT_STACK, (confine.STACK_BYTES, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        kept = sorted(
            [STDIN, STDOUT, STDERR, FRAMES, NULL, *(number for number, _, _ in self._fonts)]
            + ([self._policy.ruleset] if self._policy.ruleset is not None else [])
        )
        self._not_kept = [
            (number + 1, following) for number, following in pairwise([*kept, 1 << 16]) if number + 1 < following
        ]
        self._images = images
        substitutes.install()
        builtins.display = functools.partial(display, images=images)
        sys.stdout.reconfigure(line_buffering=True)
        signal.signal(flush_signal, flush_streams)
        faulthandler.register(trace_signal, file=FRAMES, all_threads=False)
        if not confine.is_single_threaded():
            raise OSError("the zygote has more than one thread")
        self._baseline_bytes = 0

    def set_baseline(self) -> None:
        """To be called last, when the zygote has all that it will have: a run's memory is on top of that."""
        self._baseline_bytes = confine.address_space_bytes() + PREPARATION_BYTES

    def begin(self, token: bytes, core: int) -> None:
        """Called in the new process: becomes a run, serves one request, exits."""
        try:
            self._connect(token)
            # A session of its own is a scheduling group of its own where the kernel groups by session: many threads
            # of one run then get no more of a core than one thread of another.
            os.setsid()
            os.sched_setaffinity(0, {self._cores[core % len(self._cores)]})
            os.nice(NICENESS)
            self._policy.apply()
            self.rehearse()
            usage = resource.getrusage(resource.RUSAGE_SELF)
            cpu_microseconds = round((usage.ru_utime + usage.ru_stime) * 1e6)
            frames.send_ready(cpu_microseconds, usage.ru_maxrss)
            code, inputs, open_headroom = self._receive()
        except BaseException:
            traceback.print_exc()
            leave(EXIT_NOT_STARTED)
        gc.enable()
        program = Program(code, inputs, self._images, open_headroom)
        exit_code = EXIT_EXCEPTION
        try:
            exit_code = program.run()
        except BaseException as failure:
            # The program has broken what its own report needs; the exit code and a name are left.
            frames.send_bare_error(program.uncaught or failure)
        leave(exit_code)

    def rehearse(self) -> None:
        """Seeds what draws random numbers, and does what every program's run will do. In the zygote, so that the
        interpreter's caches know it; in a run process, so that the pages which that writes are copied by now, while
        nobody waits for it."""
        reseed()
        Program(b"print(end='')", b"{}", self._images, lambda: None).execute()

    def _connect(self, token: bytes) -> None:
        """Opens this run's connections as descriptors 0 to 3, and closes all that it should not have."""
        for number in (STDIN, STDOUT, STDERR, FRAMES):
            connection = socket.SocketType(UNIX)  # the C type: its Python subclass takes twice as long
            connection.connect(self._service_socket)
            connection.sendall(token + bytes([number]))
            if number == STDIN:
                connection.shutdown(WRITING)
            os.dup2(connection.fileno(), number)
            connection.close()
        for first, end in self._not_kept:
            os.closerange(first, end)
        # What the zygote has open is one open file description for all runs, and its flags and offset would be a
        # channel between them: each run opens its own under the same number.
        reopen(NULL, "/dev/null", os.O_RDWR)
        for number, path, offset in self._fonts:
            reopen(number, path, os.O_RDONLY)
            os.lseek(number, offset, os.SEEK_SET)

    def _receive(self) -> tuple[bytes, bytes, Callable[[], None]]:
        code_bytes, inputs_bytes, timeout_ms, memory_mb = REQUEST.unpack(read_exactly(REQUEST.size))
        memory_bytes = self._baseline_bytes + (memory_mb << 20) + code_bytes + inputs_bytes
        open_headroom = confine.limit_run(memory_bytes, timeout_ms / 1000)
        return read_exactly(code_bytes), read_exactly(inputs_bytes), open_headroom


def reopen(number: int, path: str, flags: int) -> None:
    own = plain_open(path, flags)
    os.dup2(own, number)
    os.close(own)


def read_exactly(count: int) -> bytes:
    """Reads `count` bytes of the request. Raises EOFError when the service closes first."""
    received = bytearray(count)
    view = memoryview(received)
    while view:
        length = os.readv(STDIN, [view])
        if length == 0:
            raise EOFError("the service closed the connection")
        view = view[length:]
    return bytes(received)


def flush_streams(_signal: int, _frame: types.FrameType | None) -> None:
    """At the deadline: an unfinished line is worth keeping."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except BaseException:
            # Nothing a stream of the program's own does may turn the deadline into an exception.
            pass


def reseed() -> None:
    """What the suppressed hooks of a fork would do: siblings of one zygote must not draw the same numbers."""
    threading.main_thread()._set_native_id()
    random.seed()
    sys.modules["numpy"].random.seed(int.from_bytes(os.urandom(4), "little"))
