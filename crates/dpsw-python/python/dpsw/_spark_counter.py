"""What runs on the executors of Spark: each counts its partition into partial counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from . import _dpsw

# Partial counters of one substream in each row; the last row says what was left out, and the first and last time.
SCHEMA = "substream bigint, partial binary, late bigint, early bigint, first bigint, last bigint"
# Partial counters that take more memory than this are handed over, and the rest of the partition is counted anew.
MOST_BYTES = 256 << 20

# So many rows at least are counted at once.
ROWS_MIN = 64

# Workers of this process, by what they count: making one takes a look at all keys.
_workers: dict[bytes, _dpsw.Worker] = {}


@dataclass(frozen=True, slots=True)
class Task:
    """What an executor is told. **Secret**: it holds the stream key."""

    plan: Any
    """A broadcast of the plan's bytes."""
    digest: bytes
    """What they are known by."""
    key: bytes
    source: int
    step: int
    span: tuple[int, int]
    """The times that may count."""
    follows: bool
    """Whether times are public, so that substreams without events are left out."""
    arrays_max: int
    """So many arrays of counters fit in the memory that a partition may take."""

    def worker(self) -> _dpsw.Worker:
        if self.digest not in _workers:
            _workers.clear()
            _workers[self.digest] = _dpsw.Worker.of_view(self.plan.value, self.key)
        return _workers[self.digest]


def counter(task: Task) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function that ``mapInArrow`` takes: batches of item and time in, partial counters out."""

    def count(batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        return rows(task, 0 if context is None else context.partitionId(), batches)

    return count


def rows(task: Task, partition: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Counts the batches of a partition."""
    worker, part = task.worker(), 0
    late = early = 0
    first: int | None = None
    last: int | None = None
    counting = worker.start((task.source, task.step, partition), task.span, task.follows)
    for batch in _pieces(batches, lambda: task.arrays_max - counting.arrays):
        worker.add(counting, batch.column(0), batch.column(1))
        if task.arrays_max <= counting.arrays:
            partials, before, after, seen = worker.finish(counting)
            late, early = late + before, early + after
            first, last = _wider(first, last, seen)
            yield from map(_row, partials)
            part += 1
            counting = worker.start((task.source, task.step, partition | part << 32), task.span, task.follows)
    partials, before, after, seen = worker.finish(counting)
    first, last = _wider(first, last, seen)
    yield from map(_row, partials)
    yield _batch(None, None, late + before, early + after, first, last)


def _pieces(batches: Iterable[Any], room: Callable[[], int]) -> Iterator[Any]:
    """Batches that open no more arrays of counters than there is room for: an event opens one at most."""
    for batch in batches:
        done = 0
        while done < batch.num_rows:
            rows = max(room(), ROWS_MIN)
            yield batch.slice(done, rows)
            done += rows


def _wider(first: int | None, last: int | None, seen: tuple[int, int] | None) -> tuple[int | None, int | None]:
    if seen is None:
        return first, last
    return (seen[0] if first is None else min(first, seen[0])), (seen[1] if last is None else max(last, seen[1]))


def _row(partial: tuple[int, bytes]) -> Any:
    return _batch(*partial, 0, 0, None, None)


def _batch(substream: int | None, partial: bytes | None, *numbers: int | None) -> Any:
    import pyarrow

    names = ["substream", "partial", "late", "early", "first", "last"]
    columns = [pyarrow.array([substream], pyarrow.int64()), pyarrow.array([partial], pyarrow.binary())]
    columns += [pyarrow.array([number], pyarrow.int64()) for number in numbers]
    return pyarrow.RecordBatch.from_arrays(columns, names)
