"""Events as Arrow IPC streams, where pyarrow is installed and columns are of Arrow or hold bytes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from . import _inputs
from ._errors import InputError
from ._inputs import TimeUnit

if TYPE_CHECKING:
    import pyarrow

# So much is sent at a time; the service takes bodies of 16 MiB and a million events, if its operator allows no less.
EVENTS_AT_ONCE = 1 << 16
BYTES_AT_ONCE = 4 << 20
# A service takes items of 1024 bytes, if its operator allows no more; longer ones count nowhere. One that is longer than this is
# not sent but missing in its place: no event may have others refused for its size.
ITEM_LEN_MAX = 1 << 20


def is_arrow(values: Any) -> bool:
    """Whether pyarrow is there and understands these values without looking at each."""
    has_arrow = hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    return has_arrow and is_installed()


def is_installed() -> bool:
    """Whether Arrow can be written."""
    return find_spec("pyarrow") is not None


def bodies(columns: dict[str, Any], time_column: str | None) -> Iterator[bytes]:
    """Columns as streams."""
    import pyarrow

    arrays = {name: _millis(values) if name == time_column else _column(values) for name, values in columns.items()}
    table = pyarrow.table(arrays)
    for start in range(0, len(table), EVENTS_AT_ONCE):
        yield from _streams(table.slice(start, EVENTS_AT_ONCE))


def _column(values: Any) -> pyarrow.ChunkedArray:
    import pyarrow

    if isinstance(values, list):
        return pyarrow.chunked_array([pyarrow.array([_bytes(value) for value in values], pyarrow.binary())])
    return _chunked(values)


def _chunked(values: Any) -> pyarrow.ChunkedArray:
    import pyarrow

    if isinstance(values, pyarrow.ChunkedArray):
        return values
    is_stream = hasattr(values, "__arrow_c_stream__")
    return pyarrow.chunked_array(values) if is_stream else pyarrow.chunked_array([pyarrow.array(values)])


def _bytes(value: str | bytes | int | None) -> bytes | None:
    try:
        return str(value).encode() if isinstance(value, str | int) else value
    except UnicodeEncodeError:
        return None


def _millis(values: Any) -> pyarrow.ChunkedArray:
    import pyarrow

    if not isinstance(values, list):
        return values
    in_range = [None if value is None or not 0 <= value < 1 << 62 else value for value in values]
    return pyarrow.chunked_array([pyarrow.array(in_range, pyarrow.timestamp("ms"))])


def times(values: Any, unit: TimeUnit | None) -> pyarrow.ChunkedArray:
    """Times of Arrow, with the unit of those that are numbers."""
    import pyarrow

    array = _chunked(values)
    if pyarrow.types.is_timestamp(array.type):
        return array
    if pyarrow.types.is_date(array.type):
        return array.cast(pyarrow.timestamp("ms"))
    if pyarrow.types.is_integer(array.type):
        return array.cast(pyarrow.int64()).cast(pyarrow.timestamp(_inputs._known(unit)))
    raise InputError(f"times must be timestamps, got an array of {array.type}")


def _streams(table: pyarrow.Table) -> Iterator[bytes]:
    """The rows as Arrow IPC streams, in halves while they are too large."""
    import pyarrow

    small = pyarrow.table({name: _plain(table[name]) for name in table.column_names})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, small.schema) as writer:
        writer.write_table(small.combine_chunks())
    body = sink.getvalue().to_pybytes()
    if len(body) <= BYTES_AT_ONCE or len(table) < 2:
        yield body
        return
    half = len(table) // 2
    yield from _streams(table.slice(0, half))
    yield from _streams(table.slice(half))


def _plain(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Text and bytes of any layout in the one that the service takes without a copy; integers as they are."""
    import pyarrow

    is_dictionary = pyarrow.types.is_dictionary(column.type)
    kind = column.type.value_type if is_dictionary else column.type
    if "string" in str(kind) or "null" in str(kind):
        kind = pyarrow.string()
    elif "binary" in str(kind):
        kind = pyarrow.binary()
    if is_dictionary:
        column = pyarrow.chunked_array([part.dictionary.cast(kind).take(part.indices) for part in column.chunks], kind)
    return _without_long(column.cast(kind)) if kind in (pyarrow.string(), pyarrow.binary()) else column


def _without_long(texts: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow

    # Made when it is loaded, so that no checker of types knows what is in it.
    compute: Any = import_module("pyarrow.compute")
    if (compute.max(compute.binary_length(texts)).as_py() or 0) <= ITEM_LEN_MAX:
        return texts
    values = texts.cast(pyarrow.binary()).to_pylist()
    short = [None if value is None or ITEM_LEN_MAX < len(value) else value for value in values]
    return pyarrow.chunked_array([pyarrow.array(short, pyarrow.binary())])
