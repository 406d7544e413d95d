"""How a program ended, in its own words: what Python prints of an uncaught exception, and the report of it.

The exception's class is the program's and may lie or raise at every look, so what matters is read past it: by
the type itself and by BaseException's own slots.
"""

import os
import sys
import traceback
import types

from . import frames
from .explain import hint_for
from .source import FILE_NAME
from .value import class_name, cut_text

OWN_FILES = os.path.dirname(__file__) + "/"
TEXT_BYTES_MAX = 64 << 10
EXIT_EXCEPTION = 1
EXIT_INTERRUPTED = 130

exception_trace = BaseException.__traceback__
exit_status = SystemExit.code


def report_exception(exception: BaseException) -> int:
    """Prints an uncaught exception as Python does, sends the report of it, answers the exit code."""
    kind = type(exception)
    exception_trace.__set__(exception, callers_part(exception_trace.__get__(exception)))
    if issubclass(kind, SystemExit):
        return report_exit(exception)
    text = formatted(exception)
    hook = getattr(sys, "excepthook", None)
    if hook is None or hook is sys.__excepthook__:
        print_to_stderr(text)
    else:
        try:
            hook(kind, exception, exception_trace.__get__(exception))
        except BaseException as second:
            print_to_stderr(f"Error in sys.excepthook:\n{formatted(second)}\nOriginal exception was:\n{text}")
    message = getattr(exception, "msg", "") if issubclass(kind, SyntaxError) else text_of(exception)
    send_error(exception, str(message), text)
    return EXIT_INTERRUPTED if issubclass(kind, KeyboardInterrupt) else EXIT_EXCEPTION


def report_exit(exception: SystemExit) -> int:
    status = exit_status.__get__(exception)
    if status is None:
        return 0
    if issubclass(type(status), int):
        number = int.__add__(status, 0)
        exit_code = number & 0xFF if -(1 << 31) <= number < 1 << 31 else 0xFF
        message = f"exited with code {exit_code}"
    else:
        exit_code = EXIT_EXCEPTION
        message = text_of(status)
        print_to_stderr(message + "\n")
    if exit_code != 0:
        send_error(exception, message, None)
    return exit_code


def send_error(exception: BaseException, message: str, text: str | None) -> None:
    frames.send_error(
        {
            "type": class_name(type(exception)),
            "message": cut_text(message, TEXT_BYTES_MAX)[0],
            "line": line_of(exception),
            "traceback": None if text is None else cut_text(text, TEXT_BYTES_MAX)[0],
            "hint": hint_for(exception),
        }
    )


def callers_part(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Drops the sandbox's and the event loop's frames above the caller's first one."""
    while trace is not None and trace.tb_frame.f_code.co_filename != FILE_NAME:
        trace = trace.tb_next
    return trace


def line_of(exception: BaseException) -> int | None:
    """The caller's line that an exception passed through last."""
    line = None
    for frame, number in traceback.walk_tb(exception_trace.__get__(exception)):
        if frame.f_code.co_filename == FILE_NAME:
            line = number
    if line is None and issubclass(type(exception), SyntaxError) and exception.filename == FILE_NAME:
        line = exception.lineno
    return line if isinstance(line, int) else None


def formatted(exception: BaseException) -> str:
    """The traceback as Python prints it, without frames of the sandbox."""
    try:
        report = traceback.TracebackException(
            type(exception), exception, exception_trace.__get__(exception), compact=True
        )
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
    except BaseException:
        return f"<{class_name(type(value))}: str failed>"


def print_to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BaseException:
        # The program closed or replaced its stderr: as with Python itself, the text is lost.
        pass
