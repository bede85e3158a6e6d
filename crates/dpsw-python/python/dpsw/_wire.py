"""Answers of the service as results, and questions as the service takes them."""

from __future__ import annotations

import math
import operator
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ._errors import InputError, ParameterError
from ._plan import Keys, Window, length
from ._results import About, Estimate, History, Row, Rows, Span, Trend
from ._words import MILLISECOND, Item, millis, moment

UNITS = {"event": "replace-one", "presence": "add-remove", "users": "users"}


@dataclass(frozen=True, slots=True)
class Source:
    """Where events come from, whose privacy one event is, and what all its streams may spend together."""

    name: str
    unit: str
    """What is protected: ``"replace-one"``, ``"add-remove"`` or ``"users"``."""
    columns: dict[str, str]
    """The columns of items: ``"text"`` or ``"integer"``."""
    time_column: str | None
    user_column: str | None
    items_per_user: int | None
    streams: tuple[str, ...]
    epsilon: float | None
    """What all its streams may spend together."""
    delta: float | None
    epsilon_spent: float
    """The most that any event, or any user, has cost or can cost so far."""
    delta_spent: float

    @classmethod
    def of(cls, said: Any) -> Source:
        """Of what the service says."""
        ledger = said["ledger"]
        return cls(
            name=said["name"],
            unit=UNITS[said["protects"]],
            columns=dict(said["columns"]),
            time_column=said.get("time_column"),
            user_column=said.get("user_column"),
            items_per_user=said.get("items_per_user"),
            streams=tuple(said["streams"]),
            **{name: ledger[name] for name in ("epsilon", "delta", "epsilon_spent", "delta_spent")},
        )


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A stream, its plan and what is promised of it."""

    name: str
    source: str | None
    """``None`` if it is sealed elsewhere; see :meth:`Client.publish`."""
    column: str | None
    """The column whose items it counts; ``None`` if it is sealed elsewhere."""
    window: int | str
    """Items, or a time."""
    epsilon: float | None
    """Of everything that it ever releases."""
    delta: float | None
    keys: int | str
    """How many keys the list has; ``"found"`` or ``"asked"`` where there is none."""
    retention: int
    plan: str = field(repr=False)
    """The plan in words."""

    @classmethod
    def of(cls, said: Any) -> StreamInfo:
        """Of what the service says."""
        plan, keys = said["plan"], said["keys"]
        return cls(
            **{name: said[name] for name in ("name", "source", "window", "retention")},
            column=said["item"],
            epsilon=plan["epsilon"],
            delta=plan["delta"],
            keys=keys["listed"] if isinstance(keys, dict) else keys,
            plan=plan["words"],
        )


@dataclass(frozen=True, slots=True)
class Contract:
    """What is promised of a stream, made from its plan and the ledger of its source."""

    stream: str
    source: str | None
    """``None`` if it is sealed elsewhere; see :meth:`Client.publish`."""
    unit: str
    epsilon: float | None
    """Of everything that the stream ever releases."""
    delta: float | None
    epsilon_spent: float | None
    """With all other streams of the source; ``None`` if it is sealed elsewhere, and this is spent there."""
    delta_spent: float | None
    sentence: str
    """What is promised, in words."""

    def __str__(self) -> str:
        return self.sentence

    @classmethod
    def of(cls, said: Any) -> Contract:
        """Of what the service says."""
        ledger = said["ledger"] or {"epsilon_spent": None, "delta_spent": None}
        return cls(
            **{name: said[name] for name in ("stream", "source", "epsilon", "delta", "sentence")},
            unit=UNITS[said["protects"]],
            epsilon_spent=ledger["epsilon_spent"],
            delta_spent=ledger["delta_spent"],
        )


def rows(answer: Any) -> Rows:
    """The rows of an answer."""
    about = _about(answer)
    # Before anything is sealed every key may be noise alone.
    hidden = 0 if about.covered.is_empty else answer["hidden"]
    note = f"{hidden} more may be noise alone: ask with all=True" if hidden else ""
    found = tuple(_row(row) for row in answer["items"])
    return Rows(found, about, (), answer.get("capped"), "" if found else _why(about), note)


def estimate(answer: Any) -> Estimate:
    """The one row of an answer as an estimate."""
    (row,) = answer["items"]
    about = _about(answer)
    return Estimate(*_count(row), about.window, about.covered, row["share"])


def history(item: Item, answer: Any) -> History:
    """The substreams of an answer."""
    return History(item, tuple(_spell(spell) for spell in answer["substreams"]))


def trend(answer: Any) -> Trend:
    """An item now and before."""
    return Trend(answer["trend"], _spell(answer["now"]), _spell(answer["before"]))


def _about(answer: Any) -> About:
    unit, promised = UNITS[answer["protects"]], (answer["epsilon"], answer["delta"])
    return About(_span(answer["window"]), _span(answer["covered"]), unit, *promised, answer["total"])


def _span(said: Any) -> Span:
    return Span.of((said["start"], said["end"]), said["unit"] == "ms")


def _row(row: Any) -> Row:
    value, lower, upper, any_order = _count(row)
    return Row(row["rank"], _item(row), value, lower, upper, row["share"], row["unsure"], any_order, row["trend"])


def _count(row: Any) -> tuple[float, float, float, tuple[float, float]]:
    low, high = row["any_order"]
    return float(row["estimate"]), *_ends(row["lower"], row["upper"]), _ends(low, high)


def _ends(lower: float | None, upper: float | None) -> tuple[float, float]:
    # JSON has no number for an end that is not known.
    return (-math.inf if lower is None else float(lower), math.inf if upper is None else float(upper))


def _spell(spell: Any) -> Estimate:
    return Estimate(*_count(spell), _span(spell["window"]), _span(spell["covered"]))


def _item(row: Any) -> Item:
    if "item_base64" in row:
        return b64decode(row["item_base64"], validate=True)
    item: Item = row["item"]
    if not isinstance(item, str | int):
        raise TypeError("an item is text or an integer")
    return item


def _why(about: About) -> str:
    if about.covered.is_empty:
        return "nothing can be answered before the first substream is complete: send more, or ask later"
    return "no item stands out from the noise, or none was found yet: ask later, raise epsilon, or use a longer window"


def asked(item: Item) -> Any:
    """An item as a question has it in its body."""
    if isinstance(item, bytes):
        return {"base64": b64encode(item).decode()}
    if isinstance(item, str):
        return _text(item)
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        raise InputError(f"an item is an integer, text or bytes, got a {type(item).__name__}")
    return operator.index(item)


def named(item: Item) -> tuple[str, str]:
    """An item as a question has it in its address."""
    found = asked(item)
    return ("item_base64", found["base64"]) if isinstance(found, dict) else ("item", str(found))


def _text(item: str) -> str:
    try:
        item.encode()
    except UnicodeEncodeError:
        raise InputError("the item is no text: it has half a character") from None
    return item


def scope(window: Window | None, as_of: int | datetime | None) -> list[tuple[str, str]]:
    """Which window is asked about."""
    asked_for = [] if window is None else [("window", str(span(window)))]
    if isinstance(as_of, datetime):
        # A number that small would be taken for seconds.
        return [*asked_for, ("as_of", moment(millis(as_of)).isoformat(timespec="milliseconds").replace("+00:00", "Z"))]
    return asked_for if as_of is None else [*asked_for, ("as_of", str(operator.index(as_of)))]


def flags(**said: bool) -> list[tuple[str, str]]:
    """Those that are set."""
    return [(name, "true") for name, is_set in said.items() if is_set]


def span(window: Window) -> int | str:
    """A window as the service reads it: items, or a time."""
    found, is_time = length(window)
    return f"{found}ms" if is_time else found


def lateness(time: str | timedelta | None) -> int | str | None:
    """A stretch of time as the service reads it."""
    return f"{time // MILLISECOND}ms" if isinstance(time, timedelta) else time


def keys(said: Keys | Mapping[str, Any]) -> Any:
    """Keys as the service reads them."""
    if isinstance(said, str | Mapping):
        return said
    if isinstance(said, int):
        return {"below": said}
    found = [asked(key) for key in said]
    if all(isinstance(key, int) for key in found) and found:
        return {"integers": found}
    if not all(isinstance(key, str) for key in found):
        raise ParameterError("public keys of a stream of the service are all texts or all integers")
    return {"list": found}
