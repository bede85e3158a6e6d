"""Executors and drivers that are killed in the middle of a stream: every event counts once, and what was released stays."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cluster import Cluster, Driver, kill, running, wait_for
from events import KEYS, batches, closing, truth, write
from services import Home
from services import running as service

import dpsw

STEPS = 10
KILLS = int(os.environ.get("DPSW_KILLS", "2"))


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("machines")) as cluster:
        yield cluster


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    (tmp_path / "service").mkdir()
    with service(tmp_path / "service") as home:
        yield home


def driver(machines: Cluster, folder: Path, steps: int, **said: Any) -> Driver:
    stream = batches(steps)
    write(folder / "events", [*stream, closing(stream)])
    usual = {"epsilon": 1, "domain": KEYS, "master": machines.url, "events": "events", "views": "views", "state": "state"}
    return Driver(folder, **usual | {"checkpoint": str(folder / "checkpoint")} | said)


def views(folder: Path) -> list[dpsw.View]:
    """All that were published, in their order."""
    return [dpsw.View.open(path) for path in sorted((folder / "views").glob("*.view"))]


def counted(view: dpsw.View) -> dict[int, int]:
    """How many events each substream holds."""
    return {substream: items for substream, place, items, _ in view._native.sealed() if place == 0 and items}


def exact(view: dpsw.View) -> dict[int, int]:
    """How many it should hold."""
    times = [time for batch in batches(STEPS) for time in batch.times]
    return dict(Counter(int(1000 * time.timestamp()) // view._native.substream for time in times))


def test_a_killed_driver_goes_on_where_the_state_is(machines: Cluster, home: Home, tmp_path: Path) -> None:
    """The service refuses a view whose sealed counters are not those that it was sent before."""
    job = driver(machines, tmp_path, STEPS, service=home.url, token=home.token)
    random, killed = Random(3), 0
    for _ in range(KILLS):
        job.start()
        before = job.steps()
        random_steps = random.randint(1, 3)
        wait_for("a step", lambda: before + random_steps <= job.steps() or job.process.poll() is not None)
        killed += job.process.poll() is None
        job.kill()
    assert 0 < killed
    job.start()
    job.wait()
    released: dict[tuple[int, int], object] = {}
    for view in views(tmp_path):
        for substream, place, items, counters in view._native.sealed():
            assert released.setdefault((substream, place), (items, counters)) == (items, counters)
    last = views(tmp_path)[-1]
    assert counted(last) == exact(last)
    shown = dpsw.Client(home.url, home.token).stream("clicks")
    assert [row.item for row in shown.top(5)] == [row.item for row in last.top(5)]


def test_killed_executors_count_nothing_twice(machines: Cluster, tmp_path: Path) -> None:
    job = driver(machines, tmp_path, STEPS, epsilon=1e6)
    job.start()
    for number in range(3):
        wait_for("a step", lambda: 2 * number < job.steps() and machines.executors(), job.process)
        kill(machines.executors()[0])
    job.wait()
    last = views(tmp_path)[-1]
    assert counted(last) == exact(last)
    cells = Counter()
    for _, place, _, counters in last._native.sealed():
        cells.update({item: count for item, count in enumerate(counters) if place == 0})
    assert sum(cells.values()) <= sum(truth(batches(STEPS)).values())


def test_a_second_driver_is_refused_while_the_first_lives(machines: Cluster, tmp_path: Path) -> None:
    job = driver(machines, tmp_path, 4)
    job.start()
    wait_for("the state", lambda: (tmp_path / "state/lock").exists() and 0 < job.steps(), job.process)
    with pytest.raises(dpsw.StateError, match="in use by another process"):
        places = [str(tmp_path / "state"), str(tmp_path / "state.marker"), str(tmp_path / "state/key")]
        dpsw._dpsw.Sealer(tuple(places), {}, lambda: None, False)
    job.kill()
