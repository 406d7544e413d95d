"""Values as JSON text, bounded: DataFrame, Series, arrays, dict, list, scalars.

NaN and infinities are null, integers beyond 2^53 strings, dates ISO 8601. The size is counted while the text
grows, so that ten million rows are refused as quickly as ten are written.
"""

import datetime
import decimal
import enum
import fractions
import json
import math
import sys
import uuid

DEPTH_MAX = 100
INTEGER_MAX = 1 << 53
AS_TEXT = (decimal.Decimal, fractions.Fraction, uuid.UUID, datetime.timedelta)


class NotJsonable(Exception):
    """A value of a kind that has no form in JSON."""


class TooLarge(Exception):
    """The text would be larger than allowed."""


def to_json(value: object, bytes_max: int) -> str:
    """The value as JSON text of at most `bytes_max` bytes. Raises NotJsonable or TooLarge."""
    writer = Writer(bytes_max)
    try:
        writer.write(value, 0)
    except (NotJsonable, TooLarge):
        raise
    except Exception as error:
        # A method of the program's own class raised.
        raise NotJsonable from error
    return "".join(writer.pieces)


class Writer:
    def __init__(self, bytes_max: int) -> None:
        self.pieces: list[str] = []
        self._left = bytes_max
        self._numpy = sys.modules["numpy"]
        self._pandas = sys.modules["pandas"]

    def write(self, value: object, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise NotJsonable
        scalar = self._scalar(value)
        if scalar is not None:
            self._put(scalar)
        elif isinstance(value, self._pandas.DataFrame):
            self._frame(value, depth)
        elif isinstance(value, self._pandas.Series):
            self._expect(len(value))
            fields = {"name": value.name, "index": labels(value.index), "data": cells(value)}
            self._fields(fields, depth)
        elif isinstance(value, self._pandas.Index):
            self._expect(len(value))
            self._list(labels(value), depth)
        elif isinstance(value, self._numpy.ndarray):
            self._expect(value.size)
            self.write(value.tolist(), depth)
        elif isinstance(value, dict):
            self._expect(len(value))
            self._fields({self._key(key): each for key, each in value.items()}, depth)
        elif isinstance(value, (list, tuple)):
            self._expect(len(value))
            self._list(value, depth)
        else:
            raise NotJsonable

    def _frame(self, frame: object, depth: int) -> None:
        rows, columns = frame.shape
        self._expect(rows * max(1, columns))
        by_column = [cells(frame.iloc[:, position]) for position in range(columns)]
        data = [list(row) for row in zip(*by_column)] if columns else [[] for _ in range(rows)]
        self._fields({"columns": labels(frame.columns), "index": labels(frame.index), "data": data}, depth)

    def _fields(self, fields: dict, depth: int) -> None:
        self._put("{")
        for number, (key, each) in enumerate(fields.items()):
            self._put((", " if number else "") + json.dumps(key) + ": ")
            self.write(each, depth + 1)
        self._put("}")

    def _list(self, values: list | tuple, depth: int) -> None:
        self._put("[")
        for number, each in enumerate(values):
            if number:
                self._put(", ")
            self.write(each, depth + 1)
        self._put("]")

    def _key(self, key: object) -> str:
        if isinstance(key, str):
            return key.encode(errors="replace").decode()
        scalar = self._scalar(key)
        if scalar is not None:
            return json.loads(scalar) if scalar.startswith('"') else scalar
        if isinstance(key, tuple):
            return str(key).encode(errors="replace").decode()
        raise NotJsonable

    def _scalar(self, value: object) -> str | None:
        """The JSON text of a value without parts; None when it has parts or no form."""
        if isinstance(value, self._numpy.generic):
            if isinstance(value, (self._numpy.datetime64, self._numpy.timedelta64)):
                value = self._pandas.Timestamp(value) if value.dtype.kind == "M" else self._pandas.Timedelta(value)
            else:
                value = value.item()
        if isinstance(value, enum.Enum):
            value = value.value
        if value is None or value is self._pandas.NA or value is self._pandas.NaT:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            number = int(value)
            return str(number) if -INTEGER_MAX <= number <= INTEGER_MAX else f'"{number}"'
        if isinstance(value, float):
            return repr(float(value)) if math.isfinite(value) else "null"
        if isinstance(value, str):
            if len(value) > self._left:
                raise TooLarge
            return json.dumps(value.encode(errors="replace").decode(), ensure_ascii=False)
        if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
            return json.dumps(value.isoformat())
        if isinstance(value, (*AS_TEXT, self._pandas.Period, self._pandas.Interval)):
            return json.dumps(str(value))
        return None

    def _expect(self, count: int) -> None:
        """Refuses early what cannot fit: an item and its comma take two bytes at least."""
        if count * 2 > self._left:
            raise TooLarge

    def _put(self, piece: str) -> None:
        self._left -= len(piece) if piece.isascii() else len(piece.encode())
        if self._left < 0:
            raise TooLarge
        self.pieces.append(piece)


def cells(series: object) -> list:
    """The cells of a pandas Series as Python objects; of sparse and categorical ones, the values."""
    return list(series.astype(object))


def labels(index: object) -> list:
    """The labels of a pandas Index; those of a MultiIndex are lists."""
    return [list(label) if isinstance(label, tuple) else label for label in index.tolist()]

