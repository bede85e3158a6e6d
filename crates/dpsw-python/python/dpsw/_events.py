"""Events on their way to the service: columns of whatever kind as bodies of bounded size."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time as clock
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from . import _arrow, _inputs
from ._arrow import BYTES_AT_ONCE, EVENTS_AT_ONCE, ITEM_LEN_MAX
from ._errors import InputError, ParameterError
from ._inputs import TimeUnit
from ._wire import Source
from ._words import millis

SENDER = re.compile("[A-Za-z0-9._-]{1,64}")
BATCH_ID = re.compile("([A-Za-z0-9._-]{1,64})/(0|[1-9][0-9]{0,18})")
TEXT = (str, bytes)
ITEM = (str, bytes, int, type(None))
TIME = (date, int, float, type(None))
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
# Milliseconds of so many units.
MILLIS = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}
# The unit of times that are numbers, and whether what is no item is missing.
How = tuple[TimeUnit | None, bool]


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of events that were sent: they are durable, and each counts once."""

    events: int
    """How many there were."""
    repeated: int
    """How many of them an earlier call with the same ``batch_id``, or a try whose reply was lost, had brought already."""
    batch_id: str
    """What the first batch is called, the next ones having the next numbers: sent again under this name, the same events count once."""


class Sender:
    """The name under which a client sends, and the number of its next batch."""

    __slots__ = ("_next", "_turn", "is_given", "name")

    def __init__(self, given: str | None) -> None:
        if given is not None and not (isinstance(given, str) and SENDER.fullmatch(given)):
            raise ParameterError(f"a sender has 1 to 64 letters, digits, -, _ and ., got {given!r}")
        self.is_given = given is not None
        # Nobody else has this one.
        self.name = given or f"py-{secrets.token_hex(8)}"
        # Numbers grow from one process to the next: nobody sends a million batches per second.
        self._next = clock.time_ns() // 1000 if self.is_given else 1
        self._turn = threading.RLock()

    @contextmanager
    def batches(self, given: str | None) -> Generator[Batches, None, None]:
        """The numbers of one call, which follow each other; calls that share a sender wait for one another."""
        name, first = (self.name, None) if given is None else _parsed(given)
        if name != self.name:
            yield Batches(name, first or 0)
            return
        with self._turn:
            batches = Batches(name, self._next if first is None else first)
            try:
                yield batches
            finally:
                # What was tried may have arrived: its number is never used for other events.
                self._next = max(self._next, batches.next)


class Batches:
    """Names for the batches of one call."""

    __slots__ = ("first", "next", "sender")

    def __init__(self, sender: str, first: int) -> None:
        self.sender = sender
        self.first = self.next = first

    def name(self) -> str:
        """The name of the next batch."""
        number, self.next = self.next, self.next + 1
        return f"{self.sender}/{number}"

    @property
    def batch_id(self) -> str:
        """The name of the first."""
        return f"{self.sender}/{self.first}"


def _parsed(given: str) -> tuple[str, int]:
    found = BATCH_ID.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise ParameterError(f'a batch_id is a sender and the number of its next batch, such as "web-1/42", got {given!r}')
    return found[1], int(found[2])


def bodies(source: Source, items: Any, times: Any, users: Any, how: How) -> Iterator[tuple[str, bytes]]:
    """What is sent, one body after the other, each with its content type."""
    if hasattr(items, "read_next_batch"):
        for batch in items:
            yield from bodies(source, batch, times, users, how)
        return
    columns = _columns(source, items, times, users)
    if all(_inputs.is_at_hand(column) for column in columns.values()):
        yield from _at_hand(source, columns, how)
        return
    # What is generated is generated once, and not all of it at a time.
    given = [column if isinstance(column, Iterable) else _inputs.column(column) for column in columns.values()]
    for parts in _inputs.pieces(*given):
        yield from _at_hand(source, dict(zip(columns, parts)), how)


def _columns(source: Source, items: Any, times: Any, users: Any) -> dict[str, Any]:
    """The columns of the source, as far as it has them, with their values."""
    table = _table(items)
    if table is None and len(source.columns) != 1:
        wanted = ", ".join(f"{name!r}: …" for name in source.columns)
        raise ParameterError(f"source {source.name!r} has several columns: pass a table, or {{{wanted}}}")
    found = dict.fromkeys(source.columns, items) if table is None else {name: _of(items, name) for name in source.columns}
    for word, name, values in (("times", source.time_column, times), ("users", source.user_column, users)):
        values = _beside(items, table or set(), name, values)
        if name is None and values is not None:
            raise ParameterError(f"source {source.name!r} takes no {word}: it was made without a {word[:-1]}_column")
        if name is not None and values is None:
            raise ParameterError(f"source {source.name!r} has a {word[:-1]}_column: say {word}= of the events")
        if name is not None:
            found[name] = _for_all(values, found) if word == "times" else values
    return found


def _table(items: Any) -> set[str] | None:
    """The names of the columns, if there are several."""
    if isinstance(items, Mapping):
        return set(items)
    if _inputs.is_table(items):
        return set(items.column_names if hasattr(items, "column_names") else items.columns)
    return set(items.columns) if hasattr(items, "columns") else None


