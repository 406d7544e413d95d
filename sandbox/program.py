"""The caller's program as a script: compiled, run as `__main__`, ended as Python ends a script."""

import __future__

import ast
import asyncio
import atexit
import builtins
import functools
import inspect
import io
import json
import linecache
import operator
import os
import re
import sys
import threading
import traceback
import types
import typing
from collections.abc import Awaitable, Callable

from . import frames
from .explain import hint_for
from .value import class_name, cut_text, send_value

if typing.TYPE_CHECKING:
    from .figures import Images

FILE_NAME = "main.py"
OWN_FILES = os.path.dirname(__file__) + "/"
TEXT_MAX = 64 << 10
EXIT_EXCEPTION = 1
EXIT_STREAM_LOST = 120
EXIT_INTERRUPTED = 130
FUTURE_FLAGS = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


class Program:
    """One program: `code` is UTF-8, `inputs` a JSON text; `open_headroom` gives memory for a last report."""

    def __init__(
        self, code: bytes, inputs: bytes, images: "Images", open_headroom: Callable[[], None]
    ) -> None:
        self._images = images
        self._open_headroom = open_headroom
        self._source = code.decode().removeprefix("\ufeff")
        self._inputs = inputs

    def run(self) -> int:
        """Runs it to its end, reports an uncaught exception, answers the exit code."""
        exit_code = 0
        try:
            send_value(self.execute(), self._images)
        except BaseException as exception:
            if isinstance(exception, MemoryError):
                self._open_headroom()
            exit_code = self._report(exception)
        return self._end(exit_code)

    def execute(self) -> object:
        """Runs it, up to its last statement. Answers the value of its last expression; raises what it raises."""
        module = self._install_main_module()
        body, last_expression = compiled(self._source)
        result = eval(body, module.__dict__)
        if inspect.iscoroutine(result):
            return asyncio.run(self._finish_in_loop(result, last_expression, module.__dict__))
        value = None if last_expression is None else eval(last_expression, module.__dict__)
        if inspect.isawaitable(value):
            return asyncio.run(self._awaited(value))
        return value

    async def _finish_in_loop(self, body: Awaitable, last_expression: types.CodeType | None, names: dict) -> object:
        """For a body that awaits: one event loop for all of it."""
        await body
        value = None if last_expression is None else eval(last_expression, names)
        return await value if inspect.isawaitable(value) else value

    async def _awaited(self, value: Awaitable) -> object:
        return await value

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
        self._send_error(exception, message, text)
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
            self._send_error(exception, message, None)
        return exit_code

    def _send_error(self, exception: BaseException, message: object, text: str | None) -> None:
        frames.send_error(
            {
                "type": class_name(type(exception)),
                "message": shortened(str(message)),
                "line": line_of(exception),
                "traceback": None if text is None else shortened(text),
                "hint": hint_for(exception),
            }
        )

    def _end(self, exit_code: int) -> int:
        """Waits for threads, sends the figures that are still open, runs atexit, flushes. What goes wrong here
        does not change the exit code, but for output that could not be written."""
        for step in (threading._shutdown, self._images.show_open_figures, atexit._run_exitfuncs):
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


def compiled(source: str) -> tuple[types.CodeType, types.CodeType | None]:
    """The program, and apart from it its last statement where that is an expression whose value is wanted: one
    that is not followed by a semicolon. Raises what the compiler raises."""
    if "\0" in source:
        line = source[: source.index("\0")].count("\n") + 1
        raise SyntaxError("source code cannot contain null bytes", (FILE_NAME, line, None, None))
    tree = compile(source, FILE_NAME, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
    last = tree.body[-1] if tree.body else None
    # A lone string is the docstring too; compiled apart, it would no longer be.
    apart = isinstance(last, ast.Expr) and not is_followed_by_semicolon(source, last)
    if apart and not (len(tree.body) == 1 and isinstance(last.value, ast.Constant)):
        tree.body.pop()
    body = compile(tree, FILE_NAME, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
    if not apart:
        return body, None
    flags = body.co_flags & FUTURE_FLAGS | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return body, compile(ast.Expression(last.value), FILE_NAME, "eval", flags, True)


def is_followed_by_semicolon(source: str, statement: ast.Expr) -> bool:
    """As in a notebook, `expression;` has no value. After the last expression there can only be closing
    parentheses, comments and white space besides."""
    lines = re.split(r"\r\n|\r|\n", source)[statement.end_lineno - 1 :]
    lines[0] = lines[0].encode()[statement.end_col_offset :].decode()
    return re.match(r"[\s)\\]*;", "\n".join(line.split("#")[0] for line in lines)) is not None


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


def text_of(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{class_name(type(value))}: str failed>"


def shortened(text: str) -> str:
    return cut_text(text, TEXT_MAX)[0]


def print_to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BaseException:
        # The program closed or replaced its stderr: as with Python itself, the text is lost.
        pass
