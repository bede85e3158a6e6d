"""Plans: what is kept, what it takes, what errors to expect and what is promised, before anything is counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Any, Literal, TypedDict

from . import _dpsw, _inputs
from ._checks import described, of_class, real, whole
from ._errors import ParameterError
from ._results import Report
from ._words import MILLISECOND, Item, percent

Window = int | str | timedelta
Keys = Iterable[Item] | int | Literal["found", "asked"]
Kind = Literal["text", "bytes", "integers"]
Unit = Literal["replace-one", "add-remove", "users"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """The parameters of the paper's method; what is left out is as in its experiments.

    >>> import dpsw
    >>> plan = dpsw.plan(window=100_000, epsilon=1, keys=1000, paper=dpsw.Paper(substreams=10))
    >>> plan.method
    'paper'
    """

    substreams: int | None = None
    """Substreams per window."""
    beta: float | None = None
    """The exponent of a substream's length, instead of ``substreams``."""
    alpha: float | None = None
    """The smooth factor of checkpoints."""
    grid: int | None = None
    """The steps in which checkpoints are considered; 0 for single items."""
    rows: int | None = None
    columns: int | None = None
    zeta: float | None = None
    """The relative error of a sketch, with ``eta`` instead of rows and columns."""
    eta: float | None = None
    """The failure probability of a sketch."""
    shares: tuple[float, ...] = ()
    """The budget shares: of the whole substream, then of each checkpoint."""

    def __post_init__(self) -> None:
        if self.substreams is not None and self.beta is not None:
            raise ParameterError("give substreams= or beta=, not both")
        if (self.zeta is None) != (self.eta is None):
            raise ParameterError("zeta= and eta= go together")
        if self.zeta is not None and (self.rows is not None or self.columns is not None):
            raise ParameterError("zeta= and eta= decide rows and columns: give one pair")


class Settings(TypedDict, total=False):
    """What else can be said of a plan; :func:`plan` explains each."""

    kind: Kind
    delta: float | None
    unit: Unit
    per_user: int
    lateness: int | str | timedelta
    clock: Literal["events", "caller"]
    expected_items: int | None
    expect: Iterable[float] | None
    retention: int
    memory: int | str | None
    paper: Paper | None


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise on the counters of one range of a substream; all that it takes to recalculate what an event costs."""

    law: str
    """``"discrete Laplace"`` or ``"discrete Gaussian"``."""
    variance: float
    """Of one counter."""
    scale: Fraction | None
    """Of a Laplace law, exactly: z has a probability proportional to exp(-abs(z) / scale)."""
    start: int | timedelta
    """Where the range starts in its substream."""
    end: int | timedelta
    """Where it ends, exclusive."""
    rows: int
    """How many counters of it an event raises by one."""


@dataclass(frozen=True, slots=True)
class Search:
    """How keys are found in a run of substreams; what is in a search is secret, and these numbers are not.

    At each check a key comes out if its count, three less, minus a lasting noise is at least 1, and with fresh noise added at
    least the threshold. Noise is at least i with probability exp(-i / scale).
    """

    share: Fraction
    """Of epsilon."""
    delta: float
    substreams: int
    """How long a search is."""
    checks: int
    """How many there are in a search, at most."""
    threshold: int
    lasting_scale: Fraction
    """Of the noise that a key keeps for the whole search."""
    fresh_scale: Fraction
    """Of the noise that is drawn at each check."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. ``print(plan)`` says what it does, takes and promises."""

    method: str
    window: int | timedelta
    """Items, or a time."""
    unit: str
    """What is protected."""
    epsilon: float
    delta: float
    keys: int | None
    """How many keys the list has; ``None`` where keys are found or asked for."""
    expected_items: int
    """About how many items a window holds."""
    substream: int | timedelta
    """Substreams are sealed, and answers change, as often as this."""
    rows: int
    columns: int
    bytes: int
    """What the counters of all substreams take."""
    resident_bytes: int
    """What the process will take for it, at most."""
    frequent_error: float | None
    """The mean error of the 50 most frequent items, if the n-th occurs 1/n as often as the first."""
    rare_error: float | None
    """The mean error of rarer ones."""
    detectable_share: float | None
    """An item stands out from the noise if it has this share of the window."""
    found_share: float | None
    """Where keys are found: the share of a window with which a key is usually found by its end."""
    contract: str
    """What is promised, in a sentence."""
    per_user: int | None
    """Where users are protected: how many items of each count in a substream."""
    noise: tuple[Noise, ...]
    """The noise of each range of a substream. With the paper's method an event counts in all ranges over its position; else in
    one of them, which its item and what was released before decide."""
    search: Search | None
    """Where keys are found: how."""
    _native: _dpsw.Plan = field(repr=False, compare=False)
    _kind: Kind = field(repr=False)

    def __str__(self) -> str:
        return self._native.text() + self._errors()

    def _errors(self) -> str:
        if self.frequent_error is None or self.rare_error is None:
            return ""
        return (
            f"\nerrors     the 50 most frequent items are off by about {self.frequent_error:,.0f}, rarer ones by "
            f"{self.rare_error:,.0f}, if the n-th occurs 1/n as often as the first"
            f"\n           an item stands out with {percent(self.detectable_share)} of the window"
        )

    def __reduce__(self) -> Any:
        raise TypeError("a Plan cannot be pickled or copied; make it again with dpsw.plan(...)")

    @classmethod
    def _of(cls, native: _dpsw.Plan, kind: Kind) -> Plan:
        said = native.describe()
        is_time = said["is_time"]
        step = MILLISECOND if is_time else 1
        window, substream = (said[name] * step for name in ("window", "substream"))
        same = ("expected_items", "method", "unit", "epsilon", "delta", "keys", "rows", "columns", "bytes", "resident_bytes", "contract", "per_user")
        errors = ("frequent_error", "rare_error", "detectable_share", "found_share")
        return cls(
            **{name: said[name] for name in same + errors},
            window=window,
            substream=substream,
            noise=tuple(_noise(noise, step) for noise in said["noise"]),
            search=None if said["search"] is None else _search(said["search"]),
            _native=native,
            _kind="integers" if said["is_integers"] else kind,
        )


