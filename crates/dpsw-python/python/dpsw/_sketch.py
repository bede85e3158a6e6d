"""What counts. It answers nothing itself: ``view()`` hands out what does."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, Protocol, Unpack

from . import _dpsw, _inputs, _spending
from ._checks import described, of_class, whole
from ._errors import InputError, ParameterError
from ._inputs import OnError, TimeUnit
from ._plan import Keys, Plan, Settings, Window, plan as make_plan
from ._results import Taken
from ._view import View
from ._words import millis
from ._worker import Partial


# The unit of times that are numbers, the number of the first row, and whether what is no item is skipped.
How = tuple[TimeUnit | None, int, bool]


class Store(Protocol):
    """Remembers which saved states may still be restored, each once; keep it out of backups that hold states."""

    def note(self, state: bytes, /) -> None:
        """Notes that a state may be restored; durable when it returns."""
        ...

    def consume(self, state: bytes, /) -> bool:
        """Takes the note away and says whether it was there."""
        ...


class Sketch:
    """A private sketch of the recent part of a stream, still counting.

    Args:
        plan: a plan of :func:`dpsw.plan`; or say ``window``, ``epsilon``, ``keys`` and whatever else that function takes.
        length: how many items the stream will have, if that is public: then no window at its end is cut inside a substream.
        site: the number of this site, among several whose views are merged.
        stream_key: 32 secret bytes that such sites, and workers, share.
        ledger: a file that remembers what was spent on ``data_set``, as ``dpsw top --ledger`` does, and refuses what exceeds its
            ``budget``. It is charged now, and given back if nothing is ever asked.

    Items are counted once and noise is drawn once. A sketch that is made again over the same items spends its epsilon again.

    >>> import dpsw
    >>> sketch = dpsw.Sketch(window=1000, epsilon=1, keys=["/", "/cart"])
    >>> sketch.extend(["/", "/cart", "/"] * 1000)
    Taken(counted=3000, capped=0, late=0, early=0)
    >>> abs(sketch.view().frequency("/").value - 667) < 200
    True
    """

    __slots__ = ("_native", "_plan")

    def __init__(
        self,
        plan: Plan | None = None,
        /,
        *,
        window: Window | None = None,
        epsilon: float | None = None,
        keys: Keys = "found",
        length: int | None = None,
        site: int = 0,
        stream_key: bytes | None = None,
        ledger: str | os.PathLike[str] | None = None,
        data_set: str | None = None,
        budget: float | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        length = None if length is None else whole("length", length)
        if plan is not None:
            of_class("plan", plan, Plan)
        if plan is None:
            if window is None or epsilon is None:
                raise ParameterError("a Sketch needs a plan, or window= and epsilon=")
            plan = make_plan(window=window, epsilon=epsilon, keys=keys, **settings)
        elif window is not None or epsilon is not None or settings:
            raise ParameterError("the plan says it all: give a plan, or window=, epsilon= and so on")
        if stream_key is not None:
            _key(stream_key)
        account = _spending.account(ledger, data_set, budget)
        self._plan = plan
        self._native = _dpsw.Sketch(plan._native, plan._kind == "bytes", length, whole("site", site), stream_key, account)
        _spending.note(plan, self._native.balance)

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self._plan

    def extend(
        self,
        items: Any,
        times: Any = None,
        users: Any = None,
        *,
        column: str | None = None,
        time_unit: TimeUnit | None = None,
        on_error: OnError = "stop",
    ) -> Taken:
        """Takes items in their order of arrival.

        ``items`` may be a list, an array of numpy (integers, bytes, text), a Series of pandas or polars, an array, chunked array
        or dictionary array of pyarrow or anything else of Arrow, or a generator. Integers and Arrow strings are not copied, and
        the interpreter is free while they are counted. ``None`` is an item that is missing: it takes its place and counts
        nowhere.

        ``times`` are datetimes (without a zone: UTC), datetime64, timestamps of pandas, polars or Arrow, or numbers since 1970
        with a ``time_unit``; one time may stand for all. ``users`` are names or numbers.

        An item that is none, such as a number among texts, stops the call, and nothing of it is taken. A program that goes on by
        itself after that needs ``on_error="skip"``: such an item is then a missing one. Else one event would decide whether the
        others of its call count, which shows it.

        A table (pyarrow, polars, a record batch reader) is taken batch by batch; then ``column``, ``times`` and ``users`` are
        names of its columns.

        >>> import dpsw, datetime
        >>> sketch = dpsw.Sketch(window="15m", epsilon=1, keys=["a", "b"], expected_items=1000)
        >>> sketch.extend(["a", "b"], times=[datetime.datetime(2026, 1, 1, 12, 0), datetime.datetime(2026, 1, 1, 12, 1)])
        Taken(counted=2, capped=0, late=0, early=0)
        >>> sketch.extend(["a", 5], times=datetime.datetime(2026, 1, 1, 12, 2))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        dpsw._errors.InputError: item 1 is of type int, where text or bytes is wanted: ...
        """
        if column is not None or isinstance(times, str) or isinstance(users, str) or _inputs.is_table(items):
            _inputs.check_table(items)
            names = (column, _name(times), _name(users))
            return _taken(self._native.extend_table(items, names, (time_unit, 0, _inputs.skips(on_error))))
        how = (time_unit, 0, _inputs.skips(on_error))
        if _inputs.is_at_hand(items):
            return self._extend(items, times, users, how)
        return self._extend_generated(items, times, users, how)

    def _extend(self, items: Any, times: Any, users: Any, how: How) -> Taken:
        unit, first, skips = how
        items = _inputs.column(items)
        if times is not None:
            times, unit = _inputs.times(times, unit, _count(items))
        if users is not None:
            users = _inputs.column(users)
        return self._take(items, times, users, (unit, first, skips))

    def _take(self, items: Any, times: Any, users: Any, how: How) -> Taken:
        """Of columns as the native module takes them."""
        return _taken(self._native.extend(items, times, users, how))

    def _extend_generated(self, items: Any, times: Any, users: Any, how: How) -> Taken:
        if not hasattr(items, "__iter__"):
            _inputs.column(items)
        if times is not None and not hasattr(times, "__iter__"):
            raise InputError("one time cannot stand for all items of a generator; generate a time for each")
        taken, (unit, first, skips) = Taken(0, 0, 0, 0), how
        for part, moments, senders in _inputs.pieces(items, times, users):
            taken = _sum(taken, self._extend(part, moments, senders, (unit, first, skips)))
            first += len(part or [])
        return taken

    def advance(self, time: datetime) -> None:
        """Moves the clock of a plan with ``clock="caller"``: every substream that ends before it is sealed."""
        if not isinstance(time, datetime):
            raise ParameterError(f"the clock is moved to a datetime, got {described(time)}")
        self._native.advance(millis(time))

    def absorb(self, partial: Partial) -> int:
        """Takes what a :class:`Worker` counted, once; says how many of its ids are new."""
        of_class("partial", partial, Partial)
        return self._native.absorb(partial._native)[0]

    def view(self) -> View:
        """What can be seen now: sealed counters only."""
        return View(self._native.view())

    def finish(self) -> View:
        """Ends the stream: everything is sealed, and the view answers its last window without predicting any of it."""
        return View(self._native.finish())

    def save(self, *, key: bytes, store: str | os.PathLike[str] | Store) -> bytes:
        """Ends the stream here and hands out its secret state, encrypted with 32 bytes; only :meth:`restore` goes on with it.

        ``store`` is a folder or object that remembers which states were not restored yet. Keep it out of backups.

        >>> import dpsw, secrets, tempfile
        >>> key, store = secrets.token_bytes(32), tempfile.TemporaryDirectory()
        >>> sketch = dpsw.Sketch(window=1000, epsilon=1, keys=["a"])
        >>> state = sketch.save(key=key, store=store.name)
        >>> sketch = dpsw.Sketch.restore(state, key=key, store=store.name)
        >>> dpsw.Sketch.restore(state, key=key, store=store.name)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        dpsw._errors.StateError: this state, generation 1, was restored before, ...
        """
        return self._native.save(_key(key), _store(store))

    @classmethod
    def restore(cls, state: bytes, *, key: bytes, store: str | os.PathLike[str] | Store, kind: str = "text") -> Sketch:
        """The stream that was saved, exactly as it was; each state once."""
        return cls._of(_dpsw.Sketch.restore(state, _key(key), _store(store), kind == "bytes"))

    @classmethod
    def resume(cls, state: bytes, *, key: bytes, at: int | datetime, kind: str = "text") -> Sketch:
        """The stream that was saved, where no store knows whether it went on elsewhere.

        What was open or released is given up; it starts anew after ``at``, and nothing after that may ever have been released.
        """
        position = millis(at) if isinstance(at, datetime) else whole("at", at)
        return cls._of(_dpsw.Sketch.resume(state, _key(key), position, kind == "bytes"))

    @classmethod
    def _of(cls, native: _dpsw.Sketch) -> Sketch:
        sketch = cls.__new__(cls)
        sketch._native = native
        sketch._plan = Plan._of(native.plan(), "bytes" if native.is_bytes else "text")
        return sketch

    def __repr__(self) -> str:
        return f"<Sketch: {self._plan.contract}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Sketch cannot be pickled or copied: a copy would seal the same items twice with other noise; use save(), or "
            "pickle a View"
        )

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce__()


def _taken(told: tuple[int, int, int, int] | None) -> Taken:
    return Taken(None) if told is None else Taken(*told)


def _sum(one: Taken, other: Taken) -> Taken:
    if one.counted is None or other.counted is None:
        return Taken(None)
    parts = ((getattr(one, name) or 0) + (getattr(other, name) or 0) for name in ("counted", "capped", "late", "early"))
    return Taken(*parts)


def _count(items: Any) -> int | None:
    if isinstance(items, tuple):
        return int(items[2])
    return len(items) if hasattr(items, "__len__") else None


def _name(column: Any) -> str | None:
    if column is not None and not isinstance(column, str):
        raise InputError("with a table, times and users are names of its columns")
    return column


def _key(key: bytes) -> bytes:
    if not isinstance(key, bytes) or len(key) != 32:
        raise ParameterError("a key has 32 bytes: secrets.token_bytes(32)")
    return key


def _store(store: str | os.PathLike[str] | Store) -> Any:
    return str(Path(store)) if isinstance(store, str | os.PathLike) else store
