"""`open("/dev/null", "w")` works: it answers with a copy of a descriptor opened before confinement.

The kernel refuses every other open for writing, and this one too: nothing here holds anybody in.
"""

import builtins
import functools
import io
import os

DESCRIPTOR = 4
PATH = "/dev/null"
WRITING = os.O_WRONLY | os.O_RDWR


def is_null(path: object) -> bool:
    return path == PATH or (isinstance(path, os.PathLike) and os.fspath(path) == PATH)


def install() -> None:
    """Wraps `open` and `os.open` in this process."""
    plain_open, plain_os_open = io.open, os.open

    def null_opener(_path: str, _flags: int) -> int:
        return os.dup(DESCRIPTOR)

    @functools.wraps(plain_open)
    def open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        if opener is None and is_null(file) and isinstance(mode, str) and not set(mode).isdisjoint("wax+"):
            opener = null_opener
        return plain_open(file, mode, buffering, encoding, errors, newline, closefd, opener)

    @functools.wraps(plain_os_open)
    def os_open(path, flags, mode=0o777, *, dir_fd=None):
        if is_null(path) and flags & WRITING:
            return os.dup(DESCRIPTOR)
        return plain_os_open(path, flags, mode, dir_fd=dir_fd)

    builtins.open = io.open = open
    os.open = os_open