def _noise(said: dict[str, Any], step: int | timedelta) -> Noise:
    scale = None if said["scale"] is None else Fraction(*said["scale"])
    changed: dict[str, Any] = {"scale": scale, "start": said["start"] * step, "end": said["end"] * step}
    return Noise(**said | changed)


def _search(said: dict[str, Any]) -> Search:
    ratios: dict[str, Any] = {name: Fraction(*said[name]) for name in ("share", "lasting_scale", "fresh_scale")}
    return Search(**said | ratios)


def plan(
    *,
    window: Window,
    epsilon: float | None = None,
    keys: Keys = "found",
    kind: Kind = "text",
    delta: float | None = None,
    unit: Unit = "replace-one",
    per_user: int = 1,
    lateness: int | str | timedelta = 0,
    clock: Literal["events", "caller"] = "events",
    expected_items: int | None = None,
    expect: Iterable[float] | None = None,
    retention: int = 1,
    memory: int | str | None = None,
    target_error: float | None = None,
    target_share: float | None = None,
    paper: Paper | None = None,
) -> Plan:
    """The best plan for a window and a budget; nothing is counted or spent.

    Args:
        window: the last so many items (``100_000``, ``"100k"``), or a time (``"15m"``, ``timedelta(hours=1)``).
        epsilon: the privacy budget. Without one, the smallest that reaches ``target_error`` or ``target_share``.
        keys: a public list of keys, which must not be made from the stream itself; a number n for the integers below it;
            ``"found"``: frequent keys are found in the stream, privately; ``"asked"``: only keys that somebody names.
        kind: what items are, where ``keys`` is no list: ``"text"``, ``"bytes"`` or ``"integers"``.
        delta: needed where keys are found (1e-10 if nothing is said); giving one allows Gaussian noise.
        unit: what is protected. ``"replace-one"``: what an event says; ``"add-remove"``: that it happened at all;
            ``"users"``: all that a user sends in a window, of which ``per_user`` items per substream count.
        lateness: how late events may come, in a window of time: ``"30s"``, a timedelta, or milliseconds.
        clock: ``"events"``: their times move the clock; ``"caller"``: :meth:`Sketch.advance` does.
        expected_items: about how many items a window of time holds.
        expect: expected counts, as a public guess that is never made from the stream.
        retention: how many windows of the past are kept.
        memory: the bytes that counters may take (``"400KB"``).
        target_error: the mean error of the 50 most frequent items to reach, in items. With an epsilon, the smallest memory
            that reaches it.
        target_share: the same as a share of their counts.
        paper: the paper's method instead of the tuned one.

    >>> import dpsw
    >>> plan = dpsw.plan(window=100_000, epsilon=1, keys=1000)
    >>> plan.epsilon, plan.delta, plan.keys
    (1.0, 0.0, 1000)
    >>> plan.contract
    'all that is ever released, taken together, has epsilon = 1, delta = 0 for one event replaced by another'
    >>> cheaper = dpsw.plan(window=100_000, keys=1000, target_error=100)
    >>> cheaper.epsilon < 1
    True
    """
    return make(
        window=window,
        epsilon=epsilon,
        keys=keys,
        kind=kind,
        delta=delta,
        unit=unit,
        per_user=per_user,
        lateness=lateness,
        clock=clock,
        expected_items=expected_items,
        expect=expect,
        retention=retention,
        memory=memory,
        target_error=target_error,
        target_share=target_share,
        paper=paper,
    )


# What :func:`plan` takes where nobody says more.
DEFAULTS: dict[str, Any] = {
    "epsilon": None,
    "keys": "found",
    "kind": "text",
    "delta": None,
    "unit": "replace-one",
    "per_user": 1,
    "lateness": 0,
    "clock": "events",
    "expected_items": None,
    "expect": None,
    "retention": 1,
    "memory": None,
    "target_error": None,
    "target_share": None,
    "paper": None,
    "step": 1,
    "is_last": False,
    "for_workers": False,
}