def _of(table: Any, name: str) -> Any:
    try:
        return table[name]
    except Exception:  # Every library has an error of its own for this.
        raise ParameterError(f"there is no column {name!r} in what is sent; the source has it") from None


def _beside(items: Any, table: set[str], name: str | None, values: Any) -> Any:
    """Times or users that are there, or in the column of the table that has their name."""
    if isinstance(values, str):
        return _of(items, values)
    return items[name] if values is None and name in table else values


def _for_all(times: Any, columns: dict[str, Any]) -> Any:
    """One time stands for all events."""
    if not isinstance(times, datetime | int | float):
        return times
    first = next(iter(columns.values()))
    if not hasattr(first, "__len__"):
        raise InputError("one time cannot stand for all items of a generator; generate a time for each")
    return [times] * len(first)


def _at_hand(source: Source, columns: dict[str, Any], how: How) -> Iterator[tuple[str, bytes]]:
    """Looks at everything before anything is sent."""
    unit, skips = how
    ready = {
        name: _times(values, unit, skips) if name == source.time_column else _known(name, values, skips)
        for name, values in columns.items()
    }
    lens = {name: len(values) for name, values in ready.items()}
    if len(set(lens.values())) != 1:
        raise InputError(f"every event needs a value in every column, got {lens}")
    has_bytes = any(isinstance(value, bytes) for values in ready.values() if isinstance(values, list) for value in values)
    if any(_arrow.is_arrow(values) for values in ready.values()) or (has_bytes and _arrow.is_installed()):
        return ((ARROW, body) for body in _arrow.bodies(ready, source.time_column))
    written = {name: _written(name, values, source.time_column, skips) for name, values in ready.items()}
    return ((NDJSON, body) for body in _ndjson(written))


def _known(name: str, values: Any, skips: bool) -> Any:
    """Items or users that can be counted, as a list or of Arrow; in a list, what is too long is missing."""
    found = _inputs.column(values)
    if _arrow.is_arrow(found):
        return found
    listed = found if isinstance(found, list) else _listed(values)
    for row, value in enumerate(() if skips else listed):
        if not _is_item(value):
            wanted = 'where text, bytes or an integer is wanted; on_error="skip" lets it take its place and count nowhere'
            raise InputError(f"row {row} of {name!r} is of type {type(value).__name__}, {wanted}")
    return [value if _is_item(value) and not (isinstance(value, TEXT) and ITEM_LEN_MAX < len(value)) else None for value in listed]


def _is_item(value: Any) -> bool:
    return isinstance(value, ITEM) and not isinstance(value, bool)


def _listed(values: Any) -> list[Any]:
    for way in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, way):
            listed: list[Any] = getattr(values, way)()
            return listed
    return list(values)


def _times(given: Any, unit: TimeUnit | None, skips: bool) -> Any:
    """Milliseconds since 1970; ``None`` where there is no time, as one event has no say in whether others count."""
    if _inputs._is_of(given, "pandas"):
        given = _inputs._pandas_times(given)
    if _arrow.is_arrow(given):
        return _arrow.times(given, unit)
    if _inputs._is_of(given, "numpy") and given.dtype.kind == "M":
        given = given.astype("datetime64[us]")
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(f"times must be a list or an array of times, got a {type(given).__name__}")
    listed: list[Any] = list(getattr(given, "tolist", lambda: given)())
    for row, value in enumerate(() if skips else listed):
        if isinstance(value, bool) or (not isinstance(value, TIME) and value == value):
            raise InputError(f"the time of row {row} is of type {type(value).__name__}, where a datetime is wanted")
    return [_millis(value, unit) for value in listed]


def _millis(value: Any, unit: TimeUnit | None) -> int | None:
    # What is missing differs from itself in pandas and in floats.
    if value is None or value != value:
        return None
    if isinstance(value, datetime):
        return millis(value)
    if isinstance(value, date):
        return millis(datetime.combine(value, time()))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    factor, divisor = MILLIS[_inputs._known(unit)]
    return int(value * factor // divisor) if abs(value) < 1e300 else None


def _written(name: str, values: list[Any], time_column: str | None, skips: bool) -> list[str | int | None]:
    """Values as JSON can have them."""
    if name == time_column:
        return [_seconds(value) for value in values]
    return [_text(name, row, value, skips) if isinstance(value, bytes) else value for row, value in enumerate(values)]


def _seconds(time: int | None) -> str | None:
    # Small milliseconds without a point would be taken for seconds.
    return None if time is None or time < 0 else f"{time // 1000}.{time % 1000:03d}"


def _text(name: str, row: int, value: bytes, skips: bool) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        if skips:
            return None
        raise InputError(f"row {row} of {name!r} is no UTF-8: install pyarrow to send such bytes") from None


def _ndjson(columns: dict[str, list[Any]]) -> Iterator[bytes]:
    # Names have letters, digits and dots: nothing that a template or JSON would take for its own.
    template = "{" + ", ".join(f'"{name}": %s' for name in columns) + "}\n"
    lines, size = list[str](), 0
    for fields in zip(*(map(json.dumps, values) for values in columns.values())):
        lines.append(template % fields)
        size += len(lines[-1])
        if len(lines) == EVENTS_AT_ONCE or BYTES_AT_ONCE <= size:
            yield "".join(lines).encode()
            lines, size = [], 0
    if lines:
        yield "".join(lines).encode()
