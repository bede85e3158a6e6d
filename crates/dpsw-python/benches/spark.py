"""How fast a real cluster counts, beside Spark's own ``groupBy(window, item).count()`` on the same stream.

``python crates/dpsw-python/benches/spark.py`` in an environment with the package and ``tests/spark/requirements.txt`` (``./test``
makes one in ``target/spark/python``). All runs are on one machine, with one or two executors of one core; each way is
measured in turns, and what is told is the median of each. Rates follow the machine, ratios are what counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / name) for name in ("", "spark")]

from cluster import Cluster, environment, running
from job import session
from pyspark.sql import DataFrame, SparkSession, functions

import dpsw.spark

KEYS = 1_000_000
START = 1_767_225_600


def make(spark: SparkSession, folder: Path, rows: int, files: int) -> None:
    """Files of events, each of a minute: half of them are of 10,000 keys, the others of all."""
    uniform = functions.rand(7)
    item = functions.when(functions.rand(8) < 0.5, (uniform * KEYS).cast("bigint")).otherwise((uniform * 10_000).cast("bigint"))
    for number in range(files):
        at = functions.timestamp_seconds(START + 60 * number + functions.rand(9) * 60)
        spark.range(rows).select(item.alias("item"), at.alias("ts")).coalesce(2).write.mode("append").parquet(str(folder))


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema("item bigint, ts timestamp").option("maxFilesPerTrigger", 4).parquet(str(folder))


def private(df: DataFrame, state: Path | None) -> dpsw.spark.PrivateTop:
    top = dpsw.spark.private_top(
        df, item="item", time="ts", window="10 minutes", epsilon=1, domain=KEYS, source="bench", state=state,
        lateness="1m", expected_items=10_000_000, trigger={"availableNow": True} if df.isStreaming else None,
    )  # fmt: skip
    top.await_termination()
    return top


def grouped(df: DataFrame, checkpoint: Path) -> None:
    """The same counts without privacy, as Spark makes them."""
    counts = df.withWatermark("ts", "1 minute").groupBy(functions.window("ts", "1 minute"), "item").count()
    writer = counts.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def grouped_table(df: DataFrame) -> None:
    df.groupBy(functions.window("ts", "1 minute"), "item").count().write.format("noop").mode("overwrite").save()


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(cluster: Cluster, cores: int, rows: int, files: int, turns: int, folder: Path) -> None:
    spark = session(cluster.url, **{"spark.cores.max": str(cores), "spark.executor.memory": "900m", "spark.driver.memory": "2g"})
    events = folder / f"events{rows}x{files}"
    if not events.exists():
        make(spark, events, rows, files)
    table = spark.read.schema("item bigint, ts timestamp").parquet(str(events))
    table.agg(functions.max("item"), functions.max("ts")).collect()
    names = ["private stream", "groupBy stream", "private table", "groupBy table"]
    taken: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(turns):
        place = folder / f"{cores}-{turn}"
        place.mkdir()
        taken[names[0]].append(timed(lambda: private(stream(spark, events), place / "state")))
        taken[names[1]].append(timed(lambda: grouped(stream(spark, events), place / "checkpoint")))
        taken[names[2]].append(timed(lambda: private(table, None)))
        taken[names[3]].append(timed(lambda: grouped_table(table)))
    total = rows * files
    for name in names:
        print(f"{cores} executor(s)  {name:15} {total / median(taken[name]):12,.0f} events/s", flush=True)
    for kind in ("stream", "table"):
        ratio = median(taken[f"groupBy {kind}"]) / median(taken[f"private {kind}"])
        print(f"{cores} executor(s)  private {kind} against groupBy: {ratio:.2f} x", flush=True)
    told(spark, stream(spark, events), folder / f"bytes{cores}")
    spark.stop()


def told(spark: SparkSession, df: DataFrame, state: Path) -> None:
    """How many bytes come to the driver per step."""
    sent: list[tuple[int, int, int]] = []
    count = dpsw.spark._Stream.count

    def watched(self: Any, *said: Any) -> Any:
        found = count(self, *said)
        sizes = [len(partial) for _, partial in found[0]]
        sent.append((sum(sizes), max(sizes, default=0), len(sizes)))
        return found

    dpsw.spark._Stream.count = watched  # type: ignore[method-assign]
    try:
        top = private(df, state)
    finally:
        dpsw.spark._Stream.count = count  # type: ignore[method-assign]
    plan = top.view().plan
    sketch = 4 * plan.rows * plan.columns
    print(
        f"bytes to the driver per step: {median(total for total, _, _ in sent):,.0f} in {median(number for *_, number in sent):.0f} partial "
        f"counters, at most {max(most for _, most, _ in sent):,} each; a sketch has {sketch:,} ({plan.rows} x {plan.columns:,})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="events per file")
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--turns", type=int, default=3)
    said = parser.parse_args()
    os.environ.update(environment())
    with tempfile.TemporaryDirectory() as name, running(Path(name)) as cluster:
        for cores in (1, 2):
            measure(cluster, cores, said.rows, said.files, said.turns, Path(name))


if __name__ == "__main__":
    main()
