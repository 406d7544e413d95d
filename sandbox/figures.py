"""Figures as images, through matplotlib's own extension points: the canvas, the figure manager, `print_figure`.

A figure is sent when it is shown, when it is saved under a name, and at the end if it is still open and its
present state has not been sent. Nothing is written anywhere. A figure that would be too large is drawn with
fewer dots per inch from the start.
"""

import io
import math
import os
import re
import weakref

import matplotlib
from matplotlib import pyplot
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureCanvasBase, FigureManagerBase
from matplotlib.backends import backend_agg
from matplotlib.figure import Figure

from . import frames
from .report import formatted, print_to_stderr

IMAGES_MAX = 64
IMAGE_BYTES_MAX = 5 << 20
ALL_IMAGES_BYTES_MAX = 32 << 20
PIXELS_MAX = 16_000_000
SIDE_PIXELS_MAX = 16_000  # WebP ends at 16,383
TEXT_CHARACTERS_MAX = 1024
SMALLER_ATTEMPTS = 3
MEDIA_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
}
VECTOR_FORMATS = ("svg", "pdf")

plain_print_figure = FigureCanvasBase.print_figure
plain_draw = backend_agg.FigureCanvasAgg.draw


class Images:
    """Sends the images of one run, within its caps."""

    def __init__(self) -> None:
        self._count = 0
        self._bytes = 0

    def show(self, figure: Figure) -> None:
        """Sends a figure as a PNG of its own size, unless this state of it was sent."""
        if state_of(figure).sent:
            return
        self._draw(figure.canvas, "png", None, {"dpi": figure.dpi})

    def show_if_figure(self, value: object) -> bool:
        """Shows a figure; answers whether the value is one."""
        if not isinstance(value, Figure):
            return False
        self.show(value)
        return True

    def save(self, canvas: FigureCanvasBase, name: str, kind: str, options: dict) -> None:
        """Sends a figure as the file that the program asked for, once for each name and state."""
        if (name, kind) not in state_of(canvas.figure).saved:
            self._draw(canvas, kind, name, options)
            state_of(canvas.figure).saved.add((name, kind))

    def picture(self, kind: str, data: bytes) -> None:
        """Sends a picture that is no figure."""
        self._send(kind, data, *vector_size(data), None, None)

    def show_open_figures(self) -> None:
        """Sends what is still open. A figure that cannot be drawn is the program's, and said on stderr."""
        for manager in Gcf.get_all_fig_managers():
            try:
                self.show(manager.canvas.figure)
            except BaseException as exception:
                print_to_stderr(formatted(exception))

    def _draw(self, canvas: FigureCanvasBase, kind: str, name: str | None, options: dict) -> None:
        if self._full():
            frames.send_images_cut()
            return
        figure = canvas.figure
        inches = figure.get_size_inches()
        dpi = fitting_dpi(inches, resolution(figure, options.get("dpi")), kind)
        data = drawn(canvas, kind, {**options, "dpi": dpi})
        for _ in range(SMALLER_ATTEMPTS):
            if len(data) <= IMAGE_BYTES_MAX:
                break
            frames.send_images_cut()
            if kind in VECTOR_FORMATS:
                # Fewer dots make no vector graphic smaller: its picture is better than nothing.
                kind, dpi = "png", fitting_dpi(inches, figure.dpi, "png")
            else:
                dpi *= 0.9 * math.sqrt(IMAGE_BYTES_MAX / len(data))
            data = drawn(canvas, kind, {**options, "dpi": dpi})
        self._send(kind, data, *vector_size(data), name, title_of(figure))
        state_of(figure).sent = True

    def _send(
        self, kind: str, data: bytes, width: int | None, height: int | None, name: str | None, title: str | None
    ) -> None:
        if self._full() or len(data) > IMAGE_BYTES_MAX or self._bytes + len(data) > ALL_IMAGES_BYTES_MAX:
            frames.send_images_cut()
            return
        self._count += 1
        self._bytes += len(data)
        description = {
            "format": "jpg" if kind == "jpeg" else kind,
            "width": width,
            "height": height,
            "name": name,
            "title": title,
        }
        frames.send_image(description, data)

    def _full(self) -> bool:
        return self._count >= IMAGES_MAX or self._bytes >= ALL_IMAGES_BYTES_MAX


class State:
    """What has been sent of a figure as it is now. A change of the figure begins a new one."""

    def __init__(self) -> None:
        self.sent = False
        self.saved: set[tuple[str, str]] = set()


