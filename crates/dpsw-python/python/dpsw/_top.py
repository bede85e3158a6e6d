"""The whole job in one line, for items that are all there."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Unpack

from . import _dpsw, _inputs, _spending
from ._errors import InputError, ParameterError, PlanError
from ._inputs import OnError, TimeUnit
from ._plan import Keys, Plan, Settings, Window, length, make
from ._results import Rows
from ._sketch import Sketch
from ._view import ROWS, View

AGAIN = "counting the same items again spends it again"


def top(
    items: Any,
    times: Any = None,
    users: Any = None,
    *,
    window: Window,
    epsilon: float,
    keys: Keys = "found",
    count: int = ROWS,
    trend: bool = False,
    time_unit: TimeUnit | None = None,
    on_error: OnError = "stop",
    ledger: str | os.PathLike[str] | None = None,
    data_set: str | None = None,
    budget: float | None = None,
    **settings: Unpack[Settings],
) -> Rows:
    """The most frequent items of the last window of a column, in one line.

    It takes what :func:`dpsw.plan` and :meth:`dpsw.Sketch.extend` take. With ``users``, all that a user sends in a window is
    protected together. Counting the same items again spends epsilon again: to ask more than once, keep a :func:`dpsw.view`.

    >>> import dpsw
    >>> rows = dpsw.top(["/", "/cart", "/"] * 10_000, window=10_000, epsilon=1)
    >>> [row.item for row in rows]
    ['/', '/cart']
    """
    seen = view(
        items,
        times,
        users,
        window=window,
        epsilon=epsilon,
        keys=keys,
        time_unit=time_unit,
        on_error=on_error,
        ledger=ledger,
        data_set=data_set,
        budget=budget,
        **settings,
    )
    return replace(seen.top(count, trend=trend), note=AGAIN)


def view(
    items: Any,
    times: Any = None,
    users: Any = None,
    *,
    window: Window,
    epsilon: float,
    keys: Keys = "found",
    time_unit: TimeUnit | None = None,
    on_error: OnError = "stop",
    ledger: str | os.PathLike[str] | None = None,
    data_set: str | None = None,
    budget: float | None = None,
    **settings: Unpack[Settings],
) -> View:
    """Counts all items of a column and hands out a view of its end, which answers any number of questions for one epsilon.

    >>> import dpsw
    >>> view = dpsw.view(["/", "/cart", "/"] * 10_000, window=10_000, epsilon=1, keys=["/", "/cart"])
    >>> view.frequency("/").lower < 6_667 < view.frequency("/").upper + 100
    True
    """
    _spending.account(ledger, data_set, budget)
    items = _inputs.column(items)
    found, is_integers = _dpsw.look(items)
    if found == 0:
        raise InputError("there are no items to count")
    said: dict[str, Any] = {"window": window, "epsilon": epsilon, "keys": keys, **settings}
    if users is not None:
        said.setdefault("unit", "users")
    if "kind" not in said and isinstance(keys, str):
        said["kind"] = "integers" if is_integers else _inputs.text_or_bytes(items)
    len_, is_time = length(window)
    if is_time and times is None:
        raise ParameterError("a window of time needs times=: the time of each item")
    unit = time_unit
    if times is not None:
        times, unit = _inputs.times(times, time_unit, found)
    if is_time:
        plan, end = _plan_of_times(said, times, unit, len_), None
    else:
        plan, end = _plan_of_items(said, min(len_, found)), found
    sketch = Sketch(plan, length=end, ledger=ledger, data_set=data_set, budget=budget)
    users = None if users is None else _inputs.column(users)
    sketch._take(items, times, users, (unit, 0, _inputs.skips(on_error)))
    return sketch.finish()


def _plan_of_items(said: dict[str, Any], last: int) -> Plan:
    """For the last window alone, as all that is asked lies there; where that is too short for any answer, as it was asked."""
    if said.get("retention", 1) != 1 or said.get("paper") is not None:
        return make(**said)
    try:
        return make(**{**said, "window": last, "is_last": True})
    except PlanError:
        return make(**said)


def _plan_of_times(said: dict[str, Any], times: Any, unit: str | None, window: int) -> Plan:
    """For as many items as a window holds, which is public where arrivals are."""
    if said.get("unit") == "add-remove":
        raise ParameterError("unit=\"add-remove\" needs clock=\"caller\" and a clock that does not depend on events: use a Sketch")
    expected, step = _dpsw.survey(times, unit, window) or (None, 1)
    try:
        return make(**{"expected_items": expected, **said, "step": step})
    except PlanError:
        return make(**said)