def make(**said: Any) -> Plan:
    """A plan from whatever was said; ``step`` and ``is_last`` are known where all items are, ``for_workers`` pins no keys."""
    if unknown := said.keys() - DEFAULTS.keys() - {"window"}:
        raise TypeError(f"unexpected keyword argument {sorted(unknown)[0]!r}")
    said = DEFAULTS | said
    _check(said)
    kind, keys, paper, memory = said["kind"], said["keys"], said["paper"], said["memory"]
    if kind not in ("text", "bytes", "integers"):
        raise ParameterError(f'kind must be "text", "bytes" or "integers", got {kind!r}')
    said |= {
        "window": _window(said["window"]),
        "keys": _keys(keys),
        "lateness": duration(said["lateness"]),
        "expect": None if said["expect"] is None else _expected(said["expect"]),
        "memory": _dpsw.size(memory) if isinstance(memory, str) else memory,
        "paper": None if paper is None else asdict(paper),
    }
    return Plan._of(_dpsw.plan(said), _kind(kind, keys))


REALS = ("epsilon", "delta", "target_error", "target_share")
WHOLES = {"per_user": 1, "retention": 1, "expected_items": 1, "step": 1}
OF_TIME = ("lateness", "clock", "expected_items")


def _check(said: dict[str, Any]) -> None:
    """Makes numbers of numbers, and refuses what does not go together."""
    said |= {name: real(name, said[name]) for name in REALS if said[name] is not None}
    said |= {name: whole(name, said[name], low) for name, low in WHOLES.items() if said[name] is not None}
    if said["memory"] is not None and not isinstance(said["memory"], str):
        said["memory"] = whole("memory", said["memory"], 1)
    if said["paper"] is not None:
        of_class("paper", said["paper"], Paper)
    if not length(said["window"])[1]:
        for name in OF_TIME:
            if said[name] != DEFAULTS[name]:
                raise ParameterError(f"{name}= is for windows of time, and this one counts items")


def _expected(counts: Any) -> list[float]:
    if isinstance(counts, str) or not isinstance(counts, Iterable):
        raise ParameterError(f"expect must be a list of counts, got {described(counts)}")
    return [real("an expected count", count) for count in counts]


def audit(plan: Plan, *, runs: int = 20_000, seals: int = 400_000, false_alarm: float = 2e-3) -> Report:
    """Attacks a plan: what it claims against what two streams that differ in one event show. Takes up to a minute.

    A correct build fails with probability ``false_alarm`` at most.

    >>> import dpsw
    >>> plan = dpsw.plan(window=10_000, epsilon=1, keys=100)
    >>> dpsw.audit(plan, runs=2_000, seals=36_000, false_alarm=1e-6).holds
    True
    """
    of_class("plan", plan, Plan)
    counts = whole("runs", runs), whole("seals", seals)
    return Report(**_dpsw.audit(plan._native, *counts, real("false_alarm", false_alarm)))


def duration(length: int | str | timedelta) -> int:
    """A stretch of time in milliseconds."""
    if isinstance(length, str):
        return _dpsw.millis(length)
    if isinstance(length, timedelta):
        return whole("a stretch of time in milliseconds", length // MILLISECOND)
    return whole("a stretch of time in milliseconds", length)


def length(window: Window) -> tuple[int, bool]:
    """Of a window: items, or milliseconds if the flag is set."""
    found = _window(window)
    if isinstance(found, str):
        return _dpsw.length(found)
    return (found[0], True) if isinstance(found, tuple) else (found, False)


def _window(window: Window) -> int | str | tuple[int]:
    if isinstance(window, timedelta):
        if window < MILLISECOND:
            raise ParameterError(f"a window of time has at least one millisecond, got {window}")
        return (window // MILLISECOND,)
    if isinstance(window, str):
        return window
    if str(getattr(window, "dtype", "")).startswith("timedelta64"):
        return _window(window.astype("timedelta64[ms]").item())  # type: ignore[attr-defined]
    try:
        return whole("window", window, 1)
    except ParameterError as error:
        raise ParameterError(f'{error}; a window is a number of items, a time such as "15m", or a timedelta') from None


def _keys(keys: Keys) -> Any:
    if isinstance(keys, range) and keys.start == 0 and keys.step == 1:
        return max(keys.stop, 0)
    if isinstance(keys, str):
        return keys
    if isinstance(keys, int) or not isinstance(keys, Iterable):
        return whole('keys, if they are no list and neither "found" nor "asked",', keys, 1)
    return _inputs.column(list(keys) if isinstance(keys, dict | set | frozenset) else keys)


def _kind(kind: Kind, keys: Any) -> Kind:
    """Keys that are given as bytes come back as bytes."""
    if isinstance(keys, list | tuple) and keys:
        return "bytes" if isinstance(keys[0], bytes) else "text"
    if getattr(getattr(keys, "dtype", None), "kind", "") == "S":
        return "bytes"
    return kind
