"""Confinement: what a run process gives up, in this order, before it reads a byte of the caller's.

Everything here is enforced by the kernel. `Policy` is built once, in the zygote; each run process applies it
to itself. A step that fails raises OSError, and the process must then end: there is no weaker mode.
"""

import ctypes
import errno
import functools
import os
import resource
import struct
from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True)
# Looked up here and not in each run.
unshare, capset, prctl, syscall = LIBC.unshare, LIBC.capset, LIBC.prctl, LIBC.syscall

# Threads of one run, the main thread included in the count that the kernel makes.
THREADS_MAX = 64
DESCRIPTORS_MAX = 128
STACK_BYTES = 8 << 20
# The soft cap on address space is the run's; the hard one leaves room to report that it was hit.
REPORT_HEADROOM_BYTES = 8 << 20
# A backstop alone: the deadline is a SIGKILL from outside, long before this.
CPU_GRACE_SECONDS = 5

CLONE_THREAD = 0x00010000
CLONE_NEWUSER = 0x10000000
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
LINUX_CAPABILITY_VERSION_3 = 0x20080522

SYS_SECCOMP = 317
SYS_LANDLOCK_CREATE_RULESET = 444
SYS_LANDLOCK_ADD_RULE = 445
SYS_LANDLOCK_RESTRICT_SELF = 446
SECCOMP_SET_MODE_FILTER = 1


def check(result: int, what: str) -> int:
    """Passes the result of a libc call on; raises OSError, naming `what`, when it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def is_single_threaded() -> bool:
    """The kernel lets only a process of one thread unshare CLONE_THREAD."""
    return unshare(CLONE_THREAD) == 0


# --- Landlock: which files can be opened --------------------------------------------------------------

LANDLOCK_READ_FILE = 1 << 2
LANDLOCK_READ_DIR = 1 << 3
# By ABI version: every access right to files that the kernel knows. All are denied unless a rule allows.
LANDLOCK_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
LANDLOCK_TCP_RIGHTS = 0b11
LANDLOCK_SCOPES = 0b11  # abstract Unix sockets, signals


def landlock_version() -> int:
    """The kernel's Landlock ABI version; 0 where there is none."""
    return max(0, syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, 1))


def landlock_ruleset(readable: list[str]) -> int:
    """A ruleset descriptor that allows reading the given files and folders, and nothing else."""
    version = landlock_version()
    if version == 0:
        raise OSError(errno.ENOSYS, "Landlock is not enabled in this kernel")
    attributes = struct.pack("<Q", LANDLOCK_FILE_RIGHTS[min(version, 5)])
    if version >= 4:
        attributes += struct.pack("<Q", LANDLOCK_TCP_RIGHTS)
    if version >= 6:
        attributes += struct.pack("<Q", LANDLOCK_SCOPES)
    ruleset = check(
        syscall(SYS_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0), "landlock_create_ruleset"
    )
    for path in readable:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rights = LANDLOCK_READ_FILE | (LANDLOCK_READ_DIR if os.path.isdir(path) else 0)
        rule = struct.pack("<Qi", rights, descriptor)
        check(syscall(SYS_LANDLOCK_ADD_RULE, ruleset, 1, rule, 0), f"landlock_add_rule {path}")
        os.close(descriptor)
    return ruleset


# --- One process --------------------------------------------------------------------------------------


class SockFprog(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


class Policy:
    """The confinement of every run, prepared once. `without` names layers left out: for tests alone."""

    def __init__(self, readable: list[str], without: frozenset[str]) -> None:
        from . import syscalls

        self.ruleset = None if "landlock" in without else landlock_ruleset(readable)
        self.filter = None if "seccomp" in without else syscalls.SyscallFilter()

    def apply(self) -> None:
        """Confines this process for good. Raises OSError when a layer cannot be had."""
        enter_own_user_namespace()
        set_limits()
        check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        check(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "not dumpable")
        if self.ruleset is not None:
            check(syscall(SYS_LANDLOCK_RESTRICT_SELF, self.ruleset, 0), "landlock_restrict_self")
            os.close(self.ruleset)
        if self.filter is not None:
            program, count = self.filter.for_process(os.getpid())
            description = SockFprog(count, ctypes.addressof(program))
            check(
                syscall(SYS_SECCOMP, SECCOMP_SET_MODE_FILTER, 0, ctypes.byref(description)),
                "seccomp",
            )


def enter_own_user_namespace() -> None:
    """A user namespace without a mapping, and no capability in it: processes are counted per run, and an
    unmapped user can create no further namespace."""
    check(unshare(CLONE_NEWUSER), "unshare of the user namespace")
    header = struct.pack("<Ii", LINUX_CAPABILITY_VERSION_3, 0)
    check(capset(header, bytes(24)), "capset")


def set_limits() -> None:
    """Resource limits that are the same for every run."""
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NOFILE, DESCRIPTORS_MAX),
        (resource.RLIMIT_NPROC, THREADS_MAX + 1),
    ):
        resource.setrlimit(limit, (value, value))


def limit_run(memory_bytes: int, timeout_seconds: float) -> Callable[[], None]:
    """The limits of one run: `memory_bytes` of address space in all, CPU time well over the deadline.

    Answers what raises the soft cap on address space to the hard one, to report that it was hit. It is made
    ahead because by then there may be no memory to make it.
    """
    hard = memory_bytes + REPORT_HEADROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, hard))
    cpu_seconds = int(timeout_seconds) + CPU_GRACE_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    return functools.partial(resource.setrlimit, resource.RLIMIT_AS, (hard, hard))


def address_space_bytes() -> int:
    """The address space in use, found by bisecting the limit: there is no /proc in the jail to ask."""
    import mmap

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    low, high = 0, 1 << 46
    while high - low > mmap.PAGESIZE:
        middle = (low + high) // 2
        resource.setrlimit(resource.RLIMIT_AS, (middle, hard))
        try:
            mmap.mmap(-1, mmap.PAGESIZE).close()
            high = middle
        except (OSError, MemoryError):
            low = middle
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    return high
