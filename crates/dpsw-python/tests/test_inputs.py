"""Whatever holds items gives the same answers, and what cannot be counted is refused with the reason."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

import dpsw

WORDS = ["a", "bb", "a", "", "ccc", "a", "bb", "é€𝄞"] * 50
NUMBERS = [3, 1, 4, 1, 5, 9, 2, 6] * 50
# So much epsilon that every draw is zero: counts are exact.
EXACT = 1e6


def counts(items: Any, keys: list[Any], **more: Any) -> dict[Any, int]:
    """What each key counts after all items."""
    sketch = dpsw.Sketch(window=1_000, epsilon=EXACT, keys=keys)
    sketch.extend(items, **more)
    view = sketch.finish()
    return {key: round(view.frequency(key).value) for key in keys}


def chunked(values: list[Any]) -> pyarrow.ChunkedArray:
    return pyarrow.chunked_array([values[:7], values[7:300], [], values[300:]], type=pyarrow.array(values).type)


def reader(values: list[Any]) -> pyarrow.RecordBatchReader:
    batches = [pyarrow.record_batch({"item": values[start : start + 33]}) for start in range(0, len(values), 33)]
    return pyarrow.RecordBatchReader.from_batches(batches[0].schema, batches)


def strided(values: list[Any]) -> Any:
    doubled = numpy.repeat(numpy.array(values), 2)
    return doubled[::2]


TEXTS: list[Callable[[list[str]], Any]] = [
    list,
    tuple,
    iter,
    lambda values: (value for value in values),
    numpy.array,
    strided,
    lambda values: numpy.array(values).astype(">U4"),
    lambda values: numpy.array(values, dtype=object),
    pandas.Series,
    lambda values: pandas.Series(values, dtype="category"),
    lambda values: pandas.Series(values, dtype="string"),
    lambda values: pandas.Series(values, dtype=pandas.ArrowDtype(pyarrow.string())),
    lambda values: pandas.Index(values),
    polars.Series,
    lambda values: polars.Series(values, dtype=polars.Categorical),
    lambda values: polars.DataFrame({"item": values}),
    pyarrow.array,
    lambda values: pyarrow.array(values, pyarrow.large_string()),
    lambda values: pyarrow.array(values, pyarrow.string_view()),
    lambda values: pyarrow.array(values, pyarrow.binary()),
    lambda values: pyarrow.array(values).dictionary_encode(),
    lambda values: pyarrow.array(["x", *values, "y"]).slice(1, len(values)),
    chunked,
    lambda values: chunked(values).dictionary_encode(),
    reader,
    lambda values: pyarrow.table({"item": values}),
]

INTEGERS: list[Callable[[list[int]], Any]] = [
    list,
    iter,
    lambda values: [numpy.int32(value) for value in values],
    numpy.array,
    strided,
    *[lambda values, of=of: numpy.array(values, of) for of in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", ">i8", "<u4")],
    lambda values: array("q", values),
    lambda values: memoryview(array("I", values)),
    pandas.Series,
    lambda values: pandas.Series(values, dtype="Int64"),
    lambda values: pandas.Series(values, dtype=pandas.ArrowDtype(pyarrow.int32())),
    polars.Series,
    pyarrow.array,
    lambda values: pyarrow.array(values, pyarrow.uint8()),
    lambda values: pyarrow.array(values).dictionary_encode(),
    chunked,
    reader,
]


@pytest.mark.parametrize("hold", TEXTS)
def test_text_counts_alike_whatever_holds_it(hold: Callable[[list[str]], Any]) -> None:
    keys = ["a", "bb", "ccc", "", "é€𝄞", "absent"]
    assert counts(hold(WORDS), keys) == {key: WORDS.count(key) for key in keys}


@pytest.mark.parametrize("hold", INTEGERS)
def test_integers_count_alike_whatever_holds_them(hold: Callable[[list[int]], Any]) -> None:
    keys = [1, 2, 3, 4, 5, 6, 7, 9]
    assert counts(hold(NUMBERS), keys) == {key: NUMBERS.count(key) for key in keys}


def test_bytes_count_and_come_back_as_bytes() -> None:
    values = [b"\xff\x00x", b"a", b"a"] * 100
    for held in (values, pyarrow.array(values), polars.Series(values), numpy.array(values, dtype=object)):
        assert counts(held, [b"\xff\x00x", b"a"]) == {b"\xff\x00x": 100, b"a": 200}
    rows = dpsw.top(values, window=300, epsilon=EXACT, keys=[b"\xff\x00x", b"a"])
    assert [row.item for row in rows] == [b"a", b"\xff\x00x"]
    assert [row.item for row in dpsw.top(values, window=300, epsilon=1e3, delta=1e-6)] == [b"a", b"\xff\x00x"]


def is_at_hand(held: Any) -> bool:
    return hasattr(held, "__len__") and not hasattr(held, "columns")


@pytest.mark.parametrize("hold", [hold for hold in TEXTS if is_at_hand(hold(WORDS))])
def test_one_line_counts_what_a_sketch_counts(hold: Callable[[list[str]], Any]) -> None:
    view = dpsw.view(hold(WORDS), window=1_000, epsilon=EXACT, keys=["a", "bb", ""])
    assert [round(row.estimate) for row in view.frequencies(["a", "bb", ""])] == [150, 100, 50]


def test_numpy_bytes_end_with_their_last_letter() -> None:
    values = numpy.array([b"a", b"a\x00b", b"", b"abc"] * 10)
    assert counts(values, [b"a", b"a\x00b", b"", b"abc"]) == {b"a": 10, b"a\x00b": 10, b"": 10, b"abc": 10}
    empty = numpy.array(["", ""])
    assert counts(empty, ["", "a"]) == {"": 2, "a": 0}


def test_large_integers_are_exact() -> None:
    top = 2**64 - 1
    assert counts([top, top, 2**63], [top, 2**63, 5]) == {top: 2, 2**63: 1, 5: 0}
    assert counts(numpy.array([top, 7], "u8"), [top, 7]) == {top: 1, 7: 1}


MISSING: list[Any] = [
    ["a", None, "b", None, None, "a"],
    pandas.Series(["a", None, "b", float("nan"), pandas.NA, "a"]),
    pandas.Series(["a", None, "b", None, None, "a"], dtype="string"),
    polars.Series(["a", None, "b", None, None, "a"]),
    pyarrow.array(["a", None, "b", None, None, "a"]),
    pyarrow.array(["a", None, "b", None, None, "a"]).dictionary_encode(),
    pyarrow.chunked_array([["a", None], ["b", None, None, "a"]]),
]


@pytest.mark.parametrize("items", MISSING)
def test_missing_items_take_their_places_and_count_nowhere(items: Any) -> None:
    sketch = dpsw.Sketch(window=1_000, epsilon=EXACT, keys=["a", "b"])
    assert sketch.extend(items).counted == 6
    view = sketch.finish()
    assert [round(view.frequency(key).value) for key in "ab"] == [2, 1]
    assert view.about.total == 6


def test_missing_integers_may_hide_anything_and_count_nowhere() -> None:
    items = pyarrow.Array.from_buffers(
        pyarrow.int64(), 3, [pyarrow.py_buffer(b"\x05"), pyarrow.py_buffer(array("q", [7, -1, 7]))]
    )
    assert counts(items, [7, 1]) == {7: 2, 1: 0}
    assert counts([None, None], [7]) == {7: 0}
    assert counts(pyarrow.nulls(3), [7]) == {7: 0}


REFUSED: list[tuple[Any, type[Exception], str]] = [
    ("abc", TypeError, "one str is not a list of items"),
    (b"abc", TypeError, "one bytes is not a list"),
    (5, TypeError, "cannot count a int"),
    (None, TypeError, "cannot count a NoneType"),
    ({"a": 1}, TypeError, "a dict has no order"),
    ([1.5], TypeError, "item 0 is of type float"),
    (["a", 5], TypeError, "item 1 is of type int"),
    ([5, "a"], TypeError, "item 0 is of type int"),
    (["a", float("nan")], TypeError, "item 1 is of type float (NaN"),
    ([True], TypeError, "item 0 is of type bool"),
    ([2**64], TypeError, "item 0 is of type int"),
    ([["a"]], TypeError, "item 0 is of type list"),
    (numpy.array([1.0, numpy.nan]), TypeError, "float64; floats are not told apart"),
    (numpy.array([True]), TypeError, "bool"),
    (numpy.array([["a"]]), TypeError, "one dimension, got 2"),
    (numpy.array(5), TypeError, "one dimension, got 0"),
    (numpy.int64(5), TypeError, "one int64 is not a list"),
    (numpy.array(["2020"], "M8[D]"), TypeError, "pass times as times="),
    (numpy.array([1, -2]), ValueError, "item 1 is below 0"),
    (pandas.Series([1.0, None]), TypeError, "float64"),
    (pandas.DataFrame({"a": ["x"], "b": ["y"]}), TypeError, "columns a, b: name the one"),
    (polars.Series([1.5]), TypeError, "Float64"),
    (pyarrow.array([1.5]), TypeError, "Float64"),
    (pyarrow.array([[1]]), TypeError, "List"),
    (pyarrow.array([True]), TypeError, "turn them into text"),
    (pyarrow.table({"a": ["x"], "b": ["y"]}), TypeError, "columns a, b: name the one"),
    (pyarrow.array([3, -7]), ValueError, "item 1 is below 0"),
]


@pytest.mark.parametrize(("items", "error", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_what_cannot_be_counted_is_refused_with_the_reason(items: Any, error: type[Exception], words: str) -> None:
    sketch = dpsw.Sketch(window=1_000, epsilon=1, keys=["a"])
    with pytest.raises(error) as raised:
        sketch.extend(items)
    assert words in str(raised.value)
    assert isinstance(raised.value, dpsw.Error)
    assert sketch.finish().about.total is None, "nothing was taken"


def test_integers_out_of_range_are_refused_in_lists_too() -> None:
    for items, words in (([1, -1], "item 1 is of type int below 0"), ([2**64], "item 0 is of type int"), ([1, "a"], "item 1 is of type str")):
        with pytest.raises(dpsw.InputError, match=words):
            dpsw.Sketch(window=1_000, epsilon=1, keys=10).extend(items)


def test_no_error_shows_an_item() -> None:
    sketch = dpsw.Sketch(window=1_000, epsilon=1, keys=["a"])
    numbers = dpsw.Sketch(window=1_000, epsilon=1, keys=10)
    for counting, items in ((sketch, ["secret", 777]), (sketch, [777]), (numbers, [5, "secret"]), (numbers, numpy.array([-777]))):
        with pytest.raises(dpsw.Error) as raised:
            counting.extend(items)
        assert "secret" not in str(raised.value) and "777" not in str(raised.value)


SKIPPED: list[tuple[Any, list[Any], dict[Any, int]]] = [
    (["a", 5, "b", float("nan"), b"a", "\ud800", None, True], ["a", "b"], {"a": 2, "b": 1}),
    ([7, -1, "a", 2**64, 7.0, True, 7], [7, 1], {7: 2, 1: 0}),
    (numpy.array([7, -1, 7]), [7], {7: 2}),
    (numpy.array([7, -1, 7], "i2"), [7], {7: 2}),
    (pyarrow.array([7, -1, None, 7]), [7], {7: 2}),
    (pyarrow.array([7, -1, 7]).dictionary_encode(), [7], {7: 2}),
    (numpy.array(["a", "\ud800", "a"]), ["a"], {"a": 2}),
    (pyarrow.table({"item": [7, -1, 7]}), [7], {7: 2}),
    (iter(["a", 5, "a"]), ["a"], {"a": 2}),
]


@pytest.mark.parametrize(("items", "keys", "wanted"), SKIPPED)
def test_an_item_that_is_none_can_be_skipped_and_the_others_count(items: Any, keys: list[Any], wanted: dict[Any, int]) -> None:
    held = items if isinstance(items, Iterator) else None
    sketch = dpsw.Sketch(window=1_000, epsilon=EXACT, keys=keys)
    taken = sketch.extend(items, on_error="skip")
    view = sketch.finish()
    assert {key: round(view.frequency(key).value) for key in keys} == wanted
    assert taken.counted == view.about.total
    if held is None:
        assert taken.counted == len(items), "skipped items take their places"
        with pytest.raises(dpsw.Error, match="item|text"):
            dpsw.Sketch(window=1_000, epsilon=EXACT, keys=keys).extend(items)


def test_how_errors_are_met_is_one_of_two_words() -> None:
    with pytest.raises(dpsw.ParameterError, match='on_error must be "stop" or "skip"'):
        dpsw.Sketch(window=1_000, epsilon=1, keys=["a"]).extend(["a"], on_error="ignore")  # type: ignore[arg-type]


def test_the_other_kind_of_item_is_refused() -> None:
    sketch = dpsw.Sketch(window=1_000, epsilon=1, keys=["a"])
    for items in (numpy.array([5]), pyarrow.array([5]), polars.Series([5])):
        with pytest.raises(dpsw.IngestError, match="this stream counts bytes or text, got integers; nothing was taken"):
            sketch.extend(items)


def test_nothing_at_all_is_taken_as_nothing() -> None:
    sketch = dpsw.Sketch(window=1_000, epsilon=1, keys=["a"])
    empty: list[Any] = [[], (), iter([]), numpy.array([], str), pyarrow.array([], pyarrow.string()), pandas.Series([], dtype=object)]
    for items in empty:
        assert sketch.extend(items).counted == 0
    with pytest.raises(dpsw.InputError, match="there are no items"):
        dpsw.top([], window=10, epsilon=1)


def test_a_generator_is_counted_in_pieces_and_errors_name_its_item() -> None:
    def items() -> Iterator[Any]:
        yield from ["a"] * 70_000
        yield 5

    sketch = dpsw.Sketch(window=1_000_000, epsilon=EXACT, keys=["a"])
    with pytest.raises(dpsw.InputError, match="item 70000 is of type int"):
        sketch.extend(items())
    assert sketch.finish().about.total == 65_536, "what came before the bad piece was taken"


def test_integers_and_strings_are_not_copied() -> None:
    import resource

    items = numpy.zeros(20_000_000, "int64")
    text = pyarrow.array(["a long enough text to be seen in the memory"] * 2_000_000)
    sketch = dpsw.Sketch(window=1_000, epsilon=1, keys=10)
    other = dpsw.Sketch(window=1_000, epsilon=1, keys=["a"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sketch.extend(items)
    other.extend(text)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 40_000, "160 MB of integers and 90 MB of text took kilobytes"


NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
MOMENTS = [NOON + timedelta(minutes=minute) for minute in range(8)]
NAIVE = [moment.replace(tzinfo=None) for moment in MOMENTS]

TIMES: list[Any] = [
    MOMENTS,
    NAIVE,
    [moment.astimezone(timezone(timedelta(hours=5, minutes=30))) for moment in MOMENTS],
    numpy.array(NAIVE, "M8[s]"),
    numpy.array(NAIVE, "M8[ns]"),
    numpy.array(NAIVE, "M8[us]")[::1],
    pandas.Series(NAIVE),
    pandas.Series(MOMENTS),
    pandas.Series(MOMENTS).dt.tz_convert("Asia/Kolkata"),
    pandas.DatetimeIndex(MOMENTS),
    pandas.Series(pandas.array(NAIVE, dtype=pandas.ArrowDtype(pyarrow.timestamp("ms")))),
    polars.Series(NAIVE),
    polars.Series(MOMENTS).dt.convert_time_zone("America/New_York"),
    pyarrow.array(NAIVE, pyarrow.timestamp("s")),
    pyarrow.array(MOMENTS, pyarrow.timestamp("ns", "Europe/Berlin")),
    pyarrow.chunked_array([MOMENTS[:3], MOMENTS[3:]], pyarrow.timestamp("us", "UTC")),
]


def seen(times: Any, **more: Any) -> tuple[Any, Any, int]:
    sketch = dpsw.Sketch(window="1h", epsilon=EXACT, keys=["a"], expected_items=100)
    sketch.extend(["a"] * 8, times, **more)
    view = sketch.finish()
    return view.window.start, view.window.end, round(view.frequency("a").value)


@pytest.mark.parametrize("times", TIMES)
def test_times_are_the_same_moment_whatever_holds_them(times: Any) -> None:
    assert seen(times) == (NOON, NOON + timedelta(minutes=7, milliseconds=1), 8)


def test_numbers_are_times_in_the_unit_that_is_said() -> None:
    seconds = [int(moment.timestamp()) for moment in MOMENTS]
    wanted = seen(MOMENTS)
    for unit, factor in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        numbers = [second * factor for second in seconds]
        for times in (numbers, numpy.array(numbers), pyarrow.array(numbers), polars.Series(numbers), array("q", numbers)):
            assert seen(times, time_unit=unit) == wanted
    assert seen(numpy.array(seconds) + 0.0005, time_unit="s") == wanted
    with pytest.raises(dpsw.InputError, match='need time_unit="s", "ms", "us" or "ns"'):
        seen(seconds)


def test_whole_numbers_of_nanoseconds_are_not_rounded() -> None:
    first = int(NOON.timestamp() * 1000)
    for later in range(0, 1_000, 7):
        sketch = dpsw.Sketch(window="1h", epsilon=EXACT, keys=["a"], expected_items=100)
        sketch.extend(["a"], [(first + later) * 10**6], time_unit="ns")
        assert sketch.finish().window.end == NOON + timedelta(milliseconds=later + 1)


def test_dates_and_one_time_for_all_are_times() -> None:
    start, end, count = seen([date(2026, 3, 1)] * 8)
    assert (start, count) == (datetime(2026, 3, 1, tzinfo=timezone.utc), 8)
    assert seen(pyarrow.array([date(2026, 3, 1)] * 8)) == (start, end, count)
    assert seen(NOON) == (NOON, NOON + timedelta(milliseconds=1), 8)


BAD_TIMES: list[tuple[Any, str]] = [
    ([*MOMENTS[:7], None], "row 7 has no time"),
    (numpy.array([*NAIVE[:7], "NaT"], "M8[s]"), "row 7 has no time"),
    (pandas.Series([*NAIVE[:7], pandas.NaT]), "row 7 has no time"),
    (polars.Series([*NAIVE[:7], None]), "row 7 has no time"),
    (pyarrow.array([*NAIVE[:7], None]), "row 7 has no time"),
    ([*MOMENTS[:7], datetime(1969, 1, 1)], "row 7 lies before 1970"),
    (["noon"] * 8, "row 0 is of type str"),
    (pandas.Series(["noon"] * 8), "pandas.to_datetime"),
    (numpy.array(["noon"] * 8), "pandas.to_datetime"),
    (pyarrow.array(["noon"] * 8), "times must be timestamps"),
    (MOMENTS[:7], "7 times for 8 items"),
    ("noon", "names of columns go with a table"),
    (None, "needs the time of each event: extend(items, times=...)"),
]


@pytest.mark.parametrize(("times", "words"), BAD_TIMES, ids=[words for _, words in BAD_TIMES])
def test_times_that_are_none_are_refused_with_the_row(times: Any, words: str) -> None:
    sketch = dpsw.Sketch(window="1h", epsilon=1, keys=["a"], expected_items=100)
    with pytest.raises(dpsw.Error) as raised:
        sketch.extend(["a"] * 8, times)
    assert words in str(raised.value)


def test_a_window_of_items_has_no_times() -> None:
    sketch = dpsw.Sketch(window=100, epsilon=1, keys=["a"])
    with pytest.raises(dpsw.IngestError, match="goes by arrivals"):
        sketch.extend(["a"] * 8, MOMENTS)


USERS: list[Any] = [
    ["u", "v"] * 4,
    [1, 2] * 4,
    numpy.array([-1, 2] * 4),
    numpy.array(["u", "v"] * 4),
    pandas.Series(["u", "v"] * 4),
    polars.Series(["u", "v"] * 4),
    pyarrow.array(["u", "v"] * 4).dictionary_encode(),
]


@pytest.mark.parametrize("users", USERS)
def test_each_user_counts_up_to_the_cap(users: Any) -> None:
    sketch = dpsw.Sketch(window=100, epsilon=EXACT, keys=["a"], unit="users", per_user=3)
    taken = sketch.extend(["a"] * 8, users=users)
    assert (taken.counted, taken.capped) == (6, 2)
    assert round(sketch.finish().frequency("a").value) == 6


def test_users_are_wanted_where_they_are_protected_and_nowhere_else() -> None:
    with pytest.raises(dpsw.IngestError, match="protects whole users: extend"):
        dpsw.Sketch(window=100, epsilon=EXACT, keys=["a"], unit="users").extend(["a"])
    with pytest.raises(dpsw.IngestError, match="protects single events"):
        dpsw.Sketch(window=100, epsilon=EXACT, keys=["a"]).extend(["a"], users=["u"])
    with pytest.raises(dpsw.IngestError, match="row 1 has no user"):
        dpsw.Sketch(window=100, epsilon=EXACT, keys=["a"], unit="users").extend(["a", "a"], users=["u", None])


def test_columns_of_tables_are_named() -> None:
    table = pyarrow.table({"url": ["a", "b"] * 4, "ts": pyarrow.array(MOMENTS, pyarrow.timestamp("ms", "UTC")), "who": [1, 2] * 4})
    for held in (table, table.to_reader(max_chunksize=3), polars.from_arrow(table), table.to_batches()[0]):
        sketch = dpsw.Sketch(window="1h", epsilon=EXACT, keys=["a", "b"], expected_items=10, unit="users", per_user=8)
        assert sketch.extend(held, "ts", "who", column="url").counted == 8
        assert round(sketch.finish().frequency("a").value) == 4
    with pytest.raises(dpsw.InputError, match='there is no column "uri"; the table has url, ts, who'):
        dpsw.Sketch(window=10, epsilon=EXACT, keys=["a"]).extend(table, column="uri")
    with pytest.raises(dpsw.InputError, match="are names of its columns"):
        dpsw.Sketch(window="1h", epsilon=1, keys=["a"]).extend(table, MOMENTS, column="url")
