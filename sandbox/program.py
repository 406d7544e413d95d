"""The caller's program as a script: compiled, run as `__main__`, ended as Python ends a script."""

import ast
import asyncio
import atexit
import builtins
import inspect
import io
import json
import linecache
import os
import sys
import threading
import traceback
import types
from collections.abc import Callable

FILE_NAME = "main.py"
OWN_FILES = os.path.dirname(__file__) + "/"
TEXT_MAX = 64 << 10
EXIT_EXCEPTION = 1
EXIT_STREAM_LOST = 120
EXIT_INTERRUPTED = 130


class Program:
    """One program: `code` is UTF-8, `inputs` a JSON text; `open_headroom` gives memory for a last report."""

    def __init__(self, code: bytes, inputs: bytes, open_headroom: Callable[[], None]) -> None:
        self._open_headroom = open_headroom
        self._source = code.decode().removeprefix("\ufeff")
        self._inputs = inputs
        self._error: bytes | None = None

    def run(self) -> tuple[int, bytes | None]:
        """Runs it to its end. Answers the exit code, and the report of an uncaught exception as JSON."""
        exit_code = 0
        try:
            self.execute()
        except BaseException as exception:
            if isinstance(exception, MemoryError):
                self._open_headroom()
            exit_code = self._report(exception)
        return self._end(exit_code), self._error

    def execute(self) -> None:
        """Runs it, up to its last statement. Raises what it raises."""
        module = self._install_main_module()
        if "\0" in self._source:
            line = self._source[: self._source.index("\0")].count("\n") + 1
            raise SyntaxError("source code cannot contain null bytes", (FILE_NAME, line, None, None))
        code = compile(
            self._source, FILE_NAME, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
        )
        result = eval(code, module.__dict__)
        if inspect.iscoroutine(result):
            asyncio.run(result)

    def _install_main_module(self) -> types.ModuleType:
        """`__main__` and `linecache` hold the caller's program: pickle, unittest and inspect look there."""
        module = types.ModuleType("__main__")
        module.__dict__.update(
            __annotations__={},
            __builtins__=builtins,
            __cached__=None,
            __file__=FILE_NAME,
            inputs=parse_inputs(self._inputs),
        )
        sys.modules["__main__"] = module
        sys.argv = [FILE_NAME]
        sys.orig_argv = ["python", FILE_NAME]
        lines = io.StringIO(self._source, newline=None).readlines()
        linecache.cache[FILE_NAME] = (len(self._source), None, lines, FILE_NAME)
        return module

    def _report(self, exception: BaseException) -> int:
        """Prints an uncaught exception as Python does, keeps the report, answers the exit code."""
        exception.__traceback__ = callers_part(exception.__traceback__)
        if isinstance(exception, SystemExit):
            return self._report_exit(exception)
        text = formatted(exception)
        if sys.excepthook is not sys.__excepthook__:
            try:
                sys.excepthook(type(exception), exception, exception.__traceback__)
            except BaseException as second:
                print_to_stderr("Error in sys.excepthook:\n" + formatted(second) + "\nOriginal exception was:\n" + text)
        else:
            print_to_stderr(text)
        message = exception.msg if isinstance(exception, SyntaxError) else text_of(exception)
        self._keep_error(class_name(type(exception)), message, line_of(exception), text)
        return EXIT_INTERRUPTED if isinstance(exception, KeyboardInterrupt) else EXIT_EXCEPTION

    def _report_exit(self, exception: SystemExit) -> int:
        status = exception.code
        if status is None:
            return 0
        if isinstance(status, int):
            exit_code = status & 0xFF if -(1 << 31) <= status < 1 << 31 else 0xFF
            message = f"exited with code {exit_code}"
        else:
            exit_code = EXIT_EXCEPTION
            message = text_of(status)
            print_to_stderr(message + "\n")
        if exit_code != 0:
            self._keep_error("SystemExit", message, line_of(exception), None)
        return exit_code

    def _keep_error(self, kind: str, message: object, line: int | None, text: str | None) -> None:
        report = {
            "type": kind,
            "message": shortened(str(message)),
            "line": line,
            "traceback": None if text is None else shortened(text),
        }
        self._error = json.dumps(report).encode()

    def _end(self, exit_code: int) -> int:
        """Waits for threads, runs atexit, flushes. What goes wrong here does not change the exit code, but
        for output that could not be written."""
        for step in (threading._shutdown, atexit._run_exitfuncs):
            try:
                step()
            except BaseException as exception:
                print_to_stderr(formatted(exception))
        for stream in (sys.__stdout__, sys.__stderr__, sys.stderr, sys.stdout):
            try:
                if stream is not None and not stream.closed:
                    stream.flush()
            except BaseException:
                if stream is sys.stdout and exit_code == 0:
                    exit_code = EXIT_STREAM_LOST
        return exit_code


def parse_inputs(text: bytes) -> dict:
    """The JSON text as Python reads it, integers of any length included."""
    digits_max = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.loads(text)
    finally:
        sys.set_int_max_str_digits(digits_max)


def callers_part(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Drops the sandbox's and the event loop's frames above the caller's first one."""
    while trace is not None and trace.tb_frame.f_code.co_filename != FILE_NAME:
        trace = trace.tb_next
    return trace


def line_of(exception: BaseException) -> int | None:
    """The caller's line that an exception passed through last."""
    line = None
    for frame, number in traceback.walk_tb(exception.__traceback__):
        if frame.f_code.co_filename == FILE_NAME:
            line = number
    if line is None and isinstance(exception, SyntaxError) and exception.filename == FILE_NAME:
        line = exception.lineno
    return line if isinstance(line, int) else None


def formatted(exception: BaseException) -> str:
    """The traceback as Python prints it, without frames of the sandbox."""
    try:
        report = traceback.TracebackException.from_exception(exception, compact=True)
        hide_own_frames(report)
        return "".join(report.format())
    except BaseException:
        # Too deep, too large, or a class that raises on every look: the name alone always works.
        return f"{class_name(type(exception))}: {text_of(exception)}\n"


def hide_own_frames(report: traceback.TracebackException) -> None:
    pending = [report]
    while pending:
        each = pending.pop()
        each.stack[:] = [frame for frame in each.stack if not frame.filename.startswith(OWN_FILES)]
        pending += [other for other in (each.__cause__, each.__context__) if other is not None]
        pending += getattr(each, "exceptions", None) or []


def class_name(kind: type) -> str:
    """The class's name, past a metaclass that would say otherwise."""
    return type.__dict__["__name__"].__get__(kind)


def text_of(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{class_name(type(value))}: str failed>"


def shortened(text: str) -> str:
    """At most 64 KiB of UTF-8, lone surrogates replaced: this goes into JSON."""
    encoded = text.encode(errors="replace")
    if len(encoded) > TEXT_MAX:
        encoded = encoded[: TEXT_MAX - 3] + "…".encode()
    return encoded.decode(errors="ignore")


def print_to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BaseException:
        # The program closed or replaced its stderr: as with Python itself, the text is lost.
        pass
