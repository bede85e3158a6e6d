"""Answers: small objects that print well, in a terminal and in a notebook, and become tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _html, _plot, _tables
from ._words import Item, counted, grouped, moment, name, percent

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

Direction = Literal["rising", "steady", "falling"]

# In the order of the fields: as the native module hands them over.
NativeRow = tuple[Item, float, float, float, tuple[float, float], bool, Direction | None]
NativeCount = tuple[
    float, float, float, tuple[float, float], tuple[float, float, float] | None, tuple[int, int], tuple[int, int]
]


@dataclass(frozen=True, slots=True)
class Span:
    """From ``start`` up to ``end``, exclusive: positions of items counted from 0, or times in UTC."""

    start: int | datetime
    end: int | datetime

    def __str__(self) -> str:
        if isinstance(self.start, datetime) or isinstance(self.end, datetime):
            return f"{self.start:%Y-%m-%d %H:%M:%S} to {self.end:%Y-%m-%d %H:%M:%S} UTC"
        return f"{self.start:,} to {self.end:,}"

    @property
    def is_empty(self) -> bool:
        """Whether nothing lies in it."""
        return self.start == self.end

    @classmethod
    def of(cls, ends: tuple[int, int], is_time: bool) -> Span:
        """Of positions, or of milliseconds since 1970."""
        start, end = ends
        return cls(moment(start), moment(end)) if is_time else cls(start, end)


@dataclass(frozen=True, slots=True)
class About:
    """What an answer is about and what is promised."""

    window: Span
    """What was asked about."""
    covered: Span
    """What sealed counters cover of it; the rest is predicted."""
    unit: str
    """What is protected: ``"replace-one"``, ``"add-remove"`` or ``"users"``."""
    epsilon: float | None
    """Of everything that the stream ever releases; ``None`` if nothing is promised."""
    delta: float | None
    """Of the same."""
    total: int | None
    """How many items of the window count; ``None`` where that is private, nothing or noise."""

    @property
    def promise(self) -> str:
        """The promise in a few words."""
        if self.epsilon is None:
            return "nothing is promised"
        whom = {"users": "all that a user sends in a window", "add-remove": "the presence of each event"}
        delta = f", delta {self.delta:.1g}" if self.delta else ""
        return f"epsilon {self.epsilon:g}{delta} for {whom.get(self.unit, 'each event')}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """How often an item occurred in a window.

    >>> import dpsw
    >>> sketch = dpsw.Sketch(window=1000, epsilon=1e6, keys=["a", "b"])
    >>> _ = sketch.extend(["a", "b", "a", "a"] * 500)
    >>> sketch.finish().frequency("a").value
    750.0
    """

    value: float
    """The estimated count; noise can make it negative."""
    lower: float
    """The true count lies between this and ``upper`` with the confidence that was asked for, 95 % by default."""
    upper: float
    """See ``lower``."""
    any_order: tuple[float, float]
    """The interval that holds however the item is spread inside the substreams that the window cuts."""
    window: Span
    """What was asked about."""
    covered: Span
    """What sealed counters cover of it."""
    share: float | None = None
    """Of the items of the window that count; ``None`` if there are none, or their number is all noise."""
    noise: float | None = None
    """The part of the standard error that comes from the noise which protects events."""
    collisions: float | None = None
    """The part that comes from keys that share counters."""
    misfit: float | None = None
    """The part that comes from the edges of the window."""

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{grouped(self.value)} ± {grouped((self.upper - self.lower) / 2)}"

    def __repr__(self) -> str:
        low, high = self.any_order
        is_wide = 2 * (self.upper - self.lower) < high - low
        order = f", {grouped(low)} to {grouped(high)} if it came in bursts" if is_wide else ""
        return f"<Estimate {self}{order}, {self.window}>"

    @classmethod
    def of(cls, count: NativeCount, is_time: bool, whole: int | None) -> Estimate:
        """Of what the native module hands over."""
        value, lower, upper, any_order, parts, window, covered = count
        noise, collisions, misfit = parts or (None, None, None)
        share = value / whole if whole else None
        spans = (Span.of(window, is_time), Span.of(covered, is_time))
        return cls(value, lower, upper, any_order, *spans, share, noise, collisions, misfit)


@dataclass(frozen=True, slots=True)
class Row:
    """An item of a list, with what it probably counts: it was chosen for its size, and that is taken into account."""

    rank: int
    """From 1."""
    item: Item
    """The item: text, bytes that are no text, or an integer."""
    estimate: float
    """In a list, what the item probably counts; else noise can make it negative."""
    lower: float
    """The true count lies between this and ``upper`` with probability 95 %."""
    upper: float
    """See ``lower``."""
    share: float | None
    """Of the items of the window that count."""
    unsure: bool
    """Whether the count may be less than a quarter of the estimate."""
    any_order: tuple[float, float]
    """The interval that holds however the item is spread inside the substreams that the window cuts."""
    trend: Direction | None = None
    """Whether it rises or falls beyond chance; ``None`` if that is unknown or was not asked for."""

    def __str__(self) -> str:
        mark = "~" if self.unsure else ""
        return f"{name(self.item)} {mark}{grouped(self.estimate)} ({grouped(self.lower)} to {grouped(self.upper)})"

    @classmethod
    def of(cls, rank: int, row: NativeRow, whole: int | None) -> Row:
        """Of what the native module hands over."""
        item, estimate, lower, upper, any_order, unsure, trend = row
        share = estimate / whole if whole else None
        return cls(rank, item, estimate, lower, upper, share, unsure, any_order, trend)


@dataclass(frozen=True, slots=True, repr=False)
class Rows(Sequence[Row]):
    """The rows of an answer, which also become tables and pictures.

    >>> import dpsw
    >>> rows = dpsw.top(["a", "b", "a", "a"] * 500, window=1000, epsilon=1e6, keys=["a", "b"])
    >>> [(row.item, round(row.estimate)) for row in rows]
    [('a', 750), ('b', 250)]
    >>> print(rows)
       item  count  95 % interval  share
    1  a       750     750 to 750   75 %
    2  b       250     250 to 250   25 %
    the last 1,000 items; epsilon 1e+06 for each event; counting the same items again spends it again
    """

    rows: tuple[Row, ...]
    about: About
    """What the answer is about and what is promised."""
    hidden: tuple[Row, ...] = ()
    """Rows that are not shown because they may be noise alone."""
    capped: int | None = None
    """Where users are protected: about how many events of the window count for no item."""
    why: str = field(default="", compare=False)
    """Why there is no row, and what would help."""
    note: str = field(default="", compare=False)
    """What else to know."""

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __str__(self) -> str:
        return "\n".join([*self._table(), self.footer])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html.rows(self)

    @property
    def footer(self) -> str:
        """What the answer is about, in a line."""
        window = self.about.window
        if isinstance(window.start, int) and isinstance(window.end, int):
            about = f"the last {counted(window.end - window.start, 'item')}"
        else:
            about = str(window)
        hidden = f"; {len(self.hidden)} more may be noise alone: rows.hidden" if self.hidden else ""
        capped = f"; {counted(self.capped, 'item')} of users who had sent enough count nowhere" if self.capped else ""
        note = f"; {self.note}" if self.note else ""
        return f"{about}; {self.about.promise}{capped}{hidden}{note}"

    def _table(self) -> list[str]:
        if not self.rows:
            return [self.why or "no rows"]
        heads = ["", "item", "count", "95 % interval", "share"]
        has_trend = any(row.trend for row in self.rows)
        lines = [heads + (["trend"] if has_trend else [])]
        for row in self.rows:
            mark = "~" if row.unsure else ""
            interval = f"{grouped(row.lower)} to {grouped(row.upper)}"
            cells = [str(row.rank), name(row.item), mark + grouped(row.estimate), interval, percent(row.share)]
            lines.append(cells + ([row.trend or ""] if has_trend else []))
        widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
        return [_aligned(line, widths) for line in lines]

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return _tables.dicts(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a table of pandas."""
        return _tables.pandas_table(self)

    def to_polars(self) -> polars.DataFrame:
        """The rows as a table of polars."""
        return _tables.polars_table(self)

    def to_arrow(self) -> pyarrow.Table:
        """The rows as a table of pyarrow."""
        return _tables.arrow_table(self)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The rows as bars with their intervals. Needs matplotlib."""
        return _plot.rows(self, ax)


def _aligned(cells: list[str], widths: list[int]) -> str:
    # Names to the left, numbers to the right.
    parts = [cell.ljust(width) if place == 1 else cell.rjust(width) for place, (cell, width) in enumerate(zip(cells, widths))]
    return "  ".join(parts).rstrip()


@dataclass(frozen=True, slots=True, repr=False)
class History(Sequence[Estimate]):
    """An item in each substream that is kept, oldest first."""

    item: Item
    estimates: tuple[Estimate, ...]

    @overload
    def __getitem__(self, index: int) -> Estimate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Estimate]: ...
    def __getitem__(self, index: int | slice) -> Estimate | Sequence[Estimate]:
        return self.estimates[index]

    def __len__(self) -> int:
        return len(self.estimates)

    def __repr__(self) -> str:
        spells = ", ".join(str(estimate) for estimate in self.estimates[-5:])
        dots = "…, " if 5 < len(self.estimates) else ""
        return f"<History of {name(self.item)}, {len(self.estimates)} substreams: {dots}{spells}>"

    def _repr_html_(self) -> str:
        return _html.history(self)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The substreams as dictionaries."""
        return _tables.spells(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The substreams as a table of pandas."""
        return _tables.pandas_table(self)

    def to_polars(self) -> polars.DataFrame:
        """The substreams as a table of polars."""
        return _tables.polars_table(self)

    def to_arrow(self) -> pyarrow.Table:
        """The substreams as a table of pyarrow."""
        return _tables.arrow_table(self)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The item over time as a line with a band. Needs matplotlib."""
        return _plot.history(self, ax)


@dataclass(frozen=True, slots=True)
class Trend:
    """An item now and before."""

    direction: Direction | None
    """Beyond what errors, and the chance by which counts of an unchanged item differ, explain: else steady. ``None`` if too little
    is sealed to tell."""
    now: Estimate
    """The newer window."""
    before: Estimate
    """The older window of the same length."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of the items of a call; ``None`` where the presence of events is private."""

    counted: int | None
    """Events that took their place in the stream and count for their item."""
    capped: int | None = None
    """Events that count for no item: their user had sent enough, or there was no room for further users."""
    late: int | None = None
    """Events left out because their interval is sealed."""
    early: int | None = None
    """Events left out because they lie too far ahead of the clock."""


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """What attacks on a plan showed."""

    holds: bool
    """Whether every test and check holds, and every wrong mechanism was caught."""
    measure: str
    """``"epsilon"``, or ``"mu"`` of Gaussian privacy."""
    claimed: float
    """What the plan claims, in that measure."""
    observed: float
    """The largest loss that was shown."""
    text: str = field(compare=False)
    """The whole report."""

    def __repr__(self) -> str:
        return self.text