# Beside the figures and not in them: a program may pickle or copy its figures.
states: "weakref.WeakKeyDictionary[Figure, State]" = weakref.WeakKeyDictionary()


def state_of(figure: Figure) -> State:
    return states.setdefault(figure, State())


def drawn(canvas: FigureCanvasBase, kind: str, options: dict) -> bytes:
    """The bytes of the figure's file. Drawing changes properties back and forth; the state stays."""
    state = state_of(canvas.figure)
    buffer = io.BytesIO()
    try:
        plain_print_figure(canvas, buffer, format=kind, **options)
    finally:
        states[canvas.figure] = state
    return buffer.getvalue()


def resolution(figure: Figure, dpi: object) -> float:
    """Dots per inch as `print_figure` reads its argument."""
    if dpi is None:
        dpi = matplotlib.rcParams["savefig.dpi"]
    return float(getattr(figure, "_original_dpi", figure.dpi) if dpi == "figure" else dpi)


def fitting_dpi(inches: tuple[float, float], dpi: float, kind: str) -> float:
    """`dpi`, or the largest that keeps the picture within the caps."""
    width, height = inches
    if kind in VECTOR_FORMATS or not (width > 0 and height > 0 and dpi > 0):
        return dpi
    largest = min(math.sqrt(PIXELS_MAX / (width * height)), SIDE_PIXELS_MAX / max(width, height))
    if dpi <= largest:
        return dpi
    frames.send_images_cut()
    return largest


def vector_size(data: bytes) -> tuple[int | None, int | None]:
    """Width and height of an SVG or PDF in points, as its head says. What has pixels says so itself."""
    number = rb"([0-9.]+)"
    tag = re.search(rb"<svg[^>]*", data[:4096])
    sides = tag and [re.search(rb' %b="%b' % (side, number), tag[0]) for side in (b"width", b"height")]
    if sides and all(sides):
        return round(float(sides[0][1])), round(float(sides[1][1]))
    box = re.search(rb"/MediaBox \[ 0 0 %b %b \]" % (number, number), data) if data.startswith(b"%PDF-") else None
    return (round(float(box[1])), round(float(box[2]))) if box else (None, None)


def title_of(figure: Figure) -> str | None:
    """The figure's title: of all, else of its first axes that has one."""
    texts = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
    return next((text[:TEXT_CHARACTERS_MAX] for text in texts if text), None)


def install(images: Images) -> None:
    """Puts the hooks in place, once, in the zygote."""

    class FigureManager(FigureManagerBase):
        def show(self):
            images.show(self.canvas.figure)

        @classmethod
        def pyplot_show(cls, *, block=None):
            for manager in Gcf.get_all_fig_managers():
                images.show(manager.canvas.figure)
            # `block=False` is how an animation shows a frame and goes on with the same figure.
            if block is not False:
                Gcf.destroy_all()

    def print_figure(
        self, filename, dpi=None, facecolor=None, edgecolor=None, orientation="portrait", format=None, **options
    ):
        given = {"dpi": dpi, "facecolor": facecolor, "edgecolor": edgecolor, "orientation": orientation, **options}
        if not isinstance(filename, (str, os.PathLike)):
            return plain_print_figure(self, filename, format=format, **given)
        name = os.fspath(filename)
        kind = (format or os.path.splitext(name)[1][1:] or self.get_default_filetype()).lower()
        if kind not in MEDIA_TYPES:
            if kind in self.get_supported_filetypes():
                raise ValueError(f"Figures come back as png, svg, pdf, jpg or webp, not as {kind}")
            return plain_print_figure(self, io.BytesIO(), format=kind, **given)
        images.save(self, name[:TEXT_CHARACTERS_MAX], kind, given)

    def draw(self):
        state = state_of(self.figure)
        plain_draw(self)
        states[self.figure] = state

    def set_stale(self, value):
        plain_stale.__set__(self, value)
        if value:
            states.pop(self, None)

    plain_stale = Figure.stale
    Figure.stale = property(plain_stale.fget, set_stale)
    FigureCanvasBase.print_figure = print_figure
    backend_agg.FigureCanvasAgg.draw = draw
    backend_agg.FigureCanvasAgg.manager_class = FigureManager
    pyplot.switch_backend("agg")
    # There is no screen to switch to; scripts that ask for one draw here all the same.
    pyplot.switch_backend = lambda newbackend: None
    matplotlib.use = lambda backend, *, force=True: None

