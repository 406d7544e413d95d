"""What the zygote does once so that no run has to: imports, fonts, a quiet and compact memory."""

import ctypes
import gc
import io
import os
import sys
import threading

MALLOPT_ARENA_MAX = -8
THREAD_STACK_BYTES = 1 << 20


def single_threaded_libraries() -> None:
    """Keeps native libraries from starting threads of their own: a fork copies one thread alone."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["JOBLIB_MULTIPROCESSING"] = "0"


def import_libraries(matplotlib_folder: str) -> None:
    """Imports what programs use most, without the hooks that would run at each fork (they copy 300 pages
    of memory each time); `RunProcess` does by name what is needed of them."""
    libc = ctypes.CDLL(None)
    # One arena and small thread stacks: the address space of a run is for the run's data.
    libc.mallopt(MALLOPT_ARENA_MAX, 1)
    threading.stack_size(THREAD_STACK_BYTES)

    register_at_fork = os.register_at_fork
    os.register_at_fork = lambda **_: None
    try:
        _import_matplotlib(matplotlib_folder)
        import asyncio  # noqa: F401
        import faulthandler  # noqa: F401
        import inspect  # noqa: F401
        import linecache  # noqa: F401
        import random  # noqa: F401
        import traceback  # noqa: F401

        import numpy  # noqa: F401
        import numpy.random  # noqa: F401
        import pandas

        # Its own OpenBLAS otherwise spins for ever when memory is refused while it loads.
        import scipy.linalg  # noqa: F401

        pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}).groupby("b").sum().to_string()
    finally:
        os.register_at_fork = register_at_fork


def _import_matplotlib(folder: str) -> None:
    """Matplotlib wants a writable folder for its settings; it gets the prepared read-only one instead."""
    import importlib.util

    package = os.path.dirname(importlib.util.find_spec("matplotlib").origin)
    os.environ["MATPLOTLIBRC"] = os.path.join(package, "mpl-data", "matplotlibrc")
    import matplotlib

    del os.environ["MATPLOTLIBRC"]
    matplotlib.get_configdir = lambda: folder
    matplotlib.get_cachedir = lambda: folder
    matplotlib.use("agg")
    from matplotlib import pyplot

    figure = pyplot.figure()
    pyplot.plot([1, 2], label="a")
    pyplot.title("$x^2$")
    pyplot.legend()
    figure.savefig(io.BytesIO(), format="png")
    pyplot.close("all")


def settle() -> None:
    """Leaves a heap that forks cheaply: garbage gone, the rest out of the collector's sight and in huge pages."""
    gc.collect()
    gc.disable()
    gc.freeze()


def open_font_files() -> list[tuple[int, str, int]]:
    """Descriptor, path and offset of every file that warming left open. A fork would share their offset
    between runs, so each run opens its own under the same number."""
    return [
        (file.fileno(), file.name, file.tell())
        for file in gc.get_objects()
        if isinstance(file, io.FileIO) and not file.closed and file.fileno() > 2
    ]
