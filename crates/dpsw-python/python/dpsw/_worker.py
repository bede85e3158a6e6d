"""Beyond one process: workers of a trusted cluster count, one sketch adds the noise."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NoReturn

from . import _dpsw, _inputs
from ._checks import of_class
from ._errors import ParameterError
from ._inputs import OnError, TimeUnit
from ._plan import Plan
from ._words import millis


class Worker:
    """Counts its share of the events for a :class:`Sketch` with the same plan and ``stream_key``.

    The plan has a window of time and ``clock="caller"``, and neither finds keys nor protects users.

    >>> import dpsw, secrets
    >>> from datetime import datetime, timedelta
    >>> key, start = secrets.token_bytes(32), datetime(2026, 1, 1)
    >>> plan = dpsw.plan(window="1h", epsilon=1e6, keys=["a"], clock="caller", expected_items=1000)
    >>> sketch = dpsw.Sketch(plan, stream_key=key)
    >>> sketch.advance(start)
    >>> worker = dpsw.Worker(plan, stream_key=key)
    >>> for partial in worker.count(["a"] * 9, [start] * 9, between=(start, start + timedelta(minutes=1)), id=(1, 1, 1)):
    ...     _ = sketch.absorb(partial)
    >>> sketch.advance(start + timedelta(hours=1))
    >>> round(sketch.view().frequency("a").value)
    9
    """

    __slots__ = ("_native",)

    def __init__(self, plan: Plan, /, *, stream_key: bytes) -> None:
        of_class("plan", plan, Plan)
        if not isinstance(stream_key, bytes) or len(stream_key) != 32:
            raise ParameterError("a stream key has 32 bytes: secrets.token_bytes(32)")
        self._native = _dpsw.Worker(plan._native, stream_key)

    def count(
        self,
        items: Any,
        times: Any,
        *,
        between: tuple[datetime, datetime],
        id: tuple[int, int, int],
        time_unit: TimeUnit | None = None,
        on_error: OnError = "stop",
    ) -> list[Partial]:
        """Partial counters for each substream that ``between`` touches, also where nothing happened.

        ``between`` must be public, such as the minute that a step of an engine covers; events outside it are left out. ``id``
        names source, batch and partition: what is absorbed twice counts once.
        """
        start, end = between
        items = _inputs.column(items)
        found, unit = _inputs.times(times, time_unit)
        counted = self._native.count(id, (millis(start), millis(end)), items, found, (unit, 0, _inputs.skips(on_error)))
        return [Partial(partial) for partial in counted]


class Partial:
    """Exact counts of one substream. **Secret**: their bytes stay inside the trusted cluster."""

    __slots__ = ("_native",)

    def __init__(self, native: _dpsw.Partial, /) -> None:
        self._native = native

    @property
    def substream(self) -> int:
        """The number of the substream."""
        return self._native.substream

    def merge(self, other: Partial) -> None:
        """Adds what another worker, batch or partition counted in the same substream."""
        self._native.merge(other._native)

    def to_bytes(self) -> bytes:
        """The counts as **secret** bytes."""
        return self._native.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, *, plan: Plan) -> Partial:
        """The counts that these bytes were made of."""
        return cls(_dpsw.Partial.from_bytes(data, plan._native))

    def __repr__(self) -> str:
        return f"<Partial of substream {self.substream}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("partial counters are secret: send to_bytes() inside the trusted cluster")
