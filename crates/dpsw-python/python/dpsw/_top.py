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
from ._sketch import How, Sketch
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
    column: str | None = None,
    time_unit: TimeUnit | None = None,
    on_error: OnError = "stop",
    ledger: str | os.PathLike[str] | None = None,
    data_set: str | None = None,
    budget: float | None = None,
    **settings: Unpack[Settings],
) -> Rows:
    """The most frequent items of the last window of a column, in one line.

    It takes what :func:`dpsw.plan` and :meth:`dpsw.Sketch.extend` take; rows need not be in the order of their times. With ``users``, all that a user sends in a window is
    protected together. Counting the same items again spends epsilon again: to ask more than once, keep a :func:`dpsw.view`.

    >>> import dpsw
    >>> rows = dpsw.top(["/", "/cart", "/"] * 10_000, window=10_000, epsilon=1)
    >>> [row.item for row in rows]
    ['/', '/cart']
    """
    account = _spending.account(ledger, data_set, budget)
    if keys == "asked":
        raise ParameterError('top lists keys, and keys="asked" has no list: use dpsw.view, and ask for keys by name')
    rows = _inputs.columns_of(items, times, users, column)
    said: dict[str, Any] = {"window": window, "epsilon": epsilon, "keys": keys, **settings}
    seen = _counted(rows, said, account, (time_unit, 0, _inputs.skips(on_error)), True)
    return replace(seen.top(count, trend=trend), note=AGAIN)


def view(
    items: Any,
    times: Any = None,
    users: Any = None,
    *,
    window: Window,
    epsilon: float,
    keys: Keys = "found",
    column: str | None = None,
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
    account = _spending.account(ledger, data_set, budget)
    rows = _inputs.columns_of(items, times, users, column)
    said: dict[str, Any] = {"window": window, "epsilon": epsilon, "keys": keys, **settings}
    return _counted(rows, said, account, (time_unit, 0, _inputs.skips(on_error)), False)


def _counted(
    rows: tuple[Any, Any, Any], said: dict[str, Any], account: _spending.Account | None, how: How, is_last: bool
) -> View:
    """All rows, counted. Where nothing but the last window is asked, nothing else is planned for."""
    items, times, users = _inputs.column(rows[0]), rows[1], rows[2]
    found, is_integers = _dpsw.look(items)
    if found == 0:
        raise InputError("there are no items to count")
    _check(said, times, users)
    if "kind" not in said and isinstance(said["keys"], str):
        said["kind"] = "integers" if is_integers else _inputs.text_or_bytes(items)
    window, is_time = length(said["window"])
    users = None if users is None else _inputs.column(users)
    if not is_time:
        sketch = _sketch(_plan_of_items(said, min(window, found), is_last), found, account)
        sketch._take(items, None, users, how)
        return sketch.finish()
    times, unit = _inputs.times(times, how[0], found)
    sketch = _sketch(_plan_of_times(said, times, unit, window), None, account)
    sketch._native.extend_sorted(items, times, users, (unit, *how[1:]))
    return sketch.finish()


def _sketch(plan: Plan, found: int | None, account: _spending.Account | None) -> Sketch:
    ledger, data_set, budget = account or (None, None, None)
    return Sketch(plan, length=found, ledger=ledger, data_set=data_set, budget=budget)


def _check(said: dict[str, Any], times: Any, users: Any) -> None:
    """What a column that is all there can be counted for."""
    if users is not None:
        said.setdefault("unit", "users")
    is_time = length(said["window"])[1]
    if is_time and times is None:
        raise ParameterError("a window of time needs times=: the time of each item")
    if times is not None and not is_time:
        raise ParameterError("times= is for windows of time, and this one counts items")
    if said.get("unit") == "users" and users is None:
        raise ParameterError('unit="users" needs users=: who sent each item')
    if said.get("unit") == "add-remove" or said.get("clock", "events") != "events":
        raise ParameterError('unit="add-remove" and clock="caller" need a clock beside the events: use a Sketch, and advance it')


def _plan_of_items(said: dict[str, Any], last: int, is_last: bool) -> Plan:
    """For no more items than there are; where those are too few for any answer, as it was asked."""
    try:
        is_alone = is_last and said.get("retention", 1) == 1
        return make(**{**said, "window": last, "is_last": is_alone})
    except PlanError:
        return make(**said)


def _plan_of_times(said: dict[str, Any], times: Any, unit: str | None, window: int) -> Plan:
    """For as many items as a window holds, which is public where arrivals are."""
    expected, step = _dpsw.survey(times, unit, window) or (None, 1)
    try:
        return make(**{"expected_items": expected, **said, "step": step})
    except PlanError:
        return make(**said)
