"""What the zygote does once so that no run has to: imports, fonts, a quiet and compact memory."""

import ctypes
import gc
import io
import os
import sys
import threading

from . import explain

MALLOPT_ARENA_MAX = -8
MADV_COLLAPSE = 25
HUGE_PAGE_BYTES = 2 << 20
# CPython takes small objects from arenas of 1 MiB; the libraries fill about this many.
ARENA_BYTES = 1 << 20
ARENAS = 40
ARENA_OBJECT_BYTES = 448
CLOSURES = 256
THREAD_STACK_BYTES = 1 << 20


def reserve_small_object_memory() -> list[bytes]:
    """Makes Python's small-object arenas adjacent, so that `settle` can move them into huge pages; made one by
    one while libraries load, they would lie scattered between them. What is answered keeps each arena alive.
    """
    objects = [None] * (ARENAS * ARENA_BYTES // ARENA_OBJECT_BYTES)  # a growing list would lie in between
    for index in range(len(objects)):
        objects[index] = bytes(ARENA_OBJECT_BYTES)
    return objects[:: ARENA_BYTES // ARENA_OBJECT_BYTES // 2]


def import_libraries(matplotlib_folder: str) -> None:
    """Imports what programs use most, in one thread, and has each do a little of its work."""
    # A fork copies one thread alone, so native libraries may not start any.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["JOBLIB_MULTIPROCESSING"] = "0"
    # One arena and small thread stacks: the address space of a run is for the run's data.
    ctypes.CDLL(None).mallopt(MALLOPT_ARENA_MAX, 1)
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


def settle(kept_arenas: list[bytes]) -> None:
    """Leaves a memory that forks cheaply, and the modules of a script: none of the sandbox's own.

    Garbage is collected, the rest is put out of the collector's sight (a collection in a run would copy every
    page it marks) and moved into huge pages, which a fork shares by one entry instead of 512.
    """
    for name in [name for name in sys.modules if name.split(".")[0] == "_codecell"]:
        del sys.modules[name]
    gc.collect()
    gc.disable()
    libc = ctypes.CDLL(None)
    for region in sorted({id(each) // HUGE_PAGE_BYTES for each in [*kept_arenas, *gc.get_objects()]}):
        # A region that is not all anonymous memory, or a kernel without the call, refuses: then it stays as it is.
        libc.madvise(ctypes.c_void_p(region * HUGE_PAGE_BYTES), ctypes.c_size_t(HUGE_PAGE_BYTES), MADV_COLLAPSE)
    gc.freeze()


def open_font_files() -> list[tuple[int, str, int]]:
    """Descriptor, path and offset of every file that warming left open. A fork would share their offset
    between runs, so each run opens its own under the same number."""
    return [
        (file.fileno(), file.name, file.tell())
        for file in gc.get_objects()
        if isinstance(file, io.FileIO) and not file.closed and file.fileno() > 2
    ]
