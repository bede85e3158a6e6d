"""Private counts on Spark: executors count, the driver adds the noise once and publishes views.

::

    top = dpsw.spark.private_top(
        events, item="url", time="ts", window="1 hour", epsilon=1, domain=urls, source="shop", state="shop.state", publish=print
    )
    top.top(10)

It takes pyspark 4 and pyarrow on the driver and on the executors, and this package on both. ``docs/guide/scale.md`` says how to deploy
it, PRIVACY.md what the cluster is trusted with.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time as clock
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _dpsw, _spending
from ._checks import described, real, whole
from ._errors import InputError, ParameterError, StateError
from ._plan import Window, duration, length, make
from ._results import Rows
from ._spark_counter import MOST_BYTES, SCHEMA, Task, counter
from ._view import ROWS, View
from ._words import millis

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

Publish = Callable[[View], object] | str | os.PathLike[str] | tuple[Any, str]

# Items of these types of Spark are counted as they are.
INTEGERS = ("tinyint", "smallint", "int", "bigint")
STRINGS = ("string", "binary")
TIMES = ("timestamp", "timestamp_ntz", "date")
# The seed of noise, for tests with a wheel that takes one; with others there is no stream.
_seed: int | None = None
# A range whose times are private has so many substreams at most.
SUBSTREAMS_MAX = 1000
HOUR = 3_600_000
# Lateness is this part of the window if nobody says.
LATENESS_PART = 60


class PrivateTop:
    """A stream that a cluster counts; what is published of it is sealed, durable and never redrawn."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self._query: StreamingQuery | None = None

    @property
    def query(self) -> StreamingQuery | None:
        """Spark's own handle on the query; ``None`` for a table."""
        return self._query

    def view(self) -> View:
        """What can be seen now."""
        return self._stream.view()

    def top(self, count: int = ROWS, *, trend: bool = False) -> Rows:
        """The most frequent items of the window."""
        return self.view().top(count, trend=trend)

    @property
    def late(self) -> int | None:
        """How many events came after their substream was sealed, and count nowhere; ``None`` where that is private."""
        return self._stream.left_out(0)

    @property
    def early(self) -> int | None:
        """How many events had no time, or one too far ahead, and count nowhere; ``None`` where that is private."""
        return self._stream.left_out(1)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Waits until the query stops, or so many seconds; whether it stopped. What stopped it is raised."""
        if self._query is None:
            return True
        try:
            stopped = self._query.awaitTermination(timeout) is not False
        finally:
            if not self._query.isActive:
                self._stream.close()
        self._stream.check()
        return stopped

    def process_all_available(self) -> None:
        """Waits until everything that the source has now is counted."""
        if self._query is not None:
            self._query.processAllAvailable()
            self._stream.check()

    def stop(self) -> None:
        """Stops the query. What is open is kept in the state, and goes on when it is started again."""
        if self._query is not None:
            self._query.stop()
        self._stream.close()
        self._stream.check()

    def __repr__(self) -> str:
        return f"<PrivateTop: {self.view()!r}>"


def private_top(
    df: DataFrame,
    *,
    item: str | Column,
    time: str | Column,
    window: Window,
    epsilon: float,
    domain: Any,
    source: str,
    state: str | os.PathLike[str] | None = None,
    publish: Publish | Iterable[Publish] = (),
    lateness: int | str | timedelta | None = None,
    unit: Literal["replace-one", "add-remove"] = "replace-one",
    expected_items: int | None = None,
    expect: Iterable[float] | None = None,
    delta: float | None = None,
    retention: int = 1,
    memory: int | str | None = None,
    end: datetime | None = None,
    ahead: int | str | timedelta | None = None,
    checkpoint: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    marker: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    budget: float | None = None,
) -> PrivateTop:
    """Counts a streaming DataFrame for ever, or a table once, with noise added once on the driver.

    Args:
        df: a streaming DataFrame, whose query is started here; or a table, which is counted now as a stream that is over.
        item: the column with the items: text, binary or integers from 0.
        time: the column with their times: timestamps or dates.
        window: the time that answers are about: ``"1 hour"``, ``"15m"``, a timedelta.
        epsilon: the privacy budget, for one event replaced by another.
        domain: the public keys: a list, a DataFrame with one column, a number n for the integers below it, or ``"asked"`` for keys
            that somebody names. It must not be made from the stream itself. Keys cannot be found on a cluster.
        source: the name of these events, wherever they are counted; a ledger knows them by it.
        state: the folder of the driver's state, on a disk that the next driver sees too. It is secret. A table needs none; with one, a
            table that was counted before is read back and spends nothing.
        publish: who gets each new view: a function, a path (a folder gets a file for each view, ``x.view`` is replaced), or a
            :class:`dpsw.Client` with the name of a stream: ``(client, "shop")``. What is published may be repeated after a restart.
        lateness: how long late events are waited for; a sixtieth of the window if nothing is said.
        unit: ``"replace-one"`` protects which item an event has; ``"add-remove"`` also whether there was one, and then the driver's
            clock decides what is sealed, not the times of events.
        expected_items: about how many items a window holds, a public guess; of a table it is counted.
        expect, delta, retention, memory: as in :func:`dpsw.plan`.
        end: of a table, the time at which it is over (without a zone: UTC); its latest time if nothing is said. ``"add-remove"``
            needs it.
        ahead: events whose time lies further ahead of the driver's clock than this do not count; the window, and an hour at most, if
            nothing is said.
        checkpoint: where Spark keeps its progress; a folder in ``state`` if nothing is said. State and checkpoint belong together.
        trigger: what ``DataStreamWriter.trigger`` takes: ``{"processingTime": "10 seconds"}``, ``{"availableNow": True}``.
        marker: a folder that remembers what was shown, ``state`` with ``.marker`` behind it if nothing is said. Keep it out of backups
            of the state.
        key: a file with the keys of the stream, made if it is not there; ``key`` in ``state`` if nothing is said.
        ledger, budget: a file that remembers what was spent on ``source``, and the most that may be; see :class:`dpsw.Sketch`.
    """
    _check_frame(df)
    if unit not in ("replace-one", "add-remove"):
        raise ParameterError(f'unit must be "replace-one" or "add-remove" on a cluster, got {unit!r}')
    if isinstance(domain, str) and domain != "asked":
        raise ParameterError(
            f'domain must be a list of public keys, a number or "asked", got {domain!r}: keys cannot be found on a cluster, see docs/guide/scale.md'
        )
    if not isinstance(source, str) or not source:
        raise ParameterError(f"source must be the name of these events, got {described(source)}")
    events, kind, names = _columns(df, item, time)
    span, is_time = length(_spoken(window))
    if not is_time:
        raise ParameterError("a cluster counts windows of time: the last so many items have no order on several machines")
    if df.isStreaming and state is None:
        raise ParameterError("a streaming DataFrame needs state=: the folder in which the driver keeps what it has sealed")
    end_time = _end(df, end, unit)
    keys = _keys(domain, kind)
    wait = span // LATENESS_PART if lateness is None else duration(lateness)
    said: dict[str, Any] = {
        "epsilon": real("epsilon", epsilon),
        "delta": None if delta is None else real("delta", delta),
        "unit": unit,
        "lateness": wait,
        "expect": None if expect is None else [real("an expected count", count) for count in expect],
        "retention": whole("retention", retention, 1),
        "memory": _dpsw.size(memory) if isinstance(memory, str) else memory,
    }
    # A table's plan follows from how many events it has, which may differ from run to run of the same job: not what was asked.
    told = {"source": source, **names, "window": span, **said, "expected_items": expected_items}
    told |= {"domain": _digest(keys, kind), "counts": "a stream" if df.isStreaming else "a table", "end": end_time}
    account = _spending.account(ledger, source if ledger is not None else None, budget)
    limits = _Limits(wait, min(span, HOUR) if ahead is None else duration(ahead), unit == "replace-one", source)
    planned = _Planned({**said, "window": timedelta(milliseconds=span), "keys": keys, "kind": kind}, account)
    planned.expected = expected_items
    if not df.isStreaming and limits.is_public:
        planned.look = lambda: _survey(events, _last(events, end_time, limits), span)
    publishers = _publishers(publish)
    places = None if state is None else _places(Path(state).absolute(), marker, key)
    where = checkpoint or ("" if state is None else Path(state).absolute().as_uri() + "/checkpoint")
    stream = _Stream(_open(places, told, planned, kind), publishers, limits)
    top = PrivateTop(stream)
    try:
        if df.isStreaming:
            top._query = stream.start(events, where, trigger)
        else:
            stream.count_table(events, end_time)
    except BaseException:
        stream.close()
        raise
    return top


@dataclass(frozen=True, slots=True)
class _Limits:
    """What decides which events count."""

    lateness: int
    ahead: int
    is_public: bool
    """Whether times are."""
    source: str


class _Planned:
    """Makes the plan where a stream begins, and charges it."""

    def __init__(self, said: dict[str, Any], account: _spending.Account | None) -> None:
        self.said = said
        self.account = account
        self.expected: int | None = None
        self.look: Callable[[], int | None] = lambda: None

    def __call__(self) -> _dpsw.Plan:
        expected = self.look() if self.expected is None else self.expected
        plan = make(**self.said, clock="caller", expected_items=expected, for_workers=True)
        if self.account is not None:
            _spending.note(plan, _dpsw.spend(plan._native, self.account))
        return plan._native


class _Stream:
    """The driver's side: one sealer, the steps of a query, and who gets views."""

    def __init__(
        self,
        sealer: _dpsw.Sealer,
        publishers: list[Callable[[View], object]],
        limits: _Limits,
    ) -> None:
        self.sealer: _dpsw.Sealer | None = sealer
        self.publishers = publishers
        self.limits, self.is_public = limits, limits.is_public
        self.source = int.from_bytes(hashlib.sha256(limits.source.encode()).digest()[:8], "little")
        # Why the clock could not go on.
        self.failure: Exception | None = None
        self.lock = threading.Lock()
        self.seen = View(sealer.view())
        self.told = sealer.left_out()
        # Whether publishers have not got what can be seen now: after a restart nobody knows.
        self.is_new = True
        # Where times are private: what is seen from the next instant of the clock on.
        self.ready: View | None = None
        plan = sealer.plan().describe()
        self.substream: int = plan["substream"]
        # The instants of the driver's clock are multiples of this, in milliseconds.
        self.grid = min(max(self.substream // 16, 50), 1000)
        self.arrays_max = max(MOST_BYTES // (4 * plan["rows"] * plan["columns"]), 1)
        self.plan, self.key = sealer.task()
        self.digest = hashlib.sha256(self.plan + self.key).digest()
        self.broadcast: Any = None
        if sealer.warning is not None:
            warnings.warn(sealer.warning, RuntimeWarning, stacklevel=4)

    def view(self) -> View:
        return self.seen

    def left_out(self, which: Literal[0, 1]) -> int | None:
        return None if self.told is None else self.told[which]

    def running(self) -> _dpsw.Sealer:
        if self.sealer is None:
            raise StateError("the stream was stopped; call private_top again to go on with it")
        return self.sealer

    def check(self) -> None:
        """Raises what the clock ran into."""
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """Lets go of the state, so that another driver can go on."""
        with self.lock:
            if self.sealer is not None:
                self.sealer.close()
            self.sealer = None

    def start(self, events: DataFrame, checkpoint: str, trigger: Mapping[str, Any] | None) -> StreamingQuery:
        self.publish()
        writer = events.writeStream.foreachBatch(self.step).option("checkpointLocation", checkpoint)
        if not self.is_public:
            self.tick()
        query = (writer if trigger is None else writer.trigger(**trigger)).start()
        threading.Thread(target=self.follow, args=(query,), name="dpsw", daemon=True).start()
        return query

    def follow(self, query: StreamingQuery) -> None:
        """Seals by the driver's clock where times are private, and lets go of the state when the query is over."""
        while query.isActive:
            clock.sleep(0.2 if self.is_public else (self.grid - _now() % self.grid) / 1000)
            if not self.is_public:
                try:
                    self.tick()
                except Exception as error:
                    self.failure = error
                    query.stop()
        self.close()

    def tick(self) -> None:
        """An instant of the driver's clock: shows what was sealed by the one before, without waiting for a step, and seals."""
        ready, self.ready = self.ready, None
        if ready is not None:
            self.seen, self.is_new = ready, True
        self.hand_out()
        with self.lock:
            if self.sealer is not None and self.sealer.follow(_now() - self.limits.lateness, self.grid) == "sealed":
                self.ready = View(self.sealer.view())

    def step(self, batch: DataFrame, number: int) -> None:
        """A micro-batch of Spark, which may come again after a failure."""
        with self.lock:
            sealer = self.running()
            sealer.check_engine(_engine(batch))
            last = sealer.last_step()
            start = max(sealer.sealed_until(), sealer.view().retained[0])
        if last is None or last < number:
            span, clock = self.span(start), (0, 0)
            partials, first, newest, left_out = self.count(batch, number, span)
            if self.is_public and first is not None and newest is not None:
                clock = (first, max(newest - self.limits.lateness, 1))
            with self.lock:
                sealer = self.running()
                self.is_new |= sealer.take(_engine(batch), number, partials, clock, left_out) == "sealed"
                self.told = sealer.left_out()
        # Where times are private, so is whether there was a step: the clock alone publishes.
        if self.is_public:
            self.publish()

    def span(self, start: int) -> tuple[int, int]:
        """Which times may count: where they are private, the driver's clock alone decides."""
        if self.is_public:
            return max(start, 1), _now() + self.limits.ahead
        return start, (_now() // self.substream + 2) * self.substream

    def count(
        self, batch: DataFrame, number: int, span: tuple[int, int]
    ) -> tuple[list[tuple[int, bytes]], int | None, int | None, tuple[int, int]]:
        """Partial counters, the first and last time, and how many events were left out."""
        if self.broadcast is None:
            self.broadcast = batch.sparkSession.sparkContext.broadcast(self.plan)
        task = Task(self.broadcast, self.digest, self.key, self.source, number, span, self.is_public, self.arrays_max)
        table = batch.mapInArrow(counter(task), SCHEMA).toArrow()
        columns = {name: table.column(name).to_pylist() for name in ("substream", "late", "early", "first", "last")}
        counted = zip(columns["substream"], table.column("partial"), strict=True)
        partials = [(substream, partial.as_py()) for substream, partial in counted if substream is not None]
        first = min((time for time in columns["first"] if time is not None), default=None)
        newest = max((time for time in columns["last"] if time is not None), default=None)
        return partials, first, newest, (sum(columns["late"]), sum(columns["early"]))

    def count_table(self, events: DataFrame, end: int | None) -> None:
        """A table is one step of a stream that is over after it."""
        with self.lock:
            sealer = self.running()
            if not sealer.is_finished():
                sealer.check_engine("table")
                if sealer.last_step() is None:
                    self.count_rows(sealer, events, _last(events, end, self.limits))
                # The step has moved the clock to the end.
                sealer.finish(1)
            self.told = sealer.left_out()
        self.publish()
        self.close()

    def count_rows(self, sealer: _dpsw.Sealer, events: DataFrame, end: int) -> None:
        """What a view of its end can show, and the window before, by which frequent keys are known."""
        from pyspark.sql import functions

        plan = sealer.plan().describe()
        kept = (plan["retention"] + 1) * plan["window"]
        start = max(end - kept, 1) // self.substream * self.substream
        if not self.is_public and SUBSTREAMS_MAX < -(-(end - start) // self.substream):
            raise ParameterError(f"retention={plan['retention']} is too long for a table with private times: {SUBSTREAMS_MAX} substreams at most")
        rows = events.where(functions.unix_millis("time").between(start, end - 1))
        partials, first, _, left_out = self.count(rows, 0, (max(start, 1), end))
        begin = start if not self.is_public or first is None else first
        sealer.take("table", 0, partials, (max(begin, 1), end), left_out)

    def publish(self) -> None:
        """Hands out the view if nobody has got it yet."""
        with self.lock:
            if self.sealer is not None:
                self.seen = View(self.sealer.view())
        self.hand_out()

    def hand_out(self) -> None:
        view, is_new = self.seen, self.is_new
        self.is_new = False
        if not is_new or view.covered.start == view.covered.end:
            return
        try:
            for publisher in self.publishers:
                publisher(view)
        except BaseException:
            self.is_new = True
            raise


def _open(places: tuple[str, str, str] | None, told: dict[str, Any], planned: _Planned, kind: str) -> _dpsw.Sealer:
    said = {name: str(value) for name, value in told.items()}
    return _dpsw.Sealer(places, said, planned, kind == "bytes", _seed)


def _places(state: Path, marker: str | os.PathLike[str] | None, key: str | os.PathLike[str] | None) -> tuple[str, str, str]:
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    marked = state.with_name(state.name + ".marker") if marker is None else Path(marker)
    return str(state), str(marked), str(state / "key" if key is None else Path(key))


def _check_frame(df: Any) -> None:
    if type(df).__module__.startswith("pyspark.sql.connect"):
        raise InputError("this is a DataFrame of Spark Connect, whose driver is elsewhere: run the job where the driver is")
    if not hasattr(df, "mapInArrow"):
        raise InputError(f"df must be a DataFrame of Spark, got {described(df)}")


def _columns(df: DataFrame, item: str | Column, time: str | Column) -> tuple[DataFrame, str, dict[str, str]]:
    """The DataFrame with the columns ``item`` and ``time``, the kind of items, and what the columns were called."""
    from pyspark.sql import functions

    def named(name: str, column: str | Column) -> Column:
        if isinstance(column, str) and column not in df.columns:
            raise InputError(f"there is no column {column!r} for {name}=; the DataFrame has {', '.join(df.columns)}")
        return functions.col(column) if isinstance(column, str) else column

    of_item, of_time = named("item", item), named("time", time)
    called = df.select(of_item, of_time).columns
    names: dict[str, str] = {"item": called[0], "time": called[1]}
    events = df.select(of_item.alias("item"), of_time.alias("time"))
    types = dict(events.dtypes)
    # As Spark itself does, dates and times without a zone are taken in the zone of the session.
    events = events.select("item", functions.col("time").cast("timestamp").alias("time"))
    if types["item"] not in INTEGERS + STRINGS:
        raise InputError(f"items must be text, binary or integers, got {types['item']}; cast the column")
    if types["time"] not in TIMES:
        raise InputError(f"times must be timestamps or dates, got {types['time']}; cast the column: timestamp_millis(ts)")
    kinds = {"string": "text", "binary": "bytes"}
    return events, kinds.get(types["item"], "integers"), names


def _spoken(window: Window) -> Window:
    """``"1 hour"``, as people of Spark write it, as ``"1h"``."""
    if not isinstance(window, str):
        return window
    number, _, word = window.strip().partition(" ")
    units = {"millisecond": "ms", "second": "s", "minute": "m", "hour": "h", "day": "d", "week": "w"}
    unit = units.get(word.strip().removesuffix("s"))
    return window if unit is None or not number.isdecimal() else number + unit


def _keys(domain: Any, kind: str) -> Any:
    """The public keys as a list, a number or a word."""
    if isinstance(domain, str):
        return domain
    if hasattr(domain, "mapInArrow"):
        if len(domain.columns) != 1:
            raise InputError(f"a DataFrame of keys has one column, this one has {', '.join(domain.columns)}")
        keys = domain.toArrow().column(0).to_pylist()
    elif hasattr(domain, "__index__"):
        keys = index(domain)
    elif isinstance(domain, bytes | bytearray) or hasattr(domain, "columns"):
        raise InputError(f"domain must be a list of public keys, got {described(domain)}")
    else:
        # Of pyarrow, numpy and pandas, or any other.
        listed = getattr(domain, "to_pylist", None) or getattr(domain, "tolist", None)
        keys = list(domain) if listed is None else listed()
    are_integers = not isinstance(keys, list) or all(isinstance(key, int) for key in keys)
    are_strings = isinstance(keys, list) and all(isinstance(key, str | bytes) for key in keys)
    if not (are_integers if kind == "integers" else are_strings):
        raise InputError(f"the items are {kind}, and the keys of domain= are not")
    return keys


def _digest(keys: Any, kind: str) -> str:
    """The same for the same keys in any order: a set or a DataFrame has none."""
    if not isinstance(keys, list):
        return f"{keys} of {kind}"
    digest = hashlib.sha256()
    for data in sorted({key if isinstance(key, bytes) else str(key).encode() for key in keys}):
        digest.update(len(data).to_bytes(8, "little") + data)
    return f"{len(keys)} keys of {kind}, {digest.hexdigest()[:16]}"


def _end(df: DataFrame, end: datetime | None, unit: str) -> int | None:
    if end is not None and not isinstance(end, datetime):
        raise ParameterError(f"end must be a datetime, got {described(end)}")
    if end is not None and df.isStreaming:
        raise ParameterError("end= is for tables; a stream goes on")
    if end is None and not df.isStreaming and unit == "add-remove":
        raise ParameterError('unit="add-remove" needs end=: a public time at which the table is over, as that of its last event is private')
    return None if end is None else millis(end)


def _last(events: DataFrame, end: int | None, limits: _Limits) -> int:
    """Where a table is over: its latest time, but for those that lie too far ahead."""
    if end is not None:
        return end
    from pyspark.sql import functions

    times = functions.unix_millis("time")
    (row,) = events.where(times < _now() + limits.ahead).select(functions.max(times)).collect()
    if row[0] is None or row[0] < 1:
        raise InputError("the table has no times after 1970, up to now")
    return int(row[0]) + 1


def _survey(events: DataFrame, end: int, window: int) -> int:
    """How many items a window at the end of a table holds, which is public where arrivals are."""
    from pyspark.sql import functions

    times = functions.unix_millis("time")
    return max(int(events.where(times.between(end - window, end - 1)).count()), 1)


def _publishers(publish: Any) -> list[Callable[[View], object]]:
    if callable(publish) or isinstance(publish, str | os.PathLike):
        publish = [publish]
    elif isinstance(publish, tuple) and len(publish) == 2 and hasattr(publish[0], "publish"):
        publish = [publish]
    return [_publisher(one) for one in publish]


def _publisher(publish: Any) -> Callable[[View], object]:
    if isinstance(publish, tuple) and len(publish) == 2 and hasattr(publish[0], "publish"):
        client, name = publish
        return lambda view: client.publish(name, view)
    if isinstance(publish, str | os.PathLike):
        path = Path(publish)
        return lambda view: _write(path, view)
    if callable(publish):
        return publish  # type: ignore[no-any-return]
    raise ParameterError(f"publish= takes functions, paths and (client, stream), got {described(publish)}")


def _write(path: Path, view: View) -> None:
    """A file is replaced, whole or not at all; a folder gets one more."""
    if path.suffix != ".view":
        path.mkdir(parents=True, exist_ok=True)
        path = path / f"{view.covered.end:%Y-%m-%dT%H-%M-%S.%f}Z.view"
    new = path.with_suffix(".new")
    view.save(new)
    new.replace(path)


def _engine(batch: DataFrame) -> str:
    """The query by the name that its checkpoint gives it, which survives restarts."""
    name = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if name is None:
        raise StateError("Spark does not say which query this step is of")
    return str(name)


def _now() -> int:
    return int(clock.time() * 1000)
