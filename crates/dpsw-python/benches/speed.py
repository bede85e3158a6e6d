"""How fast `extend` is, beside the Rust library and datasketches' count-min on the same data, in one run.

    target/python/bin/python crates/dpsw-python/benches/speed.py

Rust and Python take turns, so that whatever else the machine does disturbs both; ratios are of the best rounds.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasketches
import numpy
import pandas
import polars
import pyarrow

import dpsw

ROOT = Path(__file__).parents[3]
KEYS, WINDOW, TURNS, ROUNDS = 25_600, 1_000_000, 4, 3
INTEGERS, TEXTS, SLOW = 20_000_000, 5_000_000, 300_000


def program() -> Path:
    """The bench of the library, built as the wheel is."""
    command = ["cargo", "bench", "-p", "dpsw-python", "--bench", "library", "--no-run", "--message-format=json"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    built = [line["executable"] for line in map(json.loads, lines) if line.get("target", {}).get("name") == "library"]
    return Path(built[-1])


def best(act: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Seconds of the best round."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times)


def counted(plan: dpsw.Plan, items: Any) -> float:
    """Nanoseconds per item of `extend`."""

    def round_() -> float:
        sketch = dpsw.Sketch(plan)
        start = time.perf_counter()
        sketch.extend(items)
        return time.perf_counter() - start

    return min(round_() for _ in range(ROUNDS)) / len(items) * 1e9


def compare(library: Path, name: str, plan: dpsw.Plan, items: Any, arguments: list[str]) -> None:
    """Python and Rust in turns."""
    rust, python = [], []
    for _ in range(TURNS):
        told = subprocess.run([library, *arguments], capture_output=True, text=True, check=True)
        rust.append(float(told.stdout))
        python.append(counted(plan, items))
    print(f"{name:<52} {min(python):6.2f} {min(rust):6.2f} {min(rust) / min(python):6.2f}", flush=True)


def main() -> None:
    chance = numpy.random.default_rng(1)
    # The n-th key has about 1/n of the count of the first.
    weights = 1 / numpy.arange(1, KEYS + 1)
    integers = chance.choice(KEYS, INTEGERS, p=weights / weights.sum())
    names = numpy.array([f"/page/{key}" for key in range(KEYS)], dtype=object)
    texts = names[integers[:TEXTS]].tolist()
    strings = pyarrow.array(texts)
    library = program()
    with tempfile.TemporaryDirectory() as folder:
        of_integers, of_texts = Path(folder, "integers"), Path(folder, "texts")
        of_integers.write_bytes(integers.astype("<u8").tobytes())
        of_texts.write_text("\n".join(texts))
        print(f"{'ns per item':<52} {'python':>6} {'rust':>6} {'ratio':>6}")
        own = dpsw.plan(window=WINDOW, epsilon=1, keys=KEYS)
        shared = dpsw.plan(window=WINDOW, epsilon=1, keys="asked", kind="integers")
        listed = dpsw.plan(window=WINDOW, epsilon=1, keys=names.tolist())
        asked = dpsw.plan(window=WINDOW, epsilon=1, keys="asked")
        found = dpsw.plan(window=WINDOW, epsilon=1)
        compare(library, "numpy int64, counters for each key", own, integers, ["integers", "own", str(of_integers)])
        compare(library, "numpy int64, shared counters", shared, integers, ["integers", "shared", str(of_integers)])
        compare(library, "pyarrow strings, counters for each key", listed, strings, ["text", "own", str(of_texts)])
        compare(library, "pyarrow strings, shared counters", asked, strings, ["text", "shared", str(of_texts)])
        compare(library, "pyarrow strings, found keys", found, strings, ["text", "found", str(of_texts)])
    others(asked, found, texts, strings)
    datasketches_beside(integers, texts)


def others(asked: dpsw.Plan, found: dpsw.Plan, texts: list[str], strings: pyarrow.Array) -> None:
    """What else holds strings."""
    held: dict[str, Any] = {
        "list of str": texts,
        "pandas Series of str": pandas.Series(texts),
        "polars Series of str": polars.Series(texts),
        "pyarrow dictionary": strings.dictionary_encode(),
        "numpy array of str": numpy.array(texts),
    }
    for name, items in held.items():
        print(f"{name + ', shared counters':<52} {counted(asked, items):6.2f}", flush=True)


def datasketches_beside(integers: Any, texts: list[str]) -> None:
    """Count-min of datasketches, which takes items one by one and has neither a window nor privacy."""
    for name, items in (("int", integers[:SLOW].tolist()), ("str", texts[:SLOW])):
        sketch = datasketches.count_min_sketch(4, 6_666)

        def act() -> None:
            for item in items:
                sketch.update(item)

        print(f"{'datasketches count_min_sketch, ' + name:<52} {best(act) / SLOW * 1e9:6.1f}", flush=True)


if __name__ == "__main__":
    main()
