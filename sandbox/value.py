"""The value of the last expression, as a notebook shows it: text, HTML, JSON; pictures go to the images.

Everything here looks at objects of the program's, whose methods may raise, recurse or answer nonsense: what
fails is left out or said in the text, and never ends the run.
"""

import typing

from . import frames
from .jsonable import NotJsonable, TooLarge, to_json

if typing.TYPE_CHECKING:
    from .figures import Images

TEXT_BYTES_MAX = 64 << 10
HTML_BYTES_MAX = JSON_BYTES_MAX = 1 << 20
PICTURES = {"_repr_png_": "png", "_repr_jpeg_": "jpg", "_repr_svg_": "svg"}
CUT_MARK = "…"


def send_value(value: object, images: "Images") -> None:
    """Reports the value of the last expression; None is no value."""
    if value is None:
        return
    show_pictures(value, images)
    text, text_cut = cut_text(markdown_of(value) or repr_of(value), TEXT_BYTES_MAX)
    html, html_cut = html_of(value)
    try:
        json_text, json_cut = to_json(value, JSON_BYTES_MAX), False
    except NotJsonable:
        json_text, json_cut = "null", False
    except TooLarge:
        json_text, json_cut = "null", True
    head = {"type": class_name(type(value)), "html": html is not None, "cut": text_cut or html_cut or json_cut}
    frames.send_value(head, text.encode(), (html or "").encode(), json_text.encode())


def display(*objects: object, images: "Images") -> None:
    """What notebooks have as `display`: pictures become images, everything else is printed."""
    for each in objects:
        if not show_pictures(each, images):
            print(repr_of(each))


def show_pictures(value: object, images: "Images") -> bool:
    """Sends what a value looks like, when it is a picture. Answers whether it is one."""
    if images.show_if_figure(value):
        return True
    for method, kind in PICTURES.items():
        picture = call(value, method)
        if isinstance(picture, tuple):  # data and metadata
            picture = picture[0]
        if isinstance(picture, str):
            picture = picture.encode(errors="replace")
        if isinstance(picture, bytes) and picture:
            images.picture(kind, picture)
            return True
    return False


def html_of(value: object) -> tuple[str | None, bool]:
    """`_repr_html_`, or None; and whether it was too large."""
    html = call(value, "_repr_html_")
    if not isinstance(html, str):
        return None, False
    html = well_formed(html)
    return (None, True) if len(html.encode()) > HTML_BYTES_MAX else (html, False)


def markdown_of(value: object) -> str | None:
    """`_repr_markdown_`, for a class that has no repr of its own."""
    if type(value).__repr__ is not object.__repr__:
        return None
    markdown = call(value, "_repr_markdown_")
    return markdown if isinstance(markdown, str) else None


def call(value: object, method: str) -> object:
    """The result of a representation method of the value's class, or None when there is none or it fails."""
    try:
        if isinstance(value, type) or getattr(type(value), method, None) is None:
            return None
        return getattr(value, method)()
    except BaseException:
        return None


def repr_of(value: object) -> str:
    try:
        return repr(value)
    except BaseException as error:
        return f"<{class_name(type(value))}: repr failed: {class_name(type(error))}>"


def cut_text(text: str, bytes_max: int) -> tuple[str, bool]:
    """At most `bytes_max` bytes of UTF-8, and whether that is less than all."""
    # No more than this many characters can fit; encoding a text of hundreds of megabytes would double it.
    encoded = well_formed(text[: bytes_max + 1]).encode()
    if len(encoded) <= bytes_max:
        return encoded.decode(), False
    mark = CUT_MARK.encode()
    return (encoded[: bytes_max - len(mark)]).decode(errors="ignore") + CUT_MARK, True


def well_formed(text: str) -> str:
    """Lone surrogates replaced: no JSON can hold them."""
    return text.encode(errors="replace").decode()


def class_name(kind: type) -> str:
    """The class's name, past a metaclass that would say otherwise."""
    return well_formed(frames.class_name_of(kind))

