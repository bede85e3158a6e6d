"""Streams and tables on a real cluster: what executors count and the driver seals is what one machine would show."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from cluster import CONNECTOR, Cluster, kafka
from events import KEYS, START, Batch, batches, closing, truth, write
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession, functions
from services import running as service

import dpsw
import dpsw.spark

README = Path(__file__).parents[4] / "README.md"
SCHEMA = "item bigint, ts timestamp"
SEED = 7


def stream_of(spark: SparkSession, folder: Path) -> Any:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def counted(df: Any, state: Path, **said: Any) -> dpsw.spark.PrivateTop:
    usual: dict[str, Any] = {"item": "item", "time": "ts", "window": "10 minutes", "epsilon": 1, "domain": KEYS, "source": "clicks"}
    usual |= {"state": state, "lateness": "30s", "expected_items": 2_500, "retention": 12}
    return dpsw.spark.private_top(df, **usual | said)


def all_of(df: Any, state: Path, **said: Any) -> dpsw.spark.PrivateTop:
    """Everything that the source has."""
    top = counted(df, state, **said)
    top.process_all_available()
    top.stop()
    return top


def keys_of(state: Path) -> bytes:
    """Keys that the test knows, where the stream will find them; the stream key among them."""
    state.mkdir(mode=0o700)
    keys = secrets.token_bytes(64)
    (state / "key").touch(mode=0o600)
    (state / "key").write_bytes(keys)
    return keys[32:]


def millis(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpsw.spark, "_seed", SEED)


@pytest.mark.parametrize("domain", [KEYS, "asked"])
def test_a_stream_equals_one_machine_bit_for_bit(spark: SparkSession, tmp_path: Path, seeded: None, domain: Any) -> None:
    steps = batches(6)
    write(tmp_path / "events", steps)
    state = tmp_path / "state"
    key = keys_of(state)
    top = all_of(stream_of(spark, tmp_path / "events"), state, domain=domain)
    alone = dpsw._dpsw.Sketch(top.view().plan._native, False, None, 0, key, None, SEED)
    newest = start = None
    for step in steps:
        times = [millis(time) for time in step.times]
        if start is None:
            start = min(min(times), max(times) - 30_000)
            alone.advance(start)
        alone.extend(pyarrow.array(step.items), pyarrow.array(times), None, ("ms", 0, False))
        newest = max(max(times), newest or 0)
        alone.advance(newest - 30_000)
    assert 4 < len(alone.view().sealed())
    assert top.view().to_bytes() == alone.view().to_bytes()
    assert top.late == top.early == 0
    assert top.view().about.epsilon is None, "seeded noise promises nothing"


def test_a_table_equals_one_machine_bit_for_bit(spark: SparkSession, tmp_path: Path, seeded: None) -> None:
    steps = batches(6)
    write(tmp_path / "events", steps)
    state = tmp_path / "state"
    key = keys_of(state)
    table = spark.read.schema(SCHEMA).parquet(str(tmp_path / "events"))
    top = counted(table, state)
    times = sorted((millis(time), item) for step in steps for time, item in zip(step.times, step.items))
    alone = dpsw._dpsw.Sketch(top.view().plan._native, False, None, 0, key, None, SEED)
    alone.advance(times[0][0])
    for some in (times[start : start + 50] for start in range(0, len(times), 50)):
        alone.extend(pyarrow.array([item for _, item in some]), pyarrow.array([time for time, _ in some]), None, ("ms", 0, False))
        alone.advance(some[-1][0])
    alone.advance(times[-1][0] + 1)
    assert top.view().to_bytes() == alone.finish().to_bytes()
    again = counted(table, state)
    assert again.view().to_bytes() == top.view().to_bytes(), "a table that was counted is read back"


def test_counts_are_those_of_the_window(spark: SparkSession, tmp_path: Path) -> None:
    steps = batches(5)
    table = spark.createDataFrame([(str(item), time) for step in steps for item, time in zip(step.items, step.times)], "item string, ts timestamp")
    names = [str(item) for item in range(KEYS)]
    top = counted(table, None, domain=names, epsilon=1e6)
    exact = Counter({str(item): count for item, count in truth(steps).items()})
    assert [(row.item, round(row.estimate)) for row in top.top(3)] == exact.most_common(3)
    private = counted(table, None, domain=spark.createDataFrame([(name,) for name in names], "name string"))
    assert private.top(1)[0].item == exact.most_common(1)[0][0]
    assert private.top(1)[0].lower <= exact.most_common(1)[0][1] <= private.top(1)[0].upper + 50


def test_late_events_are_refused_and_counted_where_that_is_public(spark: SparkSession, tmp_path: Path) -> None:
    steps = batches(5)
    late = Batch([1] * 7, [START] * 7)
    far = Batch([1] * 3, [datetime.now(timezone.utc) + timedelta(days=2)] * 3)
    write(tmp_path / "events", [*steps, closing(steps), late, far])
    top = all_of(stream_of(spark, tmp_path / "events"), tmp_path / "state")
    assert (top.late, top.early) == (7, 3)


def test_what_is_no_item_or_has_no_time_counts_nowhere_and_leaves_the_others(spark: SparkSession, tmp_path: Path) -> None:
    steps = batches(3)
    write(tmp_path / "events", [*steps, closing(steps)])
    plain = all_of(stream_of(spark, tmp_path / "events"), tmp_path / "plain", epsilon=1e6)
    soon = START + timedelta(seconds=119)
    odd = spark.createDataFrame([(None, soon), (-5, soon), (10**12, soon), (3, None)], SCHEMA)
    odd.coalesce(1).write.parquet(str(tmp_path / "odd"))
    (file,) = (tmp_path / "odd").glob("*.parquet")
    shutil.copy(file, tmp_path / "events/0000b.parquet")
    os.utime(tmp_path / "events/0000b.parquet", (1_700_000_000.5, 1_700_000_000.5))
    mixed = all_of(stream_of(spark, tmp_path / "events"), tmp_path / "mixed", epsilon=1e6)
    held = [sum(items or 0 for _, _, items, _ in top.view()._native.sealed()) for top in (plain, mixed)]
    assert held[1] == held[0] + 3, "null items take their places"
    assert mixed.early == 1


def test_a_stream_goes_on_with_its_state_and_with_no_other(spark: SparkSession, tmp_path: Path) -> None:
    steps = batches(8)
    write(tmp_path / "events", steps[:4])
    seen: list[dpsw.View] = []
    state, df = tmp_path / "state", stream_of(spark, tmp_path / "events")
    all_of(df, state, publish=seen.append)
    with pytest.raises(dpsw.StateError, match="epsilon = 1.0, and 2.0 is asked for"):
        counted(df, state, epsilon=2)
    with pytest.raises(dpsw.StateError, match="domain"):
        counted(df, state, domain=KEYS - 1)
    first = counted(df, state, publish=seen.append)
    with pytest.raises(dpsw.StateError, match="in use by another process"):
        counted(df, state)
    first.stop()
    shutil.rmtree(tmp_path / "more", ignore_errors=True)
    write(tmp_path / "more", [*steps, closing(steps)])
    for file in sorted((tmp_path / "more").glob("*.parquet"))[4:]:
        shutil.copy2(file, tmp_path / "events" / file.name)
    top = all_of(df, state, publish=seen.append)
    released: dict[tuple[int, int], object] = {}
    for view in seen:
        for substream, place, items, counters in view._native.sealed():
            assert released.setdefault((substream, place), (items, counters)) == (items, counters)
    held = sum(items or 0 for _, place, items, _ in top.view()._native.sealed() if place == 0)
    assert held == sum(truth(steps).values()), "each event once"
    shutil.rmtree(state / "checkpoint")
    again = counted(df, state)
    with pytest.raises(StreamingQueryException, match="events could count twice"):
        again.await_termination()


def test_keys_have_no_order_and_a_table_does_not_end_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    steps = batches(2)
    write(tmp_path / "events", steps)
    state, df = tmp_path / "state", stream_of(spark, tmp_path / "events")
    all_of(df, state, domain=list(range(KEYS)), epsilon=1)
    counted(df, state, domain=list(reversed(range(KEYS))), epsilon=1.0, item=functions.col("item")).stop()
    with pytest.raises(dpsw.StateError, match="counts = a stream, and a table is asked for"):
        counted(spark.read.schema(SCHEMA).parquet(str(tmp_path / "events")), state, domain=list(range(KEYS)))
    with pytest.raises(dpsw.StateError, match="item = item"):
        counted(df, state, domain=list(range(KEYS)), item=functions.col("item") + 1)
    counted(df, state, domain=list(range(KEYS))).stop()


def test_nothing_is_charged_or_made_for_what_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.createDataFrame([(1, START)], SCHEMA)
    for wrong in ({"publish": [5]}, {"ahead": "soon"}, {"source": 7}):
        with pytest.raises(dpsw.Error):
            counted(table, tmp_path / "state", ledger=tmp_path / "ledger", budget=1, **wrong)
    assert not (tmp_path / "ledger").exists() and not (tmp_path / "state").exists()


def test_an_event_from_far_ahead_moves_no_table(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(item, time) for step in batches(3) for item, time in zip(step.items, step.times)]
    far = (1, datetime(2099, 1, 1, tzinfo=timezone.utc))
    view = counted(spark.createDataFrame([*rows, far], SCHEMA), None).view()
    assert view.window.end <= START + timedelta(minutes=6)


def test_a_publisher_that_fails_gets_the_view_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    steps = batches(3)
    write(tmp_path / "events", [*steps, closing(steps)])

    def fail(view: dpsw.View) -> None:
        raise OSError("no room")

    top = counted(stream_of(spark, tmp_path / "events"), tmp_path / "state", publish=fail)
    with pytest.raises(StreamingQueryException, match="no room"):
        top.await_termination()
    seen: list[dpsw.View] = []
    top = all_of(stream_of(spark, tmp_path / "events"), tmp_path / "state", publish=seen.append)
    assert 1 < len(seen)
    released = {(substream, place): counters for substream, place, _, counters in seen[0]._native.sealed()}
    last = {(substream, place): counters for substream, place, _, counters in top.view()._native.sealed()}
    assert all(last[place] == counters for place, counters in released.items())


def test_where_presence_is_private_the_clock_alone_seals_and_nothing_is_counted_out(spark: SparkSession, tmp_path: Path) -> None:
    now = datetime.now(timezone.utc)
    write(tmp_path / "events", [Batch([5] * 400 + [1], [now] * 400 + [now - timedelta(days=1)])])
    seen: list[dpsw.View] = []
    df = stream_of(spark, tmp_path / "events")
    top = counted(df, tmp_path / "state", unit="add-remove", epsilon=1e6, window="20s", lateness="3s", publish=seen.append)
    top.process_all_available()
    end = time.monotonic() + 60
    while time.monotonic() < end and not any(row.item == 5 and 200 < row.estimate for view in seen for row in view.top(3)):
        time.sleep(0.2)
    top.stop()
    assert (top.late, top.early) == (None, None)
    assert 3 < len(seen), "views come by the clock, whether there are events or not"
    assert max(row.estimate for view in seen for row in view.top(3)) == pytest.approx(400, abs=30)
    with pytest.raises(dpsw.ParameterError, match="needs end="):
        counted(spark.createDataFrame([(1, START)], SCHEMA), None, unit="add-remove")


def test_views_go_to_files_functions_and_a_service(spark: SparkSession, tmp_path: Path) -> None:
    steps = batches(4)
    write(tmp_path / "events", [*steps, closing(steps)])
    (tmp_path / "service").mkdir()
    with service(tmp_path / "service") as home:
        client = dpsw.Client(home.url, home.token)
        publish = [str(tmp_path / "views"), tmp_path / "latest.view", (client, "clicks")]
        top = all_of(stream_of(spark, tmp_path / "events"), tmp_path / "state", publish=publish)
        shown = client.stream("clicks").top(5)
        assert [(row.item, row.estimate) for row in shown] == [(row.item, row.estimate) for row in top.top(5)]
    assert dpsw.View.open(tmp_path / "latest.view").to_bytes() == top.view().to_bytes()
    assert sorted((tmp_path / "views").glob("*.view"))[-1].read_bytes() == top.view().to_bytes()


def test_kafka_through_sparks_own_connector(spark: SparkSession, tmp_path: Path) -> None:
    if not list(CONNECTOR.glob("spark-sql-kafka-*.jar")):
        pytest.fail(f"Spark's connector to Kafka is not in {CONNECTOR}: ./test fetches it")
    steps = batches(6)
    rows = [(f"/page/{item}", time) for step in [*steps, closing(steps)] for item, time in zip(step.items, step.times)]
    with kafka(tmp_path) as address:
        sent = spark.createDataFrame(rows, "url string, ts timestamp")
        values = sent.select(functions.to_json(functions.struct("url", functions.unix_millis("ts").alias("ts"))).alias("value"))
        values.write.format("kafka").option("kafka.bootstrap.servers", address).option("topic", "clicks").save()
        options = {"kafka.bootstrap.servers": address, "subscribe": "clicks", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "700"}
        raw = spark.readStream.format("kafka").options(**options).load()
        event = functions.from_json(raw.value.cast("string"), "url string, ts bigint")
        df = raw.select(event.url.alias("item"), functions.timestamp_millis(event.ts).alias("ts"))
        # Partitions are read in no common order: all of it may be late.
        top = all_of(df, tmp_path / "state", domain=[f"/page/{item}" for item in range(KEYS)], lateness="9m", epsilon=1e6)
    held = sum(items or 0 for _, place, items, _ in top.view()._native.sealed() if place == 0)
    assert held + (top.late or 0) == len(rows) - 1, "all but the closing event, which is not sealed"
    assert top.early == 0


def test_a_ledger_is_charged_once(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.createDataFrame([(item, time) for step in batches(2) for item, time in zip(step.items, step.times)], SCHEMA)
    ledger = {"ledger": tmp_path / "ledger", "budget": 1.5}
    for _ in range(2):
        counted(table, tmp_path / "state", **ledger)
    with pytest.raises(dpsw.LedgerError):
        counted(table, tmp_path / "other", **ledger)


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ({"item": "nothing"}, dpsw.InputError, "there is no column 'nothing' for item=; the DataFrame has item, ts"),
        ({"item": "ts"}, dpsw.InputError, "items must be text, binary or integers, got timestamp"),
        ({"time": "item"}, dpsw.InputError, "times must be timestamps or dates, got bigint"),
        ({"window": 1000}, dpsw.ParameterError, "windows of time"),
        ({"window": "an hour"}, dpsw.ParameterError, "an hour"),
        ({"domain": "found"}, dpsw.ParameterError, "keys cannot be found on a cluster"),
        ({"domain": ["a"]}, dpsw.InputError, "the items are integers, and the keys of domain= are not"),
        ({"domain": b"abc"}, dpsw.InputError, "domain must be a list of public keys"),
        ({"unit": "users"}, dpsw.ParameterError, '"replace-one" or "add-remove"'),
        ({"epsilon": -1}, dpsw.PlanError, "epsilon must lie between"),
        ({"publish": [5]}, dpsw.ParameterError, "publish="),
        ({"lateness": "1 fortnight"}, dpsw.ParameterError, "fortnight"),
    ],
)
def test_what_cannot_be_counted_is_refused_before_anything_is(spark: SparkSession, said: dict[str, Any], error: Any, words: str) -> None:
    table = spark.createDataFrame([(1, START)], SCHEMA)
    with pytest.raises(error, match=re.escape(words)):
        counted(table, None, **said)


def test_a_stream_needs_a_state_and_a_frame_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "events", batches(1))
    with pytest.raises(dpsw.ParameterError, match="needs state="):
        counted(stream_of(spark, tmp_path / "events"), None)
    with pytest.raises(dpsw.InputError, match="must be a DataFrame of Spark"):
        counted([1, 2], None)


def test_the_example_of_readme_runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```py\n(.*?)```", README.read_text(), re.DOTALL)
    rows = [(f"/{item}", time) for step in [*batches(40), closing(batches(40))] for item, time in zip(step.items, step.times)]
    assert len(example.strip().splitlines()) <= 10
    # The driver's Java process runs in another folder.
    clicks = str(tmp_path / "clicks")
    spark.createDataFrame(rows, "url string, ts timestamp").write.parquet(clicks)
    example = example.replace('"clicks"', repr(clicks))
    names: dict[str, Any] = {}
    exec(compile(example, str(README), "exec"), names)
    names["top"].stop()
    assert "/0" in capsys.readouterr().out
