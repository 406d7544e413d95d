"""What a run reports to the service: length-prefixed frames on a descriptor of their own.

They are the program's own words: the service checks and bounds them, and decides nothing by them alone.
"""

import json
import os
import struct

DESCRIPTOR = 3
HEADER = struct.Struct("<BI")  # kind, bytes of payload
READY = struct.Struct("<QQ")  # CPU time so far in us, peak memory so far in KB
IMAGE = struct.Struct("<I")  # bytes of the description, which precedes the picture

KIND_READY, KIND_ERROR, KIND_VALUE, KIND_IMAGE, KIND_CUT = 1, 2, 3, 4, 5


def send_ready(cpu_microseconds: int, peak_memory_kb: int) -> None:
    _send(KIND_READY, READY.pack(cpu_microseconds, peak_memory_kb))


def send_error(report: dict) -> None:
    _send(KIND_ERROR, json.dumps(report).encode())


def send_value(report: bytes) -> None:
    _send(KIND_VALUE, report)


def send_image(description: dict, picture: bytes) -> None:
    text = json.dumps(description).encode()
    _send(KIND_IMAGE, IMAGE.pack(len(text)) + text + picture)


def send_images_cut() -> None:
    """A figure was made smaller or left out."""
    _send(KIND_CUT, b"images")


def _send(kind: int, payload: bytes) -> None:
    """A program that closed or filled the connection only loses its own report."""
    try:
        view = memoryview(HEADER.pack(kind, len(payload)) + payload)
        while view:
            view = view[os.write(DESCRIPTOR, view) :]
    except OSError:
        pass
