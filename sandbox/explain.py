"""Hints: how to live with a rule of the sandbox that a program has run into.

Only for what the sandbox is the cause of. An error that is the program's own gets none: each test below looks
at what the interpreter or the kernel put into the exception, and not at words that a program could have chosen.
"""

import difflib
import errno
import functools
import importlib.metadata
import socket
import sys
import traceback
import urllib.error

NETWORK = "There is no network here. Put the data into the request as stdin or inputs."
PIP = "Packages cannot be installed here: there is no network. {installed}"
FILES = (
    "No files can be {verb} here. Pass data as stdin or inputs (a dict), build files in memory (io.StringIO, io.BytesIO), "
    "and print results; savefig and plt.show return figures as images."
)
DATABASE = "No database file can be opened here: sqlite3.connect(':memory:') works."
TEMPORARY = "There is no place for temporary files here: use io.StringIO, io.BytesIO or tempfile.SpooledTemporaryFile."
PROCESSES = "No other process or shell can be started here: use threads (64 at most), asyncio or numpy in this one."
SIGNALS = "Signals cannot be sent to other processes here; signal.raise_signal reaches this one."
THREADS = "A run may have 64 threads at most: use a pool, such as concurrent.futures.ThreadPoolExecutor(8)."
STDIN = "stdin has ended: put what input() should read into the request's stdin, a line for each call."
MAGIC = "Notebook commands (%, !) do not exist in a script: write plain Python."
MEMORY = "The program needed more than its memory_mb: use smaller pieces or data types, or ask for more where the limits allow it."
RECURSION = "Python stops at {limit} nested calls: use a loop, or raise the limit with sys.setrecursionlimit."
SCREEN = "There is no screen here: draw with matplotlib, whose figures come back as images."
WITHOUT_NETWORK = frozenset({"requests", "httpx", "aiohttp", "urllib3", "httplib2", "websockets", "boto3", "paramiko", "yfinance", "openai"})
SCREEN_MODULES = frozenset({"tkinter", "_tkinter", "turtle", "pygame", "PyQt5", "PyQt6", "PySide2", "PySide6", "wx", "kivy", "cv2", "gi"})
PROCESS_FILES = ("/subprocess.py", "/multiprocessing/", "/concurrent/futures/process.py", "/pty.py")
REFUSED = (errno.EPERM, errno.EACCES, errno.EROFS)


def hint_for(exception: BaseException) -> str | None:
    """The hint for an uncaught exception, or None."""
    try:
        for each in causes(exception):
            hint = _hint(each)
            if hint is not None:
                return hint
    except Exception:
        # Attributes of an exception of the program's own may do anything; then there is nothing to explain.
        pass
    return None


def causes(exception: BaseException):
    """The exception, then what it was raised from: libraries wrap what the kernel said."""
    seen: set[int] = set()
    current: BaseException | None = exception
    while current is not None and id(current) not in seen and len(seen) < 10:
        seen.add(id(current))
        yield current
        reason = getattr(current, "reason", None) if isinstance(current, urllib.error.URLError) else None
        current = reason if isinstance(reason, BaseException) else current.__cause__ or implicit_cause(current)


def implicit_cause(exception: BaseException) -> BaseException | None:
    return None if exception.__suppress_context__ else exception.__context__


def _hint(exception: BaseException) -> str | None:
    if isinstance(exception, MemoryError):
        return MEMORY
    if isinstance(exception, RecursionError):
        return RECURSION.format(limit=sys.getrecursionlimit()) if raised_by_interpreter(exception) else None
    if isinstance(exception, SyntaxError):
        return syntax_hint(exception)
    if isinstance(exception, ModuleNotFoundError):
        return module_hint(exception)
    if isinstance(exception, ImportError):
        # What the dynamic linker says when a library does not fit into the address space that is left.
        return MEMORY if exception.path and "failed to map segment" in exception.msg else None
    if isinstance(exception, EOFError):
        return STDIN if type(exception) is EOFError and exception.args == ("EOF when reading a line",) else None
    if isinstance(exception, RuntimeError):
        return THREADS if exception.args == ("can't start new thread",) else None
    if isinstance(exception, socket.gaierror):
        return NETWORK
    if isinstance(exception, OSError):
        return system_hint(exception)
    if type(exception).__module__ == "_tkinter":
        return SCREEN
    if type(exception).__module__ == "sqlite3" and exception.args == ("unable to open database file",):
        return DATABASE
    return None


def system_hint(exception: OSError) -> str | None:
    """For what a system call answered; one that the program made itself has no errno, or a frame of its own only."""
    if exception.errno is None:
        return None
    files = [frame.filename for frame in traceback.extract_tb(exception.__traceback__)]
    if any(part in file for file in files for part in PROCESS_FILES):
        return PROCESSES
    if files and files[-1].endswith("/tempfile.py"):
        return TEMPORARY
    if exception.errno in REFUSED:
        if exception.filename is not None:
            name = exception.filename
            return FILES.format(verb="written") if isinstance(name, (str, bytes)) else None
        return refused_call_hint(exception, files)
    if exception.errno == errno.ENOENT and isinstance(exception.filename, str):
        return FILES.format(verb="read")
    return None


def refused_call_hint(exception: OSError, files: list[str]) -> str | None:
    """Which call was refused, when it names no file: by what stands on the line that made it."""
    frames = traceback.extract_tb(exception.__traceback__)
    line = frames[-1].line or "" if frames else ""
    if any(file.endswith(("/socket.py", "/asyncio/base_events.py")) for file in files) or "socket" in line:
        return NETWORK
    if "kill" in line:
        return SIGNALS
    if any(word in line for word in ("fork", "exec", "spawn", "popen", "system")):
        return PROCESSES
    return None


def syntax_hint(exception: SyntaxError) -> str | None:
    text = (exception.text or "").lstrip() if exception.filename == "main.py" else ""
    return MAGIC if text.startswith(("%", "!", "?")) or text.rstrip().endswith("?") else None


def module_hint(exception: ModuleNotFoundError) -> str | None:
    """For an import of what is not installed; a submodule that does not exist is the program's own error."""
    if not exception.name:
        return None
    top = exception.name.split(".")[0]
    if top in SCREEN_MODULES:
        return SCREEN
    if top in ("pip", "ensurepip"):
        return PIP.format(installed=installed_text())
    if top in sys.modules:
        return None
    if top in WITHOUT_NETWORK:
        return f"{top} is not installed, and there is no network here. Put the data into the request as stdin or inputs."
    near = difflib.get_close_matches(top, [*importable_names(), *sys.stdlib_module_names], 1, 0.8)
    suggestion = f" Did you mean {near[0]}?" if near else ""
    return f"{top} is not installed, and cannot be here.{suggestion} {installed_text()}"


@functools.cache
def importable_names() -> list[str]:
    return sorted(name for name in importlib.metadata.packages_distributions() if not name.startswith("_"))


def installed_text() -> str:
    main = ["numpy", "pandas", "matplotlib", "scipy", "sklearn", "sympy", "seaborn", "statsmodels", "networkx", "PIL", "tabulate"]
    return f"Installed besides the standard library: {', '.join(main)}."


def raised_by_interpreter(exception: RecursionError) -> bool:
    return bool(exception.args) and str(exception.args[0]).startswith("maximum recursion depth exceeded")
