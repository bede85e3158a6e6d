"""The whole job in one line: columns that are all there."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

import dpsw

EXACT = 1e6
NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def visits(count: int) -> pandas.DataFrame:
    chance = numpy.random.default_rng(3)
    times = pandas.Timestamp(NOON) + pandas.to_timedelta(numpy.sort(chance.uniform(0, 6, count)), unit="h")
    return pandas.DataFrame({"page": chance.choice(["a", "b", "c"], count), "time": times, "who": numpy.arange(count)})


@pytest.mark.parametrize("hold", [lambda table: table, polars.from_pandas, pyarrow.Table.from_pandas])
def test_rows_count_in_the_order_of_their_times_whatever_order_they_come_in(hold: Any) -> None:
    table = visits(6_000)
    said: Any = {"window": "1h", "epsilon": EXACT, "keys": ["a", "b", "c"]}
    wanted = dpsw.view(table["page"], table["time"], **said)
    truth = table[table["time"].iloc[-1] - pandas.Timedelta("1h") < table["time"]]["page"].value_counts()
    for other in (table.sample(frac=1, random_state=1), table.iloc[::-1]):
        seen = dpsw.view(hold(other), "time", column="page", **said)
        for item in "abc":
            assert seen.frequency(item).value == pytest.approx(wanted.frequency(item).value)
            assert seen.frequency(item).value == pytest.approx(truth[item], abs=3)
    mixed = dpsw.view(hold(table.iloc[::-1]), "time", "who", column="page", per_user=9, **said)
    assert mixed.frequency("a").value == pytest.approx(wanted.frequency("a").value)


def test_chunks_and_missing_items_are_sorted_too() -> None:
    items = pyarrow.chunked_array([["a", None], ["b", "a"]])
    times = [NOON + timedelta(minutes=minute) for minute in (3, 2, 1, 0)]
    view = dpsw.view(items, times, window="1h", epsilon=EXACT, keys=["a", "b"])
    assert [round(view.frequency(item).value) for item in "ab"] == [2, 1]
    assert view.about.total == 4


def test_a_view_answers_shorter_windows_too() -> None:
    items = ["a"] * 17_000 + ["b"] * 3_000
    view = dpsw.view(items, window=20_000, epsilon=100, keys=["a", "b"])
    assert view.last(3_000).frequency("b").value == pytest.approx(3_000, rel=0.05)
    inside = view.last(10)
    assert "shorter than a substream" in str(inside.top())
    assert "shorter than a substream" not in str(view.top())


def test_an_interval_that_counts_on_even_arrivals_says_so() -> None:
    view = dpsw.view(["a"] * 10_000 + ["b"] * 10, window=10_010, epsilon=100, keys=["a", "b"])
    assert "if it came in bursts" in repr(view.last(10).frequency("b"))
    assert "bursts" not in repr(view.frequency("a"))


def test_what_users_had_sent_too_much_is_said() -> None:
    users = [number % 10 for number in range(1_000)]
    rows = dpsw.top(["a"] * 1_000, users=users, window=1_000, epsilon=EXACT, keys=["a"])
    assert rows.capped and f"{rows.capped:,} items of users who had sent enough count nowhere" in str(rows)
    assert "had sent enough" in rows._repr_html_()


def test_one_wrong_clock_is_suspected_where_nothing_is_left() -> None:
    table = visits(6_000)
    times = table["time"].copy()
    times.iloc[-1] = pandas.Timestamp("2099-01-01", tz="UTC")
    items = [*table["page"][:-1], None]
    rows = dpsw.top(items, times, window="1h", epsilon=EXACT, keys=["a", "b", "c"], expected_items=1_000)
    assert len(rows) == 0 and "is its newest time right?" in str(rows)


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"per_users": 3}, TypeError, "unexpected keyword argument 'per_users'"),
    ({"site": 1}, TypeError, "unexpected keyword argument 'site'"),
    ({"keys": "asked"}, ValueError, "top lists keys"),
    ({"unit": "users"}, ValueError, 'unit="users" needs users='),
    ({"clock": "caller", "window": "1h", "times": NOON}, ValueError, "use a Sketch"),
    ({"unit": "add-remove", "window": "1h", "times": NOON}, ValueError, "use a Sketch"),
    ({"window": "1h"}, ValueError, "a window of time needs times="),
    ({"times": NOON}, ValueError, "times= is for windows of time"),
    ({"column": "page"}, TypeError, "names of columns go with a table"),
    ({"users": [1.5] * 1_000}, TypeError, "user 0 is of type float"),
    ({"users": numpy.full(1_000, 1.5)}, TypeError, "float64"),
    ({"users": pyarrow.array([1.5] * 1_000)}, TypeError, "users must be integers"),
]


@pytest.mark.parametrize(("said", "error", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_what_does_not_go_together_is_refused(said: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        dpsw.top(["a"] * 1_000, **{"window": 1_000, "epsilon": 1, **said})
    assert words in str(raised.value)


def test_a_column_that_is_not_there_is_named() -> None:
    table = visits(10)
    for held in (table, polars.from_pandas(table), pyarrow.Table.from_pandas(table)):
        with pytest.raises(dpsw.InputError, match="there is no column 'url'"):
            dpsw.top(held, column="url", window=10, epsilon=1)


def test_no_row_says_why() -> None:
    view = dpsw.view(["a", "b"] * 5_000, window=10_000, epsilon=1, keys=["a", "b"])
    assert "no item has 99 % of the window" in str(view.heavy_hitters(0.99))
    assert "no key can be frequent enough" in str(dpsw.top(["a"] * 20, window=100, epsilon=2))
    assert "nothing was counted" in str(dpsw.Sketch(window=1_000, epsilon=1, keys=["a"]).finish().top())


def test_where_presence_is_private_an_empty_answer_tells_no_number() -> None:
    sketch = dpsw.Sketch(window="1h", epsilon=1, keys=["a", "b"], unit="add-remove", clock="caller", expected_items=100_000)
    sketch.advance(NOON)
    sketch.extend(["a"] * 30, [NOON] * 30)
    sketch.advance(NOON + timedelta(hours=1))
    assert "holds about" not in sketch.view()._why()
