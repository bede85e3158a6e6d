"""Streams whose truth is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

import pyarrow
import pyarrow.parquet

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
KEYS = 64


@dataclass(frozen=True)
class Batch:
    """The events of one step."""

    items: list[int]
    times: list[datetime]

    def table(self) -> pyarrow.Table:
        times = pyarrow.array(self.times, pyarrow.timestamp("us", "UTC"))
        return pyarrow.table({"item": pyarrow.array(self.items, pyarrow.int64()), "ts": times})


def batches(count: int, size: int = 500, seed: int = 1) -> list[Batch]:
    """Skewed items; each step covers two minutes, out of order, and some events come up to 20 seconds late."""
    random, found = Random(seed), []
    for number in range(count):
        items = [min(int(random.paretovariate(1.0)) - 1, KEYS - 1) for _ in range(size)]
        begin = START + timedelta(minutes=2 * number)
        slack = 20.0 if number else 0.0
        times = [begin + timedelta(milliseconds=int(1000 * random.uniform(-slack, 120))) for _ in range(size)]
        found.append(Batch(items, times))
    return found


def closing(batches: list[Batch]) -> Batch:
    """One event of no interest, far enough ahead that everything before it is sealed."""
    return Batch([KEYS - 1], [START + timedelta(minutes=2 * len(batches) + 30)])


def write(folder: Path, batches: list[Batch]) -> None:
    """A file for each step, in the order of their times of change, by which Spark takes them."""
    import os

    folder.mkdir()
    for number, batch in enumerate(batches):
        path = folder / f"{number:04}.parquet"
        pyarrow.parquet.write_table(batch.table(), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def truth(batches: list[Batch]) -> Counter[int]:
    return Counter(item for batch in batches for item in batch.items)
