"""What the zygote does once so that no run has to: imports, fonts, what is loaded at a first use."""

import ctypes
import gc
import io
import os
import sys
import threading

from . import explain

CLOSURES = 256
THREAD_STACK_BYTES = 1 << 20


def import_libraries(matplotlib_folder: str) -> None:
    """Imports what programs use most, in one thread, and has each do a little of its work."""
    # A fork copies one thread alone, so native libraries may not start any.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["JOBLIB_MULTIPROCESSING"] = "0"
    # As with arenas: the address space of a run is for the run's data.
    threading.stack_size(THREAD_STACK_BYTES)

    _import_matplotlib(matplotlib_folder)
    import numpy.random  # noqa: F401
    import pandas

    # Its own OpenBLAS otherwise spins for ever when memory is refused while it loads.
    import scipy.linalg  # noqa: F401

    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    frame.groupby("b").sum().to_string()
    frame._repr_html_()
    frame.plot()
    sys.modules["matplotlib.pyplot"].close("all")
    explain.importable_names()
    _stock_closures()


def _stock_closures() -> None:
    """A ctypes callback needs memory that is both writable and executable, which no run can get any more. What is
    freed here stays with the allocator, and is the one such memory in a run."""
    closures = [ctypes.CFUNCTYPE(None)(lambda: None) for _ in range(CLOSURES)]
    del closures


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


def hide_own_modules() -> None:
    """Leaves the modules that a script would find: none of the sandbox's own."""
    for name in [name for name in sys.modules if name.split(".")[0] == "_codecell"]:
        del sys.modules[name]


def open_font_files() -> list[tuple[int, str, int]]:
    """Descriptor, path and offset of every file that warming left open. A fork would share their offset
    between runs, so each run opens its own under the same number."""
    return [
        (file.fileno(), file.name, file.tell())
        for file in gc.get_objects()
        if isinstance(file, io.FileIO) and not file.closed and file.fileno() > 2
    ]
