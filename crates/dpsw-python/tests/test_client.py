"""The client against the real service: it answers as a view does, follows streams, and makes them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from services import BUDGET, EPSILON, ROOT, START, Home, counts, fed, made, numbers, problem, running, same, scripted, until

import dpsw
from dpsw import _http, _live, _wire


def agree(stream: dpsw.Stream, item: Any, window: Any, as_of: Any) -> None:
    view = stream.view()
    past = view.as_of(as_of)
    short = past.last(window)
    when = {"window": window, "as_of": as_of}
    same(stream.top(), view.top())
    same(stream.top(2, strict=True, trend=True), view.top(2, strict=True, trend=True))
    same(stream.top(**when), short.top())
    same(stream.top(as_of=as_of), past.top())
    same(stream.heavy_hitters(0.3), view.heavy_hitters(0.3))
    same(stream.heavy_hitters(0.2, certainty="sure", **when), short.heavy_hitters(0.2, certainty="sure"))
    same(stream.heavy_hitters(0.2, among=[item]), view.heavy_hitters(0.2, among=[item]))
    # The service says what is covered of the window, not of each item of it.
    same(stream.frequency(item), replace(view.frequency(item), covered=view.covered))
    same(stream.frequency(item, **when), replace(short.frequency(item), covered=short.covered))
    same(stream.frequencies([item, item], trend=True), view.frequencies([item, item], trend=True))
    same(stream.history(item), view.history(item))
    same(stream.trend(item), view.trend(item))
    same(stream.trend(item, **when), short.trend(item))
    assert view.to_bytes() == stream.view().to_bytes(), "the stream stood still meanwhile"


def test_a_stream_and_its_view_give_the_same_numbers(client: dpsw.Client) -> None:
    name = f"s{next(numbers)}"
    client.create_source(name, protects="event", epsilon=1, columns={"page": "text"})
    # Real noise, so that no two numbers are equal by chance.
    stream = client.create_stream(name, source=name, item="page", window=1000, epsilon=1, keys=["a", "b", "c"], retention=2)
    fed(client, stream, ["a", "b", "a", "c"] * 1000)
    agree(stream, "a", 500, 3000)
    assert stream.frequency("a").value != stream.frequency("b").value


def test_a_stream_of_time_and_its_view_give_the_same_numbers(client: dpsw.Client) -> None:
    stream = made(client, window="1m", time_column="at")
    times = [START + timedelta(seconds=second / 10) for second in range(3000)]
    fed(client, stream, ["a", "b", "a"] * 1000, times=times, last=START + timedelta(seconds=299.9))
    agree(stream, "b", "30s", START + timedelta(seconds=240))
    agree(stream, "b", timedelta(seconds=30), START + timedelta(seconds=240))


def test_where_users_are_protected_shares_are_shares_of_what_counts(client: dpsw.Client) -> None:
    stream = made(client, protects="users", user_column="who", items_per_user=1)
    users = ["one who sends all the time" if row % 2 else f"user {row}" for row in range(4000)]
    fed(client, stream, ["a", "b", "a", "c"] * 1000, users=users)
    rows = stream.top()
    assert rows.about.unit == "users" and rows.capped == stream.view().top().capped != None
    assert sum(row.share or 0 for row in rows) == pytest.approx(1, abs=0.05)
    agree(stream, "a", 500, 3000)


def test_where_presence_is_private_there_is_no_total(client: dpsw.Client) -> None:
    stream = made(client, protects="presence", window="1m")
    client.send(stream.name, ["a"] * 100)
    rows = stream.top(all=True)
    assert all(row.lower <= row.estimate <= row.upper for row in rows)
    about = rows.about
    assert (about.unit, about.total) == ("add-remove", None)
    assert stream.privacy().unit == "add-remove"


def test_a_stream_without_sealed_counters_says_that_it_has_no_answer_yet(client: dpsw.Client) -> None:
    rows = made(client).top()
    assert len(rows) == 0 and "before the first substream is complete" in str(rows)
    assert "noise alone" not in str(rows)


def test_rows_that_may_be_noise_alone_are_announced_and_shown_if_asked_for(client: dpsw.Client) -> None:
    stream = made(client, keys=["a", "b", "never"])
    fed(client, stream, ["a", "b"] * 2000)
    assert [row.item for row in stream.top()] == ["a", "b"]
    assert "1 more may be noise alone" in str(stream.top())
    assert [row.item for row in stream.top(all=True)] == ["a", "b", "never"]


def test_keys_that_are_found_are_listed(client: dpsw.Client) -> None:
    stream = made(client, keys="found", delta=1e-6)
    fed(client, stream, ["/", "/cart"] * 2000)
    assert {row.item for row in stream.top()} == {"/", "/cart"}

HOSTILE = ["", " ", "a\nb", "a\r\n", "é", "\x00", '"', "\\", "a&item=b#c?d", "%2F../..", "\u202e", "😀", "\ufeff", "a,b", "null"]


def test_hostile_names_count_as_they_are(client: dpsw.Client) -> None:
    stream = made(client, keys=HOSTILE, window=len(HOSTILE) * 100)
    fed(client, stream, HOSTILE * 300)
    assert counts(stream) == dict.fromkeys(HOSTILE, 100)
    for item in HOSTILE:
        assert round(stream.frequency(item).value) == 100
        assert stream.history(item).item == item
        same(stream.trend(item), stream.view().trend(item))
    assert [row.item for row in stream.frequencies(HOSTILE)] == HOSTILE
    assert str(stream.top(all=True)).count("\n") == len(HOSTILE) + 1


def test_bytes_that_are_no_text_are_counted_and_come_back(client: dpsw.Client) -> None:
    stream = made(client, keys="asked")
    fed(client, stream, [b"\xff\xfe", b"a", "\u00ff"] * 1000)
    rows = stream.frequencies([b"\xff\xfe", b"a", "\u00ff"])
    assert [(row.item, round(row.estimate, -1)) for row in rows] == [(b"\xff\xfe", 330), ("a", 330), ("\u00ff", 330)]
    assert stream.history(b"\xff\xfe").item == b"\xff\xfe"
    assert round(stream.heavy_hitters(0.1, among=[b"\xff\xfe"])[0].estimate, -1) == 330


def test_integers_beyond_the_exact_floats_stay_exact(client: dpsw.Client) -> None:
    large = [2**53 + 1, 2**63 + 1, 2**64 - 1]
    stream = made(client, keys=large, kind="integer", window=900)
    fed(client, stream, large * 900)
    fed(client, stream, pyarrow.array(large * 900, pyarrow.uint64()), last=5400)
    assert counts(stream) == dict.fromkeys(large, 300)
    assert {row.item for row in stream.frequencies(large)} == set(large)
    assert round(stream.frequency(numpy.uint64(large[2])).value) == 300


def test_what_is_no_item_cannot_be_asked_for(client: dpsw.Client) -> None:
    stream = made(client)
    for item in (1.5, None, True, ["a"], "\ud800"):
        with pytest.raises(dpsw.InputError):
            stream.frequency(item)  # type: ignore[arg-type]
    with pytest.raises(dpsw.ServiceError, match="not in the public list") as caught:
        stream.frequency("z")
    assert (caught.value.code, caught.value.status) == ("wrong-item", 422)


def test_live_rows_follow_the_stream(client: dpsw.Client) -> None:
    stream = made(client)
    rows = stream.live(all=True)
    assert len(next(rows)) in (0, 3)
    client.send(stream.name, ["a", "b", "a", "c"] * 1000)
    latest = next(found for found in rows if found.about.window.end == stream.view().retained.end)
    same(latest, stream.top(all=True))
    client.send(stream.name, ["c"] * 2000)
    assert next(found for found in rows if found[0].item == "c")[0].estimate <= 1000
    rows.close()  # type: ignore[attr-defined]


def test_live_rows_can_be_left(client: dpsw.Client) -> None:
    # The service lets 64 clients follow: whoever is left behind would take a place.
    stream = made(client)
    for _ in range(80):
        for rows in stream.live():
            assert len(rows) == 0
            break
        until(lambda: not busy(stream))


def busy(stream: dpsw.Stream) -> bool:
    try:
        next(stream.live())
        return False
    except dpsw.ServiceError as error:
        assert error.status == 503
        return True


def test_live_rows_end_with_an_error_when_the_stream_is_deleted(client: dpsw.Client) -> None:
    stream = made(client)
    rows = stream.live()
    next(rows)
    client.delete_stream(stream.name)
    with pytest.raises(dpsw.ServiceError) as caught:
        next(rows)
    assert (caught.value.code, caught.value.status) == ("unknown-stream", 404)
    assert stream.name not in client.streams()


def test_live_rows_go_on_after_the_service_was_started_again(tmp_path: Path) -> None:
    with running(tmp_path) as home:
        client = dpsw.Client(home.url, home.token)
        stream = made(client)
        fed(client, stream, ["a", "b"] * 1000)
        rows = stream.live()
        before = next(rows)
        home.end()
        home.start(home.url.removeprefix("http://"))
        client.send(stream.name, ["c"] * 1000)
        after = next(rows)
        # What was seen before is not shown again.
        assert before.about.window.end < after.about.window.end


def told(end: int) -> dict[str, Any]:
    span = {"start": 0, "end": end, "unit": "items"}
    about = {"protects": "event", "epsilon": 1, "delta": 0, "total": end}
    return {"window": span, "covered": span, "items": [], "hidden": 0, **about}


def test_live_rows_that_were_seen_are_not_shown_again_after_a_lost_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_live, "FIRST_WAIT", 0.0)
    first, second = json.dumps(told(1)), json.dumps(told(2), indent=1).replace("\n", "\r\ndata:")
    once = (200, dict[str, str](), f": still here\n\nevent: top\nid: 1\ndata: {first}\n\ndata: cut off")
    again = (200, dict[str, str](), f"event: top\r\ndata: {first}\r\n\r\ndata: {second}\r\n\r\n")
    with scripted(once, problem(503), again, problem(401, "no-token")) as (server, client):
        found: list[object] = []
        with pytest.raises(dpsw.ServiceError, match="does not know the token"):
            found.extend(rows.about.window.end for rows in client.stream("pages").live())
        assert (found, len(server.asked)) == ([1, 2], 4)


def test_live_rows_of_a_service_that_is_gone_end_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_live, "FIRST_WAIT", 0.0)
    monkeypatch.setattr(_http, "LONGEST_WAIT", 0.01)
    with running(tmp_path) as home:
        rows = made(dpsw.Client(home.url, home.token)).live()
        next(rows)
        home.end()
        with pytest.raises(dpsw.ServiceError, match="nothing listens"):
            next(rows)


def test_sources_and_streams_are_listed_with_what_is_promised(client: dpsw.Client) -> None:
    stream = made(client, keys="asked")
    source = client.sources()[stream.name]
    assert (source.unit, source.columns, source.streams) == ("replace-one", {"page": "text"}, (stream.name,))
    assert (source.epsilon, source.epsilon_spent) == (BUDGET, EPSILON)
    info = client.streams()[stream.name]
    assert (info.column, info.window, info.epsilon, info.keys, info.retention) == ("page", 1000, EPSILON, "asked", 2)
    contract = stream.privacy()
    assert (contract.epsilon, contract.epsilon_spent, contract.delta) == (EPSILON, EPSILON, 0)
    assert "epsilon = 100000" in str(contract)


def test_a_view_that_is_sealed_here_is_shown_by_the_service(home: Home, client: dpsw.Client) -> None:
    name = f"s{next(numbers)}"
    driver = dpsw.Client(home.url, home.token_for("--role", "ingest", "--stream", name))
    sketch = dpsw.Sketch(window=1000, epsilon=1, keys=["a", "b", "c"], retention=2)
    sketch.extend(["a", "b", "a", "c"] * 1000)
    early = sketch.view()
    assert repr(driver.publish(name, early)) == repr(client.stream(name))
    agree(client.stream(name), "a", 500, 3000)
    rows = client.stream(name).live(1)
    same(next(rows), early.top(1))
    sketch.extend(["b"] * 2000)
    later = sketch.view()
    assert driver.publish(name, later.to_bytes()).name == name
    same(next(rows), later.top(1))
    driver.publish(name, later)
    with pytest.raises(dpsw.ServiceError, match="ends at 4,?000, and the one before at 6,?000") as caught:
        driver.publish(name, early)
    assert (caught.value.code, caught.value.status) == ("old-view", 409)
    assert client.stream(name).view().to_bytes() == later.to_bytes()
    info, contract = client.streams()[name], client.stream(name).privacy()
    assert (info.source, info.column, info.window, info.keys, info.epsilon) == (None, None, 1000, 3, 1)
    assert (contract.source, contract.unit, contract.epsilon, contract.epsilon_spent) == (None, "replace-one", 1, None)
    assert "sealed elsewhere" in str(contract)
    client.delete_stream(name)
    assert name not in client.streams()


def test_what_is_no_view_is_not_sent(client: dpsw.Client) -> None:
    with pytest.raises(dpsw.ParameterError, match="its bytes are wanted, got str"):
        client.publish("sales", "a view")  # type: ignore[arg-type]
    with pytest.raises(dpsw.ParameterError, match="a name has"):
        client.publish("../sales", b"")
    with pytest.raises(dpsw.ServiceError) as caught:
        client.publish("sales", b"no view")
    assert (caught.value.code, caught.value.status) == ("bad-view", 400)


def test_a_view_is_sent_again_to_a_busy_service() -> None:
    with scripted(problem(503), (204, {}, "")) as (service, client):
        assert client.publish("sales", b"x").name == "sales"
        assert len(service.asked) == 2


def test_what_the_service_does_not_bear_is_refused_in_its_words(client: dpsw.Client) -> None:
    stream = made(client)
    with pytest.raises(dpsw.ServiceError, match="over the budget") as caught:
        client.create_stream("more", source=stream.name, item="page", window=1000, epsilon=BUDGET, keys=["a"])
    assert (caught.value.code, caught.value.status) == ("over-budget", 409)
    with pytest.raises(dpsw.ServiceError, match="there is no source 'nowhere'") as caught:
        client.send("nowhere", ["a"])
    assert caught.value.code == "unknown-source"


def test_windows_and_keys_are_said_as_the_service_reads_them() -> None:
    windows = (1000, "100k", "15m", timedelta(seconds=1.5))
    assert [_wire.span(window) for window in windows] == [1000, 100_000, "900000ms", "1500ms"]
    assert _wire.keys(5) == {"below": 5} and _wire.keys("found") == "found"
    assert _wire.keys([2**63, 1]) == {"integers": [2**63, 1]} and _wire.keys(("a", "b")) == {"list": ["a", "b"]}
    with pytest.raises(dpsw.ParameterError, match="all texts or all integers"):
        _wire.keys(["a", 1])


def test_the_example_of_the_document_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs/guide/http.md").read_text()
    (example,) = re.findall(r"## From Python\n.*?```python\n(.*?)```", text, re.DOTALL)
    with running(tmp_path) as home:
        (tmp_path / "dpsw-data").symlink_to(tmp_path / "data")
        monkeypatch.chdir(tmp_path)
        said: dict[str, Any] = {}
        exec(example.replace("http://127.0.0.1:7878", home.url), said)
        assert said["sent"].events == 200_000
        assert {row.item for row in said["rows"]} == {"/", "/cart"}
