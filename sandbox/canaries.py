"""Attempts to get out, run as an ordinary program by the self-test. Prints one line each: held or escaped.

Each names the layer that should hold it. Some are held by several layers; a few by exactly one, so that a
missing layer shows.
"""

import ctypes
import io
import os
import resource
import socket

LIBC = ctypes.CDLL(None, use_errno=True)
CANARIES = []


def canary(layer, name):
    def keep(attempt):
        CANARIES.append((layer, name, attempt))
        return attempt

    return keep


def refused(number, *arguments):
    """Whether the kernel refuses a system call, by its number on x86-64."""
    return LIBC.syscall(number, *arguments) < 0


@canary("namespaces", "the host's files are not there")
def _():
    return not any(os.access(path, os.F_OK) for path in ("/etc/passwd", "/proc", "/sys", "/home", "/tmp"))


@canary("namespaces", "only the sandbox's own processes are visible")
def _():
    return os.getpid() < 1 << 16 and os.getppid() == 1 and socket.gethostname() == "codecell"


@canary("user namespace", "runs as nobody")
def _():
    return (os.getuid(), os.getgid()) == (65534, 65534)


@canary("Landlock", "a file outside the runtime cannot be read")
def _():
    try:
        os.listdir("/codecell")
    except PermissionError:
        return True
    return False


@canary("seccomp", "no socket")
def _():
    try:
        socket.socket()
    except PermissionError:
        return True
    return False


@canary("seccomp", "no new process, no other program")
def _():
    try:
        if os.fork() == 0:
            os._exit(0)
    except PermissionError:
        pass
    else:
        return False
    try:
        os.execv("/usr/bin/true", ["true"])
    except PermissionError:
        return True


@canary("seccomp", "no file can be written")
def _():
    for path in ("/tmp/x", "x", "/dev/shm/x"):
        try:
            os.open(path, os.O_WRONLY | os.O_CREAT)
        except PermissionError:
            continue
        return False
    return True


@canary("seccomp", "no namespace, mount or way into the kernel")
def _():
    unshare, mount, bpf, io_uring_setup, perf_event_open, userfaultfd = 272, 165, 321, 425, 298, 323
    return all(
        (
            refused(unshare, 0x10000000),
            refused(mount, b"none", b"/", b"tmpfs", 0, None),
            refused(bpf, 0, 0, 0),
            refused(io_uring_setup, 8, 0),
            refused(perf_event_open, 0, 0, -1, -1, 0),
            refused(userfaultfd, 0),
        )
    )


@canary("seccomp", "the zygote is out of reach")
def _():
    kill, ptrace, process_vm_readv, pidfd_open = 62, 101, 310, 434
    return all(
        (
            refused(kill, 1, 0),
            refused(ptrace, 16, 1, 0, 0),
            refused(process_vm_readv, 1, 0, 0, 0, 0, 0),
            refused(pidfd_open, 1, 0),
        )
    )


@canary("limits", "memory, threads, files and core dumps are limited")
def _():
    def hard(limit):
        return resource.getrlimit(limit)[1]

    return (
        hard(resource.RLIMIT_AS) != resource.RLIM_INFINITY
        and hard(resource.RLIMIT_NPROC) <= 65
        and hard(resource.RLIMIT_NOFILE) <= 128
        and hard(resource.RLIMIT_FSIZE) == hard(resource.RLIMIT_CORE) == 0
    )


@canary("runtime", "a plot is drawn")
def _():
    import matplotlib.pyplot as plt

    plt.plot([1, 2])
    plt.title("self-test")
    picture = io.BytesIO()
    plt.savefig(picture)
    plt.close("all")
    return picture.getvalue().startswith(b"\x89PNG")


for layer, name, attempt in CANARIES:
    try:
        held = attempt()
    except Exception as error:
        held = False
        name = f"{name} ({type(error).__name__}: {error})"
    print(f"{'held' if held else 'escaped'}\t{layer}\t{name}", flush=True)
