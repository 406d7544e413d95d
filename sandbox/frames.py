"""What a run reports to the service: length-prefixed frames on a descriptor of their own.

They are the program's own words: the service checks and bounds them, and decides nothing by them alone.
"""

import json
import struct
from os import write as _write

DESCRIPTOR = 3
HEADER = struct.Struct("<BI")  # kind, bytes of payload
READY = struct.Struct("<QQ")  # CPU time so far in us, peak memory so far in KB
VALUE = struct.Struct("<IIII")  # bytes of the description, of text, of HTML, of JSON, which follow in this order
IMAGE = struct.Struct("<I")  # bytes of the description, which precedes the picture

# Bound here, so that a program that replaces them does not change its report.
_encode = json.JSONEncoder(ensure_ascii=False).encode
class_name_of = type.__dict__["__name__"].__get__

KIND_READY, KIND_ERROR, KIND_VALUE, KIND_IMAGE, KIND_CUT = 1, 2, 3, 4, 5


def send_ready(cpu_microseconds: int, peak_memory_kb: int) -> None:
    _send(KIND_READY, READY.pack(cpu_microseconds, peak_memory_kb))


def send_error(report: dict) -> None:
    _send(KIND_ERROR, _encode(report).encode())


def send_bare_error(exception: BaseException) -> None:
    """The name alone, put together without anything that the program can have replaced."""
    name = class_name_of(type(exception)).encode("ascii", "ignore")
    letters = bytes([byte for byte in name if 48 <= byte <= 57 or 65 <= byte <= 90 or byte == 95 or 97 <= byte <= 122])
    _send(KIND_ERROR, b'{"type": "%b", "message": "", "line": null, "traceback": null, "hint": null}' % letters)


def send_value(head: dict, text: bytes, html: bytes, json_text: bytes) -> None:
    encoded = _encode(head).encode()
    _send(KIND_VALUE, VALUE.pack(len(encoded), len(text), len(html), len(json_text)) + encoded + text + html + json_text)


def send_image(description: dict, picture: bytes) -> None:
    text = _encode(description).encode()
    _send(KIND_IMAGE, IMAGE.pack(len(text)) + text + picture)


def send_images_cut() -> None:
    """A figure was made smaller or left out."""
    _send(KIND_CUT, b"images")


def _send(kind: int, payload: bytes) -> None:
    """A program that closed or filled the connection only loses its own report."""
    try:
        view = memoryview(HEADER.pack(kind, len(payload)) + payload)
        while view:
            view = view[_write(DESCRIPTOR, view) :]
    except OSError:
        pass
