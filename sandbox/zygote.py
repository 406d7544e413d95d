"""The zygote: a warmed Python that forks one confined process per run.

It is trusted and single-threaded, and no byte of a caller's passes through it: code, input and output travel
between the service and the run process on connections that the run process opens itself after the fork.
All the zygote hears are fixed-size records on descriptor 3, and all it says are such records:

  service -> zygote   fork(sequence, core, token)   arm(sequence, timeout in ms)   kill(sequence)   ping
  zygote -> service   warm   exited(sequence, wait status, rusage)   fork_failed(sequence, errno)   pong

It ends when that channel closes. It is process 1 of its pid namespace, so all runs end with it.
"""

import heapq
import json
import os
import resource
import select
import signal
import struct
import sys
import time

CONTROL = 3
NULL = 4
COMMAND = struct.Struct("<BBxxIQ16s")  # operation, core, sequence, argument, token
REPORT = struct.Struct("<BBxxIiIQQ")  # operation, flags, sequence, status, peak memory KB, user us, system us

FORK, ARM, KILL, PING = 1, 2, 3, 4
WARM, EXITED, FORK_FAILED, PONG = 1, 2, 3, 4
DEADLINE_PASSED = 1

# What a run may still say at its deadline: flush its streams, name the line that is running. On a busy machine it
# is not always given the processor within half of this time.
FLUSH_SIGNAL = signal.SIGRTMIN + 10
TRACE_SIGNAL = signal.SIGRTMIN + 11
LAST_WORDS_SECONDS = 0.04

# CPython adapts code that it has run eight times, and the caches in it are then written no more.
REHEARSALS = 16


class InNewProcess(BaseException):
    """Takes a new process out of the zygote's frames, whose state is not for runs to see."""

    def __init__(self, token: bytes, core: int) -> None:
        self.token = token
        self.core = core


class Zygote:
    """Forks, arms, kills and reaps run processes on the service's command."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._processes: dict[int, int] = {}  # sequence -> process id
        self._by_pidfd: dict[int, tuple[int, int]] = {}  # pidfd -> sequence, process id
        self._timers: list[tuple[float, int, bool]] = []  # when, sequence, whether SIGKILL is due
        self._past_deadline: set[int] = set()
        self._partial = b""

    def serve(self) -> None:
        """Serves until the control channel closes. Raises InNewProcess in each process that it forks."""
        self._poll.register(CONTROL, select.POLLIN)
        self._report(WARM)
        while True:
            for descriptor, _ in self._poll.poll(self._milliseconds_to_next_timer()):
                if descriptor != CONTROL:
                    self._reap(descriptor)
                elif not self._read_commands():
                    return
            self._run_timers()

    def _read_commands(self) -> bool:
        received = os.read(CONTROL, 4096)
        if not received:
            return False
        self._partial += received
        while len(self._partial) >= COMMAND.size:
            command = COMMAND.unpack_from(self._partial)
            self._partial = self._partial[COMMAND.size :]
            operation, core, sequence, argument, token = command
            if operation == FORK:
                self._fork(sequence, core, token)
            elif operation == ARM and sequence in self._processes:
                heapq.heappush(self._timers, (time.monotonic() + argument / 1000, sequence, False))
            elif operation == KILL:
                self._signal(sequence, signal.SIGKILL)
            elif operation == PING:
                self._report(PONG)
        return True

    def _fork(self, sequence: int, core: int, token: bytes) -> None:
        try:
            process = os.fork()
        except OSError as error:
            self._report(FORK_FAILED, sequence, error.errno or 0)
            return
        if process == 0:
            raise InNewProcess(token, core)
        pidfd = os.pidfd_open(process)
        self._processes[sequence] = process
        self._by_pidfd[pidfd] = (sequence, process)
        self._poll.register(pidfd, select.POLLIN)

    def _reap(self, pidfd: int) -> None:
        sequence, process = self._by_pidfd.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status, usage = os.wait4(process, 0)
        del self._processes[sequence]
        self._timers = [timer for timer in self._timers if timer[1] != sequence]
        heapq.heapify(self._timers)
        flags = DEADLINE_PASSED if sequence in self._past_deadline else 0
        self._past_deadline.discard(sequence)
        self._report(EXITED, sequence, status, usage, flags)

    def _milliseconds_to_next_timer(self) -> int | None:
        if not self._timers:
            return None
        return max(0, int((self._timers[0][0] - time.monotonic()) * 1000) + 1)

    def _run_timers(self) -> None:
        while self._timers and self._timers[0][0] <= time.monotonic():
            _, sequence, kill = heapq.heappop(self._timers)
            if kill:
                self._signal(sequence, signal.SIGKILL)
            elif sequence in self._processes:
                self._past_deadline.add(sequence)
                self._signal(sequence, FLUSH_SIGNAL)
                self._signal(sequence, TRACE_SIGNAL)
                heapq.heappush(self._timers, (time.monotonic() + LAST_WORDS_SECONDS, sequence, True))

    def _signal(self, sequence: int, number: int) -> None:
        process = self._processes.get(sequence)
        if process is not None:
            os.kill(process, number)

    def _report(
        self,
        operation: int,
        sequence: int = 0,
        status: int = 0,
        usage: resource.struct_rusage | None = None,
        flags: int = 0,
    ) -> None:
        memory = user = system = 0
        if usage is not None:
            memory = usage.ru_maxrss
            user, system = round(usage.ru_utime * 1e6), round(usage.ru_stime * 1e6)
        record = REPORT.pack(operation, flags, sequence, status, memory, user, system)
        sent = os.write(CONTROL, record)
        if sent != len(record):
            raise OSError("the control channel took half a record")


def main() -> None:
    configuration = json.loads(sys.argv[1])
    # Before anything else is opened, so that it has this number in every run.
    if os.open("/dev/null", os.O_RDWR) != NULL:
        raise OSError(f"descriptor {NULL} is taken")
    # Hooks that libraries would run at each fork copy hundreds of pages; `RunProcess` does what is needed of them.
    register_at_fork, os.register_at_fork = os.register_at_fork, lambda **_: None
    own_parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [*configuration["importFrom"], own_parent]
    from _codecell import memory, warm

    memory.use_one_arena()
    kept_arenas = memory.reserve_small_object_memory()
    # Before the libraries: what every run executes then lies close together, on few pages.
    from _codecell.run import RunProcess

    warm.import_libraries(configuration["matplotlibFolder"])
    from _codecell import figures

    images = figures.Images()
    figures.install(images)
    run = RunProcess(configuration, images, FLUSH_SIGNAL, TRACE_SIGNAL)
    sys.path.remove(own_parent)
    os.register_at_fork = register_at_fork
    # An entry that a run replaces in the cache of methods costs it the page of the name that was there.
    sys._clear_type_cache()
    for _ in range(REHEARSALS):
        run.rehearse()
    warm.hide_own_modules()
    memory.settle(kept_arenas)
    run.set_baseline()
    try:
        Zygote().serve()
        return
    except InNewProcess as place:
        token, core = place.token, place.core
    run.begin(token, core)


if __name__ == "__main__":
    main()
