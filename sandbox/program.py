"""The caller's program as a script: run as `__main__`, ended as Python ends a script."""

import asyncio
import atexit
import builtins
import gc
import inspect
import json
import sys
import threading
import types
import typing
from collections.abc import Awaitable, Callable

from .report import formatted, print_to_stderr, report_exception
from .source import FILE_NAME, compiled, remember_lines
from .value import send_value

if typing.TYPE_CHECKING:
    from .figures import Images

EXIT_STREAM_LOST = 120


class Program:
    """One program: `code` is UTF-8, `inputs` a JSON text; `open_headroom` gives memory for a last report."""

    def __init__(
        self, code: bytes, inputs: bytes, images: "Images", open_headroom: Callable[[], None]
    ) -> None:
        self._images = images
        self._open_headroom = open_headroom
        self._source = code.decode().removeprefix("\ufeff")
        self._inputs = inputs
        self._module = types.ModuleType("__main__")
        self.uncaught: BaseException | None = None

    def run(self) -> int:
        """Runs it to its end, reports an uncaught exception, answers the exit code."""
        exit_code = 0
        try:
            send_value(self.execute(), self._images)
        except BaseException as exception:
            self.uncaught = exception
            self._open_headroom()
            exit_code = report_exception(exception)
        self._open_headroom()
        return self._end(exit_code)

    def execute(self) -> object:
        """Runs it, up to its last statement. Answers the value of its last expression; raises what it raises."""
        names = self._install_main_module()
        body, last_expression = compiled(self._source)
        result = eval(body, names)
        if inspect.iscoroutine(result):
            return asyncio.run(finish_in_loop(result, last_expression, names))
        value = None if last_expression is None else eval(last_expression, names)
        return asyncio.run(awaited(value)) if inspect.isawaitable(value) else value

    def _install_main_module(self) -> dict:
        """`__main__` and `linecache` hold the caller's program: pickle, unittest and inspect look there."""
        names = self._module.__dict__
        names.update(
            __annotations__={},
            __builtins__=builtins,
            __cached__=None,
            __file__=FILE_NAME,
            inputs=parse_inputs(self._inputs),
        )
        sys.modules["__main__"] = self._module
        sys.argv = [FILE_NAME]
        sys.orig_argv = ["python", FILE_NAME]
        remember_lines(self._source)
        return names

    def _end(self, exit_code: int) -> int:
        """Waits for threads, sends the figures that are still open, runs atexit, lets go of the program's
        objects, flushes. What goes wrong here does not change the exit code, but for output that was lost."""
        steps = (
            threading._shutdown,
            self._images.show_open_figures,
            atexit._run_exitfuncs,
            self._clear_main_module,
        )
        for step in steps:
            try:
                step()
            except BaseException as exception:
                print_to_stderr(formatted(exception))
        for name in ("__stdout__", "__stderr__", "stderr", "stdout"):
            stream = getattr(sys, name, None)
            try:
                if stream is not None and not getattr(stream, "closed", False):
                    stream.flush()
            except BaseException:
                if name == "stdout" and exit_code == 0:
                    exit_code = EXIT_STREAM_LOST
        return exit_code

    def _clear_main_module(self) -> None:
        """As the interpreter does at its end, so that finalizers run, files of the program's own are flushed and
        generators closed; but not under the feet of daemon threads, which a real end would stop."""
        self.uncaught = None
        if threading.active_count() > 1:
            return
        names = self._module.__dict__
        for underscored in (True, False):
            for name in list(names):
                if name.startswith("_") == underscored and name != "__builtins__":
                    names[name] = None
        gc.collect()


async def finish_in_loop(body: Awaitable, last_expression: types.CodeType | None, names: dict) -> object:
    """For a body that awaits: one event loop for all of it."""
    await body
    value = None if last_expression is None else eval(last_expression, names)
    return await value if inspect.isawaitable(value) else value


async def awaited(value: Awaitable) -> object:
    return await value


def parse_inputs(text: bytes) -> dict:
    """The JSON text as Python reads it, integers of any length included."""
    digits_max = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.loads(text)
    finally:
        sys.set_int_max_str_digits(digits_max)
