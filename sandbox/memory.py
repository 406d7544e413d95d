"""The zygote's memory, laid out so that a fork of it is cheap.

A fork costs by what has an entry of its own in the kernel's tables: pages, which are copied one by one as soon as
either side writes to them, and mappings. So what lies still is moved into huge pages, which a fork shares by one entry
instead of 512; what is written is kept off them; and mappings that can be one are made one.
"""

import ctypes
import gc
import resource

from . import confine

MALLOPT_ARENA_MAX = -8
MADV_COLLAPSE = 25
PROT_READ, PROT_WRITE = 1, 2
PT_GNU_RELRO = 0x6474E552
PAGE_BYTES = 4096
HUGE_PAGE_BYTES = 2 << 20
# CPython takes small objects from arenas of 1 MiB; the libraries fill about this many.
ARENA_BYTES = 1 << 20
ARENAS = 40
ARENA_OBJECT_BYTES = 448
# CPython's small objects: multiples of 16 bytes up to this.
SMALL_BYTES_MAX = 512

LIBC = ctypes.CDLL(None)


def use_one_arena() -> None:
    """Keeps the C library from giving each thread an arena: the address space of a run is for the run's data."""
    LIBC.mallopt(MALLOPT_ARENA_MAX, 1)


def reserve_small_object_memory() -> list[bytes]:
    """Makes Python's small-object arenas adjacent, so that `settle` can move them into huge pages; made one by
    one while libraries load, they would lie scattered between them. What is answered keeps each arena alive.
    """
    objects = [None] * (ARENAS * ARENA_BYTES // ARENA_OBJECT_BYTES)  # a growing list would lie in between
    for index in range(len(objects)):
        objects[index] = bytes(ARENA_OBJECT_BYTES)
    return objects[:: ARENA_BYTES // ARENA_OBJECT_BYTES // 2]


def settle(kept_arenas: list[bytes]) -> None:
    """To be called once nothing more is loaded. Garbage is collected, and the rest put out of the collector's sight:
    a collection in a run would copy every page it marks."""
    gc.collect()
    gc.disable()
    collapse([*kept_arenas, *gc.get_objects()])
    join_relocated_data()
    gc.freeze()
    # At the end, since whatever is freed afterwards is a hole.
    fill_holes()


def fill_holes() -> None:
    """Takes all memory that has been freed and could be given out again, for good.

    What a run allocates would else land in those holes, a few bytes on each of many pages, all of which the fork
    shares and would copy; from here on it lands on fresh pages. No more memory can be had meanwhile, so both Python
    and the C library give out what they have.
    """
    limits = resource.getrlimit(resource.RLIMIT_AS)
    allocate = ctypes.PyDLL(None).PyObject_Malloc
    allocate.restype = ctypes.c_void_p
    resource.setrlimit(resource.RLIMIT_AS, (confine.address_space_bytes(), limits[1]))
    try:
        # The integers that addresses come as are of 32 bytes: when there is no more room for one, all is taken.
        for size in (*range(SMALL_BYTES_MAX, 32, -16), 16, 32):
            while allocate(size):
                pass
    except MemoryError:
        pass
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def collapse(objects: list[object]) -> None:
    """Moves the memory that objects lie in into huge pages. A region that is not all anonymous memory, or a kernel
    without the call, refuses: then it stays as it is."""
    for region in sorted({id(each) // HUGE_PAGE_BYTES for each in objects}):
        LIBC.madvise(ctypes.c_void_p(region * HUGE_PAGE_BYTES), ctypes.c_size_t(HUGE_PAGE_BYTES), MADV_COLLAPSE)


class ProgramHeader(ctypes.Structure):
    """Elf64_Phdr."""

    _fields_ = [
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("physical_address", ctypes.c_uint64),
        ("file_bytes", ctypes.c_uint64),
        ("memory_bytes", ctypes.c_uint64),
        ("alignment", ctypes.c_uint64),
    ]


class LoadedObject(ctypes.Structure):
    """The beginning of dl_phdr_info."""

    _fields_ = [
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.POINTER(ProgramHeader)),
        ("header_count", ctypes.c_uint16),
    ]


def join_relocated_data() -> None:
    """Makes the data of each loaded library one mapping: the linker has made the relocated part of it read-only, which
    splits it in two. That protects a program from its own bugs, and nobody from a program that may use ctypes."""
    relocated: list[tuple[int, int]] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(LoadedObject), ctypes.c_size_t, ctypes.c_void_p)
    def visit(loaded: "ctypes._Pointer", _size: int, _data: int) -> int:
        for header in loaded[0].headers[: loaded[0].header_count]:
            if header.type == PT_GNU_RELRO:
                start = loaded[0].base + header.address
                relocated.append((start & -PAGE_BYTES, start + header.memory_bytes & -PAGE_BYTES))
        return 0

    LIBC.dl_iterate_phdr(visit, None)
    for start, end in relocated:
        LIBC.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(end - start), PROT_READ | PROT_WRITE)
