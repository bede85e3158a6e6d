"""Whatever holds items, times and users, as the native module takes it: a list, or an array that is not copied."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from importlib.util import find_spec
from itertools import islice
from typing import Any, Literal

from ._errors import IngestError, InputError, ParameterError
from ._words import millis

TimeUnit = Literal["s", "ms", "us", "ns"]
OnError = Literal["stop", "skip"]
# Floats of so many per second become milliseconds.
FACTORS: dict[str, float] = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
# A millisecond has so many of them.
PARTS = {"ms": 1, "us": 10**3, "ns": 10**6}
# Generators are taken in pieces of so many items.
AT_ONCE = 1 << 16
NAT = -(2**63)


def skips(on_error: OnError) -> bool:
    if on_error not in ("stop", "skip"):
        raise ParameterError(f'on_error must be "stop" or "skip", got {on_error!r}')
    return on_error == "skip"


def is_table(items: Any) -> bool:
    """Whether there are columns, of which one has the items."""
    is_arrow = hasattr(items, "__arrow_c_stream__") or hasattr(items, "__arrow_c_array__")
    return is_arrow and (hasattr(items, "schema") or hasattr(items, "columns"))


def columns_of(items: Any, times: Any, users: Any, column: str | None) -> tuple[Any, Any, Any]:
    """Items, times and users; of a table by the names of its columns."""
    if column is None and not isinstance(times, str) and not isinstance(users, str):
        return items, times, users
    if column is None or not hasattr(items, "__getitem__") or not hasattr(items, "columns"):
        raise InputError("names of columns go with a table of pandas, polars or pyarrow, and column= names the items")

    def named(name: Any) -> Any:
        try:
            return items[name] if isinstance(name, str) else name
        except (KeyError, ValueError) as error:
            raise InputError(f"there is no column {name!r} in the table") from error
        except Exception as error:
            if type(error).__name__ == "ColumnNotFoundError":
                raise InputError(f"there is no column {name!r} in the table") from error
            raise

    return named(column), named(times), named(users)


def check_table(items: Any) -> None:
    if not (hasattr(items, "__arrow_c_stream__") or hasattr(items, "__arrow_c_array__")):
        raise InputError(f"names of columns go with a table of Arrow, polars or pandas, got a {type(items).__name__}")


def is_at_hand(items: Any) -> bool:
    """Whether all items are there at once; else they are generated."""
    return hasattr(items, "__len__") or hasattr(items, "__arrow_c_stream__") or hasattr(items, "__arrow_c_array__")


def column(items: Any) -> Any:
    """Items or users that are all there."""
    if isinstance(items, str | bytes | bytearray):
        raise InputError(f"one {type(items).__name__} is not a list of items; a list of one item is [item]")
    if isinstance(items, dict):
        raise InputError("a dict has no order of arrival; pass a list of items")
    if _is_of(items, "pandas"):
        return _pandas(items)
    if _is_of(items, "numpy"):
        return _numpy(items)
    if isinstance(items, list) or hasattr(items, "__arrow_c_stream__") or hasattr(items, "__arrow_c_array__"):
        return items
    if isinstance(items, array | memoryview):
        return items
    if isinstance(items, Iterable):
        return list(items)
    raise InputError(
        f"cannot count a {type(items).__name__}: pass a list, an array of numpy or pyarrow, a Series of pandas or polars, or a "
        "generator"
    )


def text_or_bytes(items: Any) -> Literal["text", "bytes"]:
    """What items come back as: bytes where they were given as bytes."""
    if isinstance(items, list):
        first = next((item for item in items if item is not None), None)
        return "bytes" if isinstance(first, bytes) else "text"
    if isinstance(items, tuple):
        return "bytes" if str(getattr(items[0], "dtype", "")) == "uint8" else "text"
    return "bytes" if "binary" in str(getattr(items, "type", getattr(items, "dtype", ""))).lower() else "text"


def pieces(*columns: Iterable[Any] | None) -> Iterator[tuple[list[Any] | None, ...]]:
    """Generated items, with their times and users, as lists of bounded length."""
    sources = [None if column is None else iter(column) for column in columns]
    while True:
        parts = tuple(None if source is None else list(islice(source, AT_ONCE)) for source in sources)
        if not any(parts):
            return
        yield parts


def times(given: Any, unit: TimeUnit | None, count: int | None = None) -> tuple[Any, TimeUnit | None]:
    """Times, and the unit of those that are numbers. One time stands for all items of a call."""
    if isinstance(given, datetime | int | float) and count is not None:
        given = [given] * count
    if _is_of(given, "pandas"):
        given = _pandas_times(given)
    if _is_of(given, "numpy"):
        return _numpy_times(given, unit)
    if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        return given, unit
    if isinstance(given, array):
        given = given.tolist()
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(f"times must be a list or an array of times, got a {type(given).__name__}")
    return array("q", _listed_times(list(given), unit)), "ms"


def _listed_times(given: list[Any], unit: TimeUnit | None) -> Iterator[int]:
    for row, value in enumerate(given):
        if isinstance(value, datetime):
            yield _not_missing(value, row)
        elif isinstance(value, date):
            yield millis(datetime.combine(value, time()))
        elif isinstance(value, int) and not isinstance(value, bool):
            yield value * 1000 if _known(unit) == "s" else value // PARTS[_known(unit)]
        elif isinstance(value, float):
            yield int(value * FACTORS[_known(unit)]) if value == value else _missing(row)
        elif value is None:
            _missing(row)
        else:
            raise InputError(f"the time of row {row} is of type {type(value).__name__}, where a datetime is wanted")


def _not_missing(value: datetime, row: int) -> int:
    # The missing time of pandas is a datetime that differs from itself.
    return millis(value) if value == value else _missing(row)


def _missing(row: int) -> int:
    raise IngestError(f"row {row} has no time; a window of time needs the time of each event; nothing was taken")


def _known(unit: TimeUnit | None) -> TimeUnit:
    if unit not in FACTORS:
        raise InputError(f'times that are numbers need time_unit="s", "ms", "us" or "ns", got {unit!r}')
    return unit


def _numpy_times(given: Any, unit: TimeUnit | None) -> tuple[Any, TimeUnit | None]:
    import numpy

    if given.ndim != 1:
        raise InputError(f"times must have one dimension, got {given.ndim}")
    if given.dtype.kind == "M":
        found = numpy.ascontiguousarray(given.astype("datetime64[ms]")).view("int64")
        if (found == NAT).any():
            _missing(int((found == NAT).argmax()))
        return found, "ms"
    if given.dtype.kind == "f":
        if numpy.isnan(given).any():
            _missing(int(numpy.isnan(given).argmax()))
        return (given * FACTORS[_known(unit)]).astype("int64"), "ms"
    if given.dtype.kind in "iu":
        return numpy.ascontiguousarray(given, "int64"), _known(unit)
    if given.dtype.kind == "O":
        return array("q", _listed_times(given.tolist(), unit)), "ms"
    raise InputError(f"times must be datetime64, got an array of {given.dtype}; text is read by pandas.to_datetime")


def _pandas_times(given: Any) -> Any:
    import pandas

    if given.dtype.kind in "iuf":
        return given.to_numpy()
    if isinstance(given.dtype, pandas.StringDtype) or given.dtype.kind in "SU":
        raise InputError("times must be datetimes, got text; read it with pandas.to_datetime")
    found = pandas.DatetimeIndex(given)
    return (found if found.tz is None else found.tz_convert(None)).to_numpy()


def _is_of(value: Any, library: str) -> bool:
    """Whether the type comes from a library, which need not be installed."""
    return library in sys.modules and any(base.__module__.split(".")[0] == library for base in type(value).__mro__)


def _numpy(items: Any) -> Any:
    import numpy

    if not isinstance(items, numpy.ndarray):
        raise InputError(f"one {type(items).__name__} is not a list of items; a list of one item is [item]")
    if items.ndim != 1:
        raise InputError(f"items must have one dimension, got {items.ndim}; use array.ravel()")
    if items.dtype.kind in "iu":
        return numpy.require(items, items.dtype.newbyteorder("="), ["C_CONTIGUOUS", "ALIGNED"])
    if items.dtype.kind in "SU":
        items = numpy.ascontiguousarray(items, items.dtype.newbyteorder("="))
        width = items.dtype.itemsize if items.dtype.kind == "S" else items.dtype.itemsize // 4
        letters = items.view("uint8" if items.dtype.kind == "S" else "uint32") if items.size and width else None
        return (letters, width, items.size)
    if items.dtype.kind in "OT":
        return items.tolist()
    advice = {
        "f": "; floats are not told apart reliably: round them to integers or turn them into text, and leave NaN out",
        "b": "; turn them into text",
        "M": "; pass times as times=..., or turn them into text to count them",
    }
    raise InputError(f"items must be integers, text or bytes, got {items.dtype}{advice.get(items.dtype.kind, '')}")


def _pandas(items: Any) -> Any:
    import numpy

    if not hasattr(items, "dtype"):
        raise InputError(f"a {type(items).__name__} of pandas has several columns; pass one: df[\"name\"]")
    if isinstance(items.dtype, numpy.dtype) and items.dtype.kind != "O":
        return _numpy(items.to_numpy())
    # All types but those of numpy know themselves as Arrow, where it is installed.
    if not isinstance(items.dtype, numpy.dtype) and hasattr(items, "__arrow_c_stream__") and find_spec("pyarrow"):
        return items
    missing = items.isna()
    listed = items.tolist()
    if not missing.any():
        return listed
    return [None if is_missing else item for item, is_missing in zip(listed, missing)]
