"""Numbers, times and items as people write them."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

Item = str | bytes | int

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MILLISECOND = timedelta(milliseconds=1)
# Longer names are cut in tables; the row has the whole one.
NAME_LEN = 48


def grouped(value: float) -> str:
    """``1,204``; noise can make a value negative, a count is not."""
    return f"{max(value, 0):,.0f}" if math.isfinite(value) else "unknown"


def counted(number: int, noun: str) -> str:
    """``1 item``, ``2,000 items``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(share: float | None) -> str:
    """``66.7 %``, with two digits that count."""
    if share is None:
        return ""
    value = 100 * share
    digits = 0 if value == 0 else min(max(1 - math.floor(math.log10(abs(value))), 0), 6)
    return f"{value:.{digits}f} %"


def name(item: Item, most: int = NAME_LEN) -> str:
    """An item that changes nothing around it, however long and whatever is in it."""
    text = item.decode("utf-8", "backslashreplace") if isinstance(item, bytes) else str(item)
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text[: most + 1])
    return shown if len(text) <= most else shown[: most - 1] + "…"


def moment(millis: int) -> datetime:
    """Milliseconds since 1970 as a time in UTC."""
    return EPOCH + millis * MILLISECOND


def millis(time: datetime) -> int:
    """A time as milliseconds since 1970; one without a zone is UTC."""
    if time.tzinfo is None:
        time = time.replace(tzinfo=timezone.utc)
    return (time - EPOCH) // MILLISECOND
