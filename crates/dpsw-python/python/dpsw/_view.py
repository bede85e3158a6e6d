"""What answers: sealed counters alone, so that any number of questions costs no further privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _dpsw, _plot
from ._checks import described, of_class, real, whole
from ._errors import ParameterError, QueryError
from ._plan import Plan, duration
from ._results import About, Estimate, History, NativeRow, Row, Rows, Span, Trend
from ._words import Item, counted, millis, moment, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How many rows are listed if nobody says.
ROWS = 20


class View:
    """What can be seen of a stream at one time. It never changes, and can be kept, pickled, sent and merged.

    >>> import dpsw
    >>> sketch = dpsw.Sketch(window=1000, epsilon=1e6, keys=["a", "b"])
    >>> _ = sketch.extend(["a", "b", "a", "a"] * 500)
    >>> view = sketch.finish()
    >>> view
    <View of 1000..2000, the last 1,000 items; epsilon 1e+06 for each event>
    >>> dpsw.View.from_bytes(view.to_bytes()).top(1)[0].item
    'a'
    """

    __slots__ = ("_native",)

    def __init__(self, native: _dpsw.View, /) -> None:
        self._native = native

    @classmethod
    def from_bytes(cls, data: bytes, *, kind: Literal["text", "bytes"] = "text") -> View:
        """A view that was made into bytes, here, by the command line or by the service."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise ParameterError(f"a view is made of bytes, got {described(data)}")
        data = bytes(data)
        return cls(_dpsw.View.from_bytes(data, kind == "bytes"))

    @classmethod
    def open(cls, path: str | Path, *, kind: Literal["text", "bytes"] = "text") -> View:
        """A view from a file, such as one of ``dpsw top --save``."""
        return cls.from_bytes(Path(path).read_bytes(), kind=kind)

    def to_bytes(self) -> bytes:
        """The view as bytes; they may be published."""
        return self._native.to_bytes()

    def save(self, path: str | Path) -> None:
        """Writes the view to a file, for :meth:`open` and ``dpsw top --view``."""
        Path(path).write_bytes(self.to_bytes())

    @staticmethod
    def merge(views: Iterable[View]) -> View:
        """Views of several sites with the same plan, ``stream_key`` and different ``site`` numbers, added up."""
        views = [views] if isinstance(views, View) else list(views)
        for view in views:
            of_class("a view", view, View)
        return View(_dpsw.View.merge([view._native for view in views]))

    @property
    def plan(self) -> Plan:
        """The plan of the stream."""
        return Plan._of(self._native.plan(), "bytes" if self._native.is_bytes else "text")

    @property
    def about(self) -> About:
        """What answers are about and what is promised."""
        epsilon, delta = self._native.promise or (None, None)
        return About(self.window, self.covered, self._native.unit, epsilon, delta, self._native.total)

    @property
    def window(self) -> Span:
        """What questions are about."""
        return self._span(self._native.window)

    @property
    def covered(self) -> Span:
        """What sealed counters cover of it; the rest is predicted."""
        return self._span(self._native.covered)

    @property
    def retained(self) -> Span:
        """Where a window may lie."""
        return self._span(self._native.retained)

    @property
    def is_finished(self) -> bool:
        """Whether the stream is over, and all of it is in the view."""
        return self._native.finished is not None

    @property
    def sites(self) -> list[int]:
        """The sites whose events are in it."""
        return self._native.sites

    @property
    def keys(self) -> list[Item]:
        """The keys that may be listed: the public ones, or those that were found so far."""
        return self._native.keys()

    def last(self, length: int | str | timedelta) -> View:
        """The same with a shorter window: the last so many items, or the last stretch of time.

        >>> import dpsw
        >>> sketch = dpsw.Sketch(window="1h", epsilon=1, keys=["a"], expected_items=1000)
        >>> sketch.view().last("5m")
        Traceback (most recent call last):
            ...
        dpsw._errors.QueryError: nothing is sealed yet, so there is no window to shorten
        """
        if self.retained.is_empty:
            raise QueryError("nothing is sealed yet, so there is no window to shorten")
        return self._kept(lambda: self._native.last(self._length(length)))

    def as_of(self, position: int | datetime) -> View:
        """The same with the window of the same length that ended at a past position or time."""
        if isinstance(position, datetime) != self._native.is_time:
            wanted = "a datetime" if self._native.is_time else "a number of items"
            raise ParameterError(f"this view's positions are given as {wanted}, got {position!r}")
        end = millis(position) if isinstance(position, datetime) else whole("a position", position)
        return self._kept(lambda: self._native.as_of(end))

    def frequency(self, item: Item, *, confidence: float = 0.95) -> Estimate:
        """How often an item occurred in the window, with its interval."""
        return self._estimate(self._native.frequency(item, real("confidence", confidence)))

    def frequencies(self, items: Iterable[Item], *, trend: bool = False) -> Rows:
        """How often each of these items occurred, in their order."""
        return self._rows((self._native.frequencies(_listed(items), trend), [], None))

    def top(self, count: int = ROWS, *, strict: bool = False, trend: bool = False, all: bool = False) -> Rows:
        """The most frequent keys, with what they probably count: the largest of many noisy numbers are large because of
        their noise.

        ``strict`` intervals hold for 95 % of the rows whatever the stream is like; ``trend`` says what rises and falls;
        ``all`` also lists rows that may be noise alone. With ``all`` and a ``count`` of at least the number of keys nothing is
        chosen, and rows show plain estimates.
        """
        return self._rows(self._native.top(whole("count", count, 1), strict, all, trend))

    def heavy_hitters(
        self,
        threshold: float,
        *,
        certainty: Literal["plain", "sure", "possible"] = "plain",
        among: Iterable[Item] | None = None,
        strict: bool = False,
        trend: bool = False,
        all: bool = False,
    ) -> Rows:
        """The keys with at least this share of the window, such as ``0.01``.

        ``certainty`` says on which side to err: ``"sure"`` lists few wrong ones, ``"possible"`` misses few. Where there is no
        list, ``among`` names the candidates.
        """
        if among is not None and certainty != "plain":
            raise ParameterError('candidates that are named are listed with certainty="plain" alone')
        candidates = None if among is None else _listed(among)
        share = real("threshold", threshold)
        rows = self._rows(self._native.heavy_hitters(share, certainty, candidates, strict, all, trend))
        is_low = not rows and not rows.hidden and not self.covered.is_empty
        return replace(rows, why=f"no item has {percent(share)} of the window") if is_low else rows

    def history(self, item: Item, *, confidence: float = 0.95) -> History:
        """The item in each substream that is kept, oldest first."""
        spells = self._native.history(item, real("confidence", confidence))
        return History(item, tuple(self._estimate(spell, False) for spell in spells))

    def trend(self, item: Item) -> Trend:
        """This window against the one before it, if that is retained; else its newer half against its older half."""
        direction, now, before = self._native.trend(item)
        return Trend(direction, self._estimate(now, False), self._estimate(before, False))

    def plot(self, item: Item | None = None, *, count: int = 10, ax: Axes | None = None) -> Axes:
        """The most frequent items with their intervals, or the history of one item with its band. Needs matplotlib."""
        return _plot.rows(self.top(count), ax) if item is None else _plot.history(self.history(item), ax)

    def __repr__(self) -> str:
        start, end = self._native.window
        kept = f"{moment(start):%Y-%m-%d %H:%M:%S}..{moment(end):%H:%M:%S}" if self._native.is_time else f"{start}..{end}"
        return f"<View of {kept}, {self._rows(([], [], None)).footer}>"

    def _repr_html_(self) -> str:
        try:
            return self.top(10)._repr_html_()
        except QueryError:
            return self._rows(([], [], None))._repr_html_()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return self.window == other.window and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash((self._native.window, self.to_bytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        start, end = self._native.window
        is_whole = (start, end) == _dpsw.View.from_bytes(self.to_bytes(), False).window
        window = None if is_whole else (end - start, end)
        return _restored, (self.to_bytes(), self._native.is_bytes, window)

    def _length(self, length: int | str | timedelta) -> int:
        is_time = self._native.is_time
        if isinstance(length, str):
            found, is_length = _dpsw.length(length)
        else:
            is_length = isinstance(length, timedelta)
            found = duration(length) if is_length else whole("a window", length, 1)
        if is_length != is_time:
            wanted = 'time: ask for a time such as "5m"' if is_time else "items: ask for a number of items"
            raise ParameterError(f"the view has a window of {wanted}")
        return found

    def _kept(self, ask: Callable[[], _dpsw.View]) -> View:
        try:
            return View(ask())
        except QueryError as error:
            words = f"the window reaches further than what is kept, {self.retained}; ask for less, or raise retention="
            raise QueryError(words) from error

    def _span(self, ends: tuple[int, int]) -> Span:
        return Span.of(ends, self._native.is_time)

    def _estimate(self, count: Any, is_shared: bool = True) -> Estimate:
        return Estimate.of(count, self._native.is_time, self._native.whole if is_shared else None)

    def _rows(self, found: tuple[list[NativeRow], list[NativeRow], int | None]) -> Rows:
        rows, hidden, capped = found
        whole = self._native.whole
        shown = tuple(Row.of(rank, row, whole) for rank, row in enumerate(rows, 1))
        others = tuple(Row.of(rank, row, whole) for rank, row in enumerate(hidden, len(rows) + 1))
        return Rows(shown, self.about, others, capped, "" if shown else self._why(), self._note())

    def _why(self) -> str:
        plan = self.plan
        if self.covered.is_empty:
            if self.is_finished:
                return "nothing was counted"
            return f"nothing can be answered before the first {_stretch(plan.substream)} are complete: count more, or finish()"
        few = self._few(plan)
        if plan.found_share is not None and not self.keys:
            if 1 < plan.found_share:
                return f"no key can be frequent enough to be found: raise epsilon, use a longer window, or give public keys{few}"
            return (
                f"no key is listed yet: a key is usually found if it has {percent(plan.found_share)} of the window; count more, "
                f"raise epsilon, or give public keys{few}"
            )
        return f"no item stands out from the noise: raise epsilon, or use a longer window{few}"

    def _few(self, plan: Plan) -> str:
        """Whether the window holds far less than it was planned for."""
        total = self._native.total or 0
        is_said = self._native.is_time and self._native.unit != "add-remove"
        if not is_said or plan.expected_items < 8 * max(total, 1):
            return ""
        return f"; the window, {self.window}, holds about {counted(total, 'item')}: is its newest time right?"

    def _note(self) -> str:
        """A window inside a substream is read off by how long it is."""
        substream = self._native.substream
        start, end = self._native.window
        if substream <= end - start or self.covered.is_empty:
            return ""
        return "the window is shorter than a substream: items are taken to come evenly, see any_order"


def _listed(items: Iterable[Item]) -> list[Item]:
    if isinstance(items, str | bytes):
        raise ParameterError("one item is not a list of items; ask for [item], or frequency(item)")
    return list(items)


def _stretch(length: int | timedelta) -> str:
    return f"{length:,} items" if isinstance(length, int) else f"{length} of time"


def _restored(data: bytes, is_bytes: bool, window: tuple[int, int] | None) -> View:
    native = _dpsw.View.from_bytes(data, is_bytes)
    return View(native if window is None else native.last(window[0]).as_of(window[1]))
