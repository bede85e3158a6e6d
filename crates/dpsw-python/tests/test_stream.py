"""What a sketch does in its life, and what it refuses."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import secrets
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy
import pytest

import dpsw

EXACT = 1e6
NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def sketch(**more: Any) -> dpsw.Sketch:
    return dpsw.Sketch(**{"window": 1_000, "epsilon": EXACT, "keys": ["a", "b"], **more})


def test_a_view_shows_what_is_sealed_and_nothing_else() -> None:
    counting = sketch()
    assert len(counting.view().top()) == 0
    assert "nothing can be answered before" in str(counting.view().top())
    counting.extend(["a"] * 2_000)
    before = counting.view()
    counting.extend(["b"])
    assert counting.view().frequency("b").value == before.frequency("b").value == 0
    assert counting.finish().frequency("b").value == pytest.approx(1)


def test_a_finished_stream_takes_nothing_more() -> None:
    counting = sketch()
    counting.finish()
    for call in (lambda: counting.extend(["a"]), counting.view, counting.finish):
        with pytest.raises(dpsw.IngestError, match="was finished"):
            call()


def test_a_sketch_is_not_pickled_or_copied() -> None:
    counting = sketch()
    for call in (lambda: pickle.dumps(counting), lambda: copy.copy(counting), lambda: copy.deepcopy(counting)):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            call()


def _in_fork(counting: dpsw.Sketch, view: dpsw.View, results: Any) -> None:
    told = [round(view.frequency("a").value)]
    for call in (lambda: counting.extend(["a"]), counting.view, counting.finish):
        try:
            call()
            told.append("taken")
        except dpsw.IngestError as error:
            told.append("belongs to process" in str(error))
    results.put(told)


def test_a_sketch_is_not_used_after_a_fork_and_a_view_is() -> None:
    counting = sketch()
    counting.extend(["a"] * 2_000)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_in_fork, args=(counting, counting.view(), results))
    child.start()
    assert results.get(timeout=30) == [1_000, True, True, True]
    child.join()
    assert counting.extend(["a"]).counted == 1


def test_a_sketch_used_from_two_threads_says_so_and_loses_nothing() -> None:
    counting = dpsw.Sketch(window=1_000_000, epsilon=EXACT, keys=10)
    items = numpy.ones(3_000_000, "int64")
    refused, taken = [], []

    def feed() -> None:
        for _ in range(20):
            try:
                taken.append(counting.extend(items).counted)
            except dpsw.IngestError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=feed) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken and refused, "the interpreter is free while items are counted, so the threads met"
    assert all("another thread is using this sketch" in words for words in refused)
    assert counting.finish().about.total == 1_000_000
    assert len(taken) + len(refused) == 40


def test_other_threads_run_while_items_are_counted() -> None:
    counting = dpsw.Sketch(window=1_000_000, epsilon=1, keys=10)
    items = numpy.ones(100_000_000, "int8")
    steps, is_over = 0, threading.Event()
    thread = threading.Thread(target=lambda: (counting.extend(items), is_over.set()))
    thread.start()
    while not is_over.is_set():
        steps += 1
        is_over.wait(0.001)
    thread.join()
    assert 3 < steps, "this thread had its turns"


def test_a_view_can_be_pickled_with_its_window() -> None:
    counting = sketch(retention=3)
    counting.extend((["a"] * 500 + ["b"] * 500) * 3)
    view = counting.finish()
    for seen in (view, view.last(250), view.as_of(1_500), view.last(100).as_of(700)):
        again = pickle.loads(pickle.dumps(seen))
        assert again.window == seen.window
        assert again.top(2) == seen.top(2)
        assert copy.deepcopy(seen).frequency("a") == seen.frequency("a")


def test_a_view_from_bytes_answers_alike() -> None:
    counting = dpsw.Sketch(window=1_000, epsilon=1, keys=["a", "b"])
    counting.extend(["a", "b", "a"] * 700)
    view = counting.view()
    again = dpsw.View.from_bytes(view.to_bytes())
    assert again.top() == view.top()
    assert again.history("a") == view.history("a")
    with pytest.raises(dpsw.SnapshotError, match="do not begin like"):
        dpsw.View.from_bytes(b"something else")
    with pytest.raises(dpsw.SnapshotError, match="end too early|checksum"):
        dpsw.View.from_bytes(view.to_bytes()[:-5])


def test_shorter_and_past_windows_are_asked_of_the_same_view() -> None:
    counting = sketch(retention=2)
    counting.extend(["a"] * 1_000 + ["b"] * 1_000)
    view = counting.finish()
    assert round(view.frequency("a").value) == 0
    assert round(view.as_of(1_000).frequency("a").value) == 1_000
    assert round(view.last(100).frequency("b").value) == 100
    assert view.last("100").window == dpsw.Span(1_900, 2_000)
    counting = sketch()
    counting.extend(["a"] * 5_000)
    with pytest.raises(dpsw.QueryError, match="further than what is kept, 4,000 to 5,000"):
        counting.finish().last(2_000)
    with pytest.raises(dpsw.ParameterError, match="ask for a number of items"):
        view.last("5m")
    with pytest.raises(dpsw.ParameterError, match="a number of items"):
        view.as_of(NOON)


def test_time_windows_are_asked_in_times() -> None:
    counting = sketch(window="1h", expected_items=1_000, retention=2)
    minutes = [NOON + timedelta(minutes=minute) for minute in range(120)]
    counting.extend(["a"] * 60 + ["b"] * 60, minutes)
    view = counting.finish()
    assert round(view.frequency("b").value) == 60
    assert round(view.last(timedelta(minutes=30)).frequency("b").value) == pytest.approx(30, abs=2)
    assert round(view.as_of(NOON + timedelta(hours=1)).frequency("a").value) == pytest.approx(60, abs=2)
    assert view.window.end == minutes[-1] + timedelta(milliseconds=1)
    with pytest.raises(dpsw.ParameterError, match='a time such as "5m"'):
        view.last(30)


def test_history_and_trend_follow_an_item() -> None:
    counting = sketch(retention=2)
    counting.extend(["a"] * 1_000 + ["b"] * 1_000)
    view = counting.finish()
    history = view.history("b")
    assert sum(estimate.value for estimate in history) == pytest.approx(1_000)
    assert view.trend("b").direction == "rising"
    assert view.trend("a").direction == "falling"
    assert [row.trend for row in view.top(trend=True)] == ["rising"]


def test_a_list_of_few_keys_is_corrected_by_default() -> None:
    keys = [f"page-{key}" for key in range(20)]
    view = dpsw.view(keys * 100, window=2_000, epsilon=1, keys=keys)

    def spread(rows: dpsw.Rows) -> float:
        assert len(rows) > 15
        return rows[0].estimate - rows[15].estimate

    # Noise scatters the estimates; only a request that hides nothing shows them as they are.
    plain = spread(view.top(20, all=True))
    for rows in (view.top(20), view.top(1_000), view.top(19, all=True), view.heavy_hitters(1e-4), view.heavy_hitters(1e-4, all=True)):
        assert spread(rows) < plain
    assert spread(view.top(1_000, all=True)) == plain


def test_heavy_hitters_reach_the_threshold() -> None:
    counting = sketch(keys=["a", "b", "c"])
    counting.extend((["a"] * 70 + ["b"] * 25 + ["c"] * 5) * 20)
    view = counting.finish()
    assert [row.item for row in view.heavy_hitters(0.2)] == ["a", "b"]
    assert [row.item for row in view.heavy_hitters(0.2, certainty="sure")] == ["a", "b"]
    for threshold, certainty, words in ((0.0, "plain", "threshold"), (2.0, "plain", "threshold"), (0.2, "maybe", "certainty")):
        with pytest.raises(dpsw.Error, match=words):
            view.heavy_hitters(threshold, certainty=certainty)  # type: ignore[arg-type]


def test_without_a_list_the_asker_names_candidates() -> None:
    counting = dpsw.Sketch(window=10_000, epsilon=100, keys="asked")
    counting.extend(["x", "y", "x"] * 10_000)
    view = counting.finish()
    with pytest.raises(dpsw.QueryError, match="there is no list of keys: ask for some by name"):
        view.top()
    assert [row.item for row in view.heavy_hitters(0.5, among=["x", "y", "z"])] == ["x"]
    rows = view.frequencies(["y", "x"])
    assert [row.item for row in rows] == ["y", "x"]
    with pytest.raises(dpsw.ParameterError, match="certainty"):
        view.heavy_hitters(0.5, among=["x"], certainty="sure")


def test_intervals_are_as_wide_as_the_confidence() -> None:
    counting = dpsw.Sketch(window=1_000, epsilon=1, keys=["a"])
    counting.extend(["a"] * 1_000)
    view = counting.finish()
    widths = [view.frequency("a", confidence=level) for level in (0.5, 0.95, 0.999)]
    spans = [estimate.upper - estimate.lower for estimate in widths]
    assert spans == sorted(spans) and spans[0] < spans[2]
    with pytest.raises(dpsw.ParameterError, match="confidence must lie strictly between 0 and 1"):
        view.frequency("a", confidence=1)


def test_a_saved_state_goes_on_once(tmp_path: Path) -> None:
    key = secrets.token_bytes(32)
    counting = sketch()
    counting.extend(["a"] * 1_500)
    state = counting.save(key=key, store=tmp_path / "notes")
    with pytest.raises(dpsw.IngestError, match="was saved"):
        counting.extend(["a"])
    with pytest.raises(dpsw.StateError, match="does not open with this key"):
        dpsw.Sketch.restore(state, key=secrets.token_bytes(32), store=tmp_path / "notes")
    restored = dpsw.Sketch.restore(state, key=key, store=tmp_path / "notes")
    restored.extend(["b"] * 500)
    view = restored.finish()
    assert [round(view.frequency(item).value) for item in "ab"] == [500, 500]
    with pytest.raises(dpsw.StateError, match="was restored before"):
        dpsw.Sketch.restore(state, key=key, store=tmp_path / "notes")
    anew = dpsw.Sketch.resume(state, key=key, at=10_000)
    anew.extend(["b"] * 2_000)
    assert round(anew.finish().frequency("a").value) == 0
    for bad in (b"short", "text", None):
        with pytest.raises(dpsw.ParameterError, match="32 bytes"):
            sketch().save(key=bad, store=tmp_path)  # type: ignore[arg-type]


class Notes:
    """A store in memory, which may fail."""

    def __init__(self) -> None:
        self.notes: set[bytes] = set()
        self.is_broken = False

    def note(self, state: bytes) -> None:
        if self.is_broken:
            raise OSError("the disk is full")
        self.notes.add(state)

    def consume(self, state: bytes) -> bool:
        is_there = state in self.notes
        self.notes.discard(state)
        return is_there


def test_a_store_may_be_an_object_and_its_errors_come_through() -> None:
    key, store = secrets.token_bytes(32), Notes()
    state = sketch().save(key=key, store=store)
    assert len(store.notes) == 1
    dpsw.Sketch.restore(state, key=key, store=store)
    with pytest.raises(dpsw.StateError):
        dpsw.Sketch.restore(state, key=key, store=store)
    store.is_broken = True
    with pytest.raises(OSError, match="the disk is full"):
        sketch().save(key=key, store=store)


def test_views_of_sites_add_up() -> None:
    key = secrets.token_bytes(32)
    plan = dpsw.plan(window="1h", epsilon=EXACT, keys=["a", "b"], expected_items=1_000)
    views = []
    for site in (1, 2):
        counting = dpsw.Sketch(plan, site=site, stream_key=key)
        counting.extend(["a"] * 10 * site, [NOON + timedelta(minutes=1)] * 10 * site)
        views.append(counting.finish())
    merged = dpsw.View.merge(views)
    assert round(merged.frequency("a").value) == 30
    assert merged.sites == [1, 2]
    with pytest.raises(dpsw.MergeError, match="site 1 is in both"):
        dpsw.View.merge([views[0], views[0]])
    with pytest.raises(dpsw.MergeError, match="no view"):
        dpsw.View.merge([])


def test_workers_count_what_a_sketch_seals() -> None:
    key = secrets.token_bytes(32)
    plan = dpsw.plan(window="1h", epsilon=EXACT, keys=["a", "b"], clock="caller", expected_items=1_000, lateness="10m")
    counting, worker = dpsw.Sketch(plan, stream_key=key), dpsw.Worker(plan, stream_key=key)
    counting.advance(NOON)
    between = (NOON, NOON + timedelta(minutes=5))
    partials = []
    for batch, items in enumerate((["a", None, "b"], ["a", "a", "a"])):
        times = [NOON + timedelta(minutes=minute) for minute in range(3)]
        partials.append(worker.count(items, times, between=between, id=(1, batch, 0)))
    one, other = (dpsw.Partial.from_bytes(parts[0].to_bytes(), plan=plan) for parts in partials)
    assert "Partial of substream" in repr(one)
    again = dpsw.Partial.from_bytes(one.to_bytes(), plan=plan)
    one.merge(other)
    assert (counting.absorb(one), counting.absorb(again)) == (2, 0)
    for parts in partials:
        for partial in parts[1:]:
            counting.absorb(partial)
    with pytest.raises(dpsw.PartialError, match="absorbed or merged before"):
        counting.absorb(one)
    counting.advance(NOON + timedelta(minutes=50))
    view = counting.finish()
    assert [round(view.frequency(item).value) for item in "ab"] == [4, 1]
    with pytest.raises(dpsw.PartialError, match="with themselves"):
        partials[0][0].merge(partials[0][0])
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(partials[0][0])
    with pytest.raises(dpsw.PartialError, match="caller's clock"):
        dpsw.Worker(dpsw.plan(window="1h", epsilon=1, keys=["a"]), stream_key=key)


def test_where_presence_is_private_no_number_is_told() -> None:
    counting = dpsw.Sketch(
        window="1h", epsilon=1, keys=["a"], unit="add-remove", clock="caller", expected_items=1_000
    )
    counting.advance(NOON)
    taken = counting.extend(["a"] * 1_000, [NOON] * 1_000)
    assert taken == dpsw.Taken(None)
    counting.advance(NOON + timedelta(hours=1))
    view = counting.view()
    assert view.about.total is None
    assert abs(view.frequency("a").value - 1_000) < 300
    assert "the presence of each event" in str(view.top())


def test_keys_are_found_and_nothing_rare_is_shown() -> None:
    items = ["home"] * 5_000 + ["cart"] * 3_000 + [f"secret {number}" for number in range(2_000)]
    numpy.random.default_rng(7).shuffle(items)
    view = dpsw.view(items, window=10_000, epsilon=1)
    assert [row.item for row in view.top()] == ["home", "cart"]
    assert view.keys == [] or set(view.keys) <= {"home", "cart"}
    assert view.about.delta == 1e-10


def test_numbers_out_of_range_are_refused_with_the_range() -> None:
    for said, words in (
        ({"epsilon": 0}, "epsilon must lie between"),
        ({"epsilon": float("nan")}, "epsilon must lie between"),
        ({"window": 0}, "window must lie between 1 and"),
        ({"window": "5 parsecs"}, "5 parsecs"),
        ({"window": 1.5}, "window must be a whole number, got 1.5 of type float"),
        ({"window": timedelta(0)}, "at least one millisecond"),
        ({"delta": 2.0, "keys": "found"}, "delta must lie strictly between 0 and 1"),
        ({"keys": "everything"}, 'keys must be a list, "found" or "asked"'),
        ({"keys": ["a", "a"]}, "repeats key"),
        ({"keys": ["a", None]}, "is missing"),
        ({"kind": "floats"}, "kind must be"),
        ({"unit": "person"}, "unit must be"),
        ({"clock": "sun", "window": "1h"}, "clock must be"),
        ({"memory": "4 parsecs"}, "4 parsecs"),
        ({"memory": -1}, "memory must lie between 1 and"),
        ({"epsilon": "1"}, "epsilon must be a number, got '1' of type str"),
        ({"epsilon": [1]}, "epsilon must be a number"),
        ({"delta": "x"}, "delta must be a number"),
        ({"retention": "2"}, "retention must be a whole number"),
        ({"per_user": -1}, "per_user must lie between 1 and"),
        ({"window": "1h", "expected_items": 8000.5}, "expected_items must be a whole number"),
        ({"window": "1h", "lateness": "2h"}, "lateness must lie between 0 ms and 1 h, got 2 h"),
        ({"window": "1h", "lateness": None}, "must be a whole number"),
        ({"expected_items": 8000}, "expected_items= is for windows of time"),
        ({"lateness": "5s"}, "lateness= is for windows of time"),
        ({"keys": []}, "number of keys in the domain must lie between 1 and"),
        ({"keys": 0}, "must lie between 1 and"),
        ({"keys": 2**40}, "number of keys in the domain must lie between 1 and"),
        ({"keys": -5}, "must lie between 1 and"),
        ({"keys": None}, "must be a whole number, got None"),
        ({"keys": ["/", 1]}, "key 1 is of type int"),
        ({"expect": "abc"}, "expect must be a list of counts"),
        ({"expect": 5}, "expect must be a list of counts"),
        ({"paper": {"rows": 2}}, "paper must be a dpsw.Paper"),
        ({"retention": 0}, "retention must lie between 1 and"),
    ):
        with pytest.raises(dpsw.Error) as raised:
            dpsw.plan(**{"window": 1_000, "epsilon": 1, "keys": ["a", "b"], **said})  # type: ignore[arg-type]
        assert words in str(raised.value), said
        assert isinstance(raised.value, ValueError | TypeError)


def test_numbers_of_numpy_and_pandas_are_numbers() -> None:
    import pandas

    wanted = dpsw.plan(window=1_000, epsilon=1, keys=10)
    assert dpsw.plan(window=numpy.int64(1_000), epsilon=numpy.float32(1), keys=10) == wanted
    assert dpsw.plan(window=1e3, epsilon=1, keys=numpy.arange(10)).window == 1_000  # type: ignore[arg-type]
    hour = dpsw.plan(window="1h", epsilon=1, keys=10)
    for window in (numpy.timedelta64(1, "h"), pandas.Timedelta("1h"), timedelta(hours=1)):
        assert dpsw.plan(window=window, epsilon=1, keys=10) == hour


def test_what_is_asked_wrongly_is_refused_with_what_is_wanted() -> None:
    counting = sketch()
    counting.extend(["a"] * 2_000)
    view = counting.view()
    calls: list[tuple[Any, str]] = [
        (lambda: view.last(0), "a window must lie between 1 and"),
        (lambda: view.last(-1), "a window must lie between 1 and"),
        (lambda: view.last("0"), "0"),
        (lambda: view.top(0), "count must lie between 1 and"),
        (lambda: view.top("3"), "count must be a whole number"),
        (lambda: view.top(10**30), "count must lie between"),
        (lambda: view.as_of("x"), "a position must be a whole number"),
        (lambda: view.frequency("absent"), "not among the public keys"),
        (lambda: view.frequency(200.0), "asked item 0 is of type float"),
        (lambda: view.frequency("a", confidence="0.95"), "confidence must be a number"),
        (lambda: view.frequencies("a"), "one item is not a list"),
        (lambda: view.heavy_hitters("0.05"), "threshold must be a number"),
        (lambda: dpsw.View.from_bytes("abc"), "a view is made of bytes"),
        (lambda: dpsw.View.merge([1, 2]), "a view must be a dpsw.View"),
        (lambda: dpsw.Sketch(3), "plan must be a dpsw.Plan"),
        (lambda: dpsw.audit(3), "plan must be a dpsw.Plan"),
        (lambda: dpsw.audit(view.plan, runs=-10), "runs must lie between"),
        (lambda: sketch(site=-1), "site must lie between"),
        (lambda: sketch(length="5"), "length must be a whole number"),
        (lambda: counting.advance("2026"), "a datetime"),
        (lambda: counting.absorb(5), "partial must be a dpsw.Partial"),
    ]
    for call, words in calls:
        with pytest.raises(dpsw.Error) as raised:
            call()
        assert words in str(raised.value), words


def test_views_are_equal_and_saved_and_opened(tmp_path: Path) -> None:
    counting = sketch()
    counting.extend(["a"] * 2_000)
    view = counting.view()
    view.save(tmp_path / "a.view")
    assert dpsw.View.open(tmp_path / "a.view") == view
    assert view.last(5) != view and hash(view) == hash(counting.view())
    assert dpsw.__version__.count(".") == 2


def test_parameters_of_the_paper_that_contradict_each_other_are_refused() -> None:
    for said, words in (
        ({"substreams": 5, "beta": 0.5}, "substreams= or beta="),
        ({"zeta": 0.1}, "zeta= and eta="),
        ({"zeta": 0.1, "eta": 0.1, "rows": 2}, "give one pair"),
    ):
        with pytest.raises(dpsw.ParameterError, match=words):
            dpsw.Paper(**said)  # type: ignore[arg-type]


def test_a_plan_is_found_for_an_error_to_reach() -> None:
    said: Any = {"window": 100_000, "keys": 1_000}
    plan = dpsw.plan(**said, target_error=50)
    assert plan.frequent_error is not None and plan.frequent_error <= 50
    assert dpsw.plan(**said, target_error=100).epsilon < plan.epsilon
    small = dpsw.plan(**said, epsilon=5, target_share=0.5)
    assert small.bytes < dpsw.plan(**said, epsilon=5).bytes
    with pytest.raises(dpsw.ParameterError, match="epsilon is needed"):
        dpsw.plan(window=10, keys=10)
    with pytest.raises(dpsw.ParameterError, match="above 0"):
        dpsw.plan(window=10, keys=10, target_error=-1)


def test_a_plan_says_it_all_once() -> None:
    plan = dpsw.plan(window=1_000, epsilon=1, keys=10)
    with pytest.raises(dpsw.ParameterError, match="the plan says it all"):
        dpsw.Sketch(plan, epsilon=2)
    with pytest.raises(dpsw.ParameterError, match="a Sketch needs a plan"):
        dpsw.Sketch(window=5)
    with pytest.raises(TypeError, match="make it again"):
        pickle.dumps(plan)
    assert "promise" in str(plan) and "Plan(method='tuned'" in repr(plan)


def test_the_audit_holds() -> None:
    report = dpsw.audit(dpsw.plan(window=10_000, epsilon=0.5, keys=50), runs=2_000, seals=36_000, false_alarm=1e-6)
    assert report.holds and report.claimed == 0.5 and report.observed <= 0.5
    assert repr(report).startswith("HOLDS")
    with pytest.raises(dpsw.AuditError, match="at least 2000"):
        dpsw.audit(dpsw.plan(window=10_000, epsilon=0.5, keys=50), runs=5)


def test_the_paper_method_counts_too() -> None:
    counting = dpsw.Sketch(window=10_000, epsilon=100, keys=1_000, paper=dpsw.Paper(substreams=10))
    counting.extend(numpy.arange(20_000) % 1_000)
    estimate = counting.view().frequency(5)
    assert estimate.lower <= 10 <= estimate.upper
    assert counting.plan.method == "paper" and counting.plan.delta == 1e-10


def test_nothing_secret_is_in_a_repr(tmp_path: Path) -> None:
    counting = dpsw.Sketch(window=1_000, epsilon=1, keys="asked")
    counting.extend(["a very secret item"] * 7)
    assert "secret" not in repr(counting) and "7" not in repr(counting)
    assert os.listdir(tmp_path) == []
