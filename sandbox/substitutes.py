"""What would fail for no reason of security works by other means: nothing here holds anybody in.

`open("/dev/null", "w")` answers with a copy of a descriptor opened before confinement, since the kernel refuses
every open for writing. SQLite keeps in memory what it would put into temporary files.
"""

import builtins
import functools
import io
import os
import site
import sqlite3

NULL_DESCRIPTOR = 4
NULL_PATH = "/dev/null"
WRITING = os.O_WRONLY | os.O_RDWR


def install() -> None:
    """Puts the substitutes in place, once, in the zygote."""
    substitute_open()
    substitute_sqlite_connect()
    # `exit`, `quit` and `help` are of the site module, which a jail does not run.
    site.setquit()
    site.sethelper()


def is_null(path: object) -> bool:
    return path in (NULL_PATH, os.fsencode(NULL_PATH)) or (
        isinstance(path, os.PathLike) and os.fspath(path) == NULL_PATH
    )


def substitute_open() -> None:
    plain_open, plain_os_open = io.open, os.open

    def null_opener(_path: str, _flags: int) -> int:
        return os.dup(NULL_DESCRIPTOR)

    @functools.wraps(plain_open)
    def open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        writes = isinstance(mode, str) and not set(mode).isdisjoint("wax+")
        if opener is None and writes and isinstance(file, (str, bytes, os.PathLike)) and is_null(file):
            opener = null_opener
        return plain_open(file, mode, buffering, encoding, errors, newline, closefd, opener)

    @functools.wraps(plain_os_open)
    def os_open(path, flags, mode=0o777, *, dir_fd=None):
        if flags & WRITING and isinstance(path, (str, bytes, os.PathLike)) and is_null(path):
            return os.dup(NULL_DESCRIPTOR)
        return plain_os_open(path, flags, mode, dir_fd=dir_fd)

    builtins.open = io.open = open
    os.open = os_open


def substitute_sqlite_connect() -> None:
    plain_connect = sqlite3.connect

    @functools.wraps(plain_connect)
    def connect(*arguments, **options):
        connection = plain_connect(*arguments, **options)
        connection.execute("PRAGMA temp_store = MEMORY").close()
        return connection

    sqlite3.connect = sqlite3.dbapi2.connect = connect
