"""A driver: counts a folder of files, one file per step, until all of them are counted."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import dpsw
import dpsw.spark


def session(master: str, **said: str) -> SparkSession:
    builder = SparkSession.builder.master(master).appName("dpsw").config("spark.ui.enabled", "false")
    usual = {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "640m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.default.parallelism": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.task.maxFailures": "20",
        "spark.deploy.maxExecutorRetries": "-1",
    }
    for name, value in (usual | said).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main() -> None:
    said = json.loads(sys.argv[1])
    spark = session(said["master"])
    events = spark.readStream.schema("item bigint, ts timestamp").option("maxFilesPerTrigger", 1).parquet(said["events"])
    publish: list[object] = [said["views"]]
    if "service" in said:
        publish.append((dpsw.Client(said["service"], said["token"]), "clicks"))
    top = dpsw.spark.private_top(
        events,
        item="item",
        time="ts",
        window="10 minutes",
        epsilon=said["epsilon"],
        domain=said["domain"],
        source="clicks",
        state=said["state"],
        checkpoint=said["checkpoint"],
        publish=publish,
        retention=12,
        lateness="30s",
        expected_items=20_000,
        trigger={"availableNow": True},
    )
    top.await_termination()
    assert top.late == 0, top.late
    spark.stop()


if __name__ == "__main__":
    main()
