"""The client against the real service: the program in a folder of its own, ended with the tests."""

from __future__ import annotations

import copy
import json
import math
import os
import re
import socket
import socketserver
import ssl
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

import dpsw
from dpsw import _arrow, _events, _http, _live, _wire

ROOT = Path(__file__).parents[3]
PROGRAM = Path(os.environ.get("DPSW_SERVER", ROOT / "target/debug/dpsw-server"))
# Noise with this budget is nothing, but for one draw in e^1000.
EPSILON = 1e5
BUDGET = 1e6
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
numbers = count()


class Home:
    """A folder of the service, and the program while it runs."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder, self.words, self.url = folder, words, ""
        self.start("127.0.0.1:0")

    def start(self, address: str) -> None:
        with (self.folder / "log").open("a") as log:
            command = [str(PROGRAM), "--address", address, "--data", "data", "--end-with-stdin", *self.words]
            self.process = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"listens on (\S+)", line):
                self.url = found[1]
                return
        self.end()
        pytest.fail((self.folder / "log").read_text())

    @property
    def token(self) -> str:
        return (self.folder / "data/admin.token").read_text().strip()

    def token_for(self, *words: str) -> str:
        command = [str(PROGRAM), "--data", "data", "token", "create", *words]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def end(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


@contextmanager
def running(folder: Path, *words: str) -> Iterator[Home]:
    if not PROGRAM.exists():
        pytest.skip(f"there is no {PROGRAM}: cargo build -p dpsw-server makes it, or DPSW_SERVER says where it is")
    home = Home(folder, *words)
    try:
        yield home
    finally:
        home.end()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with running(tmp_path_factory.mktemp("service")) as home:
        yield home


@pytest.fixture
def client(home: Home) -> dpsw.Client:
    return dpsw.Client(home.url, home.token)


def made(client: dpsw.Client, *, keys: Any = ("a", "b", "c"), window: Any = 1000, kind: str = "text", **said: Any) -> dpsw.Stream:
    """A stream with a source of its own: ``client.send(stream.name, …)`` feeds it."""
    name = f"s{next(numbers)}"
    source = {"protects": "event", "epsilon": BUDGET, "columns": {"page": kind}} | said
    client.create_source(name, **source)
    expected = 1000 if isinstance(window, str) else None
    return client.create_stream(
        name, source=name, item="page", window=window, epsilon=EPSILON, keys=keys, retention=2, expected=expected
    )


def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def fed(client: dpsw.Client, stream: dpsw.Stream, items: Any, last: Any = None, **said: Any) -> dpsw.Sent:
    """Sends, and waits until all but what a substream may still hold is counted."""
    sent = client.send(stream.name, items, **said)
    end = sent.events - 50 if last is None else last
    until(lambda: end <= stream.view().retained.end)
    return sent


def counts(stream: dpsw.Stream) -> dict[Any, int]:
    return {row.item: round(row.estimate) for row in stream.top(all=True)}


# Answers of a stream and of its view ----------------------------------------------------------------------------------------


def same(one: Any, other: Any) -> None:
    """The same answer, up to the hundredths and millionths to which the service rounds counts and shares."""
    if isinstance(one, float) and isinstance(other, float):
        assert one == pytest.approx(other, abs=0.0051) or (math.isinf(one) and one == other)
    elif isinstance(one, dpsw.Rows):
        same(list(one), list(other))
        same(one.about, other.about)
    elif isinstance(one, dpsw.History):
        assert one.item == other.item
        same(list(one), list(other))
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other):
            same(left, right)
    elif hasattr(one, "__dataclass_fields__"):
        # Where the error comes from is not told by the service.
        for name in set(one.__dataclass_fields__) - {"noise", "collisions", "misfit"}:
            same(getattr(one, name), getattr(other, name))
    else:
        assert one == other


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
    fed(client, stream, ["a", "b", "a"] * 1000, times=times, last=START + timedelta(seconds=290))
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


# Items ----------------------------------------------------------------------------------------------------------------------

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
    fed(client, stream, pyarrow.array(large * 900, pyarrow.uint64()), last=5000)
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


# Sending --------------------------------------------------------------------------------------------------------------------

FOUR = ["a", "b", None, "a"]


@pytest.mark.parametrize(
    "items",
    [
        FOUR * 1000,
        tuple(FOUR * 1000),
        (item for item in FOUR * 1000),
        numpy.array(FOUR * 1000, dtype=object),
        pandas.Series(FOUR * 1000),
        pandas.Series(FOUR * 1000, dtype="category"),
        pandas.Series(FOUR * 1000, dtype="string"),
        pandas.Series(FOUR * 1000, dtype=object),
        pandas.DataFrame({"page": FOUR * 1000, "other": 1.5}),
        polars.Series(FOUR * 1000),
        polars.Series(FOUR * 1000, dtype=polars.Categorical),
        polars.DataFrame({"page": FOUR * 1000, "other": 1.5}),
        pyarrow.array(FOUR * 1000),
        pyarrow.array(FOUR * 1000).dictionary_encode(),
        pyarrow.array(FOUR * 1000, pyarrow.large_string()),
        pyarrow.chunked_array([FOUR * 500, [], FOUR * 500]),
        pyarrow.table({"page": FOUR * 1000, "other": [1.5] * 4000}),
        pyarrow.record_batch({"page": FOUR * 1000}),
        pyarrow.table({"page": FOUR * 1000}).to_reader(max_chunksize=300),
        {"page": FOUR * 1000},
    ],
    ids=lambda items: f"{type(items).__module__}.{type(items).__name__}",
)
def test_whatever_holds_items_can_be_sent(client: dpsw.Client, items: Any) -> None:
    stream = made(client)
    fed(client, stream, items)
    assert counts(stream) == {"a": 500, "b": 250, "c": 0}


@pytest.mark.parametrize("way", ["lists", "arrow", "generated", "table"])
def test_users_and_times_go_with_their_items(client: dpsw.Client, way: str) -> None:
    stream = made(client, window="1m", protects="users", user_column="who", items_per_user=1, time_column="at")
    items, users = ["a", "b", "a"] * 1000, [f"user {row}" for row in range(3000)]
    times = [START + timedelta(seconds=row / 10) for row in range(3000)]
    given: dict[str, dict[str, Any]] = {
        "lists": {"items": items, "times": times, "users": users},
        "arrow": {"items": pyarrow.array(items), "times": times, "users": users},
        "generated": {"items": iter(items), "times": iter(times), "users": iter(users)},
        "table": {"items": polars.DataFrame({"page": items, "when": times, "who": users}), "times": "when"},
    }
    fed(client, stream, **given[way], last=START + timedelta(seconds=290))
    # A window has 600 events; what it cuts at its edges is interpolated.
    assert stream.frequency("a").value == pytest.approx(400, abs=10)


def seen(client: dpsw.Client, times: Any, **said: Any) -> datetime:
    """Where a stream stands after these times."""
    stream = made(client, window="1m", time_column="at")
    client.send(stream.name, ["a"] * len(times), times=times, **said)
    until(lambda: not stream.view().retained.is_empty)
    end = stream.view().retained.end
    assert isinstance(end, datetime)
    return end


def test_times_of_every_kind_are_the_same_times(client: dpsw.Client) -> None:
    moments = [START + timedelta(seconds=second) for second in range(0, 600, 2)]
    seconds = [int(moment.timestamp()) for moment in moments]
    naive = [moment.replace(tzinfo=None) for moment in moments]
    east = timezone(timedelta(hours=2))
    wanted = seen(client, moments)
    assert START + timedelta(minutes=9) < wanted <= START + timedelta(minutes=10)
    assert seen(client, naive) == wanted
    assert seen(client, [moment.astimezone(east) for moment in moments]) == wanted
    assert seen(client, numpy.array(naive, "datetime64[ns]")) == wanted
    assert seen(client, pandas.Series(moments)) == wanted
    assert seen(client, polars.Series(naive)) == wanted
    assert seen(client, pyarrow.array(moments)) == wanted
    assert seen(client, seconds, time_unit="s") == wanted
    assert seen(client, numpy.array(seconds) * 10**9, time_unit="ns") == wanted
    assert seen(client, pyarrow.array(seconds), time_unit="s") == wanted


def test_times_soon_after_1970_are_not_taken_for_seconds(client: dpsw.Client) -> None:
    early = datetime(1970, 1, 2, tzinfo=timezone.utc)
    times = [early + timedelta(seconds=second) for second in range(0, 600, 2)]
    assert seen(client, times) < early + timedelta(minutes=11)
    assert seen(client, pyarrow.array(times)) < early + timedelta(minutes=11)


def test_a_missing_time_refuses_no_other_event(client: dpsw.Client) -> None:
    moments = [START + timedelta(seconds=second) for second in range(0, 600, 2)]
    gaps = [None if row in (7, 8) else moment for row, moment in enumerate(moments)]
    assert seen(client, gaps) == seen(client, pandas.Series(gaps)) == seen(client, pyarrow.array(gaps)) == seen(client, moments)
    odd = ["soon" if row in (7, 8) else moment for row, moment in enumerate(moments)]
    with pytest.raises(dpsw.InputError, match="the time of row 7 is of type str"):
        seen(client, odd)
    assert seen(client, odd, on_error="skip") == seen(client, moments)
    before = [datetime(1969, 1, 1), *moments[1:]]
    assert seen(client, before) == seen(client, moments)


def test_an_item_that_is_much_too_long_refuses_no_other_event(client: dpsw.Client) -> None:
    long = "x" * (20 << 20)
    for items in (["a", long], pyarrow.array(["a", long]), [b"a", long.encode()]):
        assert client.send(made(client).name, items).events == 2


def test_what_is_no_item_is_missing_in_its_place_if_that_is_asked_for(client: dpsw.Client) -> None:
    stream = made(client)
    fed(client, stream, ["a", 1.5, True, ["b"]] * 1000, on_error="skip")
    assert counts(stream) == {"a": 250, "b": 0, "c": 0}
    with pytest.raises(dpsw.ParameterError, match='"stop" or "skip"'):
        client.send(stream.name, ["a"], on_error="ignore")  # type: ignore[arg-type]


def test_half_a_character_refuses_no_other_event(client: dpsw.Client) -> None:
    stream = made(client)
    assert fed(client, stream, ["a", "\ud800"] * 2000).events == 4000
    assert fed(client, stream, ["a", "\ud800", "a", b"a"] * 1000, last=7900).events == 4000
    assert counts(stream)["a"] == 750


def test_several_columns_are_sent_together(client: dpsw.Client) -> None:
    name = f"s{next(numbers)}"
    columns = {"page": "text", "status": "integer"}
    client.create_source(name, protects="event", epsilon=BUDGET, columns=columns)
    pages = client.create_stream(f"{name}p", source=name, item="page", window=1000, epsilon=EPSILON, keys=["a", "b"])
    codes = client.create_stream(f"{name}c", source=name, item="status", window=1000, epsilon=EPSILON, keys=600)
    client.send(name, {"page": ["a", "b"] * 1000, "status": [200, 404] * 1000})
    client.send(name, pandas.DataFrame({"status": [200, 404] * 1000, "page": ["a", "b"] * 1000}))
    until(lambda: 3950 <= pages.view().retained.end and 3950 <= codes.view().retained.end)
    assert (counts(pages), round(codes.frequency(404).value)) == ({"a": 500, "b": 500}, 500)
    with pytest.raises(dpsw.ParameterError, match="several columns"):
        client.send(name, ["a"])
    with pytest.raises(dpsw.ParameterError, match="no column 'status'"):
        client.send(name, {"page": ["a"]})
    with pytest.raises(dpsw.InputError, match="every event needs a value"):
        client.send(name, {"page": ["a"], "status": [1, 2]})


@pytest.mark.parametrize(
    ("items", "said", "error"),
    [
        ("text", {}, "a list of one item"),
        ([1.5], {}, "row 0 of 'page' is of type float"),
        (["a", True], {}, "row 1 of 'page' is of type bool"),
        (numpy.array([0.5]), {}, "floats"),
        (5, {}, "cannot count a int"),
        (["a"], {"times": [START]}, "takes no times"),
        (["a"], {"users": ["u"]}, "takes no users"),
        (["a"], {"batch_id": "two words"}, "no blank"),
        (["a"], {"batch_id": "x" * 49}, "1 to 48"),
        (["a"], {"batch_id": "a/1"}, "no slash"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_sent(
    client: dpsw.Client, items: Any, said: dict[str, Any], error: str
) -> None:
    stream = made(client)
    with pytest.raises(dpsw.Error, match=error):
        client.send(stream.name, items, **said)
    timed = made(client, window="1m", time_column="at")
    with pytest.raises(dpsw.ParameterError, match="say times= of the events"):
        client.send(timed.name, ["a"])
    with pytest.raises(dpsw.InputError, match="time_unit="):
        client.send(timed.name, ["a"], times=[5])


def test_a_large_input_goes_in_several_batches_and_counts_once(client: dpsw.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_events, "EVENTS_AT_ONCE", 300)
    monkeypatch.setattr(_arrow, "EVENTS_AT_ONCE", 1000)
    monkeypatch.setattr(_arrow, "BYTES_AT_ONCE", 2000)
    for items in (["a", "b"] * 2000, pyarrow.array(["a", "b"] * 2000)):
        stream = made(client)
        source = client.sources()[stream.name]
        assert 10 < len(list(_events.bodies(source, items, None, None, (None, False))))
        assert fed(client, stream, items, batch_id="monday") == dpsw.Sent(4000, 0, "monday")
        assert client.send(stream.name, items, batch_id="monday") == dpsw.Sent(4000, 4000, "monday")
        fed(client, stream, ["c"] * 1000, last=4950)
        assert stream.view().retained.end <= 5000, "what was sent again counts once"


def test_what_goes_wrong_late_says_what_was_taken_and_under_which_name(client: dpsw.Client) -> None:
    stream = made(client)
    with pytest.raises(dpsw.InputError, match="row 99999 of 'page'") as caught:
        client.send(stream.name, ["a"] * 99_999 + [1.5])
    assert caught.value.__notes__[0].startswith("0 events were taken before")
    with pytest.raises(dpsw.InputError) as caught:
        client.send(stream.name, iter(["a"] * 99_999 + [1.5]), batch_id="mine")
    assert caught.value.__notes__[0].startswith("65536 events were taken before; send all again with batch_id=\"mine\"")
    assert client.send(stream.name, iter(["a"] * 100_000), batch_id="mine") == dpsw.Sent(100_000, 65_536, "mine")


def test_bytes_that_are_no_text_need_pyarrow(client: dpsw.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_arrow, "is_installed", lambda: False)
    stream = made(client)
    fed(client, stream, [b"a", "b"] * 2000)
    fed(client, stream, pyarrow.array(["a", "b"] * 2000), last=7950)
    assert counts(stream) == {"a": 500, "b": 500, "c": 0}
    with pytest.raises(dpsw.InputError, match="row 1 of 'page' is no UTF-8: install pyarrow"):
        client.send(stream.name, ["a", b"\xff"])
    assert client.send(stream.name, ["a", b"\xff"], on_error="skip").events == 2


# Ways to the service that lose, refuse and lie ----------------------------------------------------------------------------


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_address[1]  # type: ignore[index]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Lossy(socketserver.ThreadingTCPServer):
    """Passes everything on to the service, and loses the replies to the first posts."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, home: Home, losses: int) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        host, port = home.url.removeprefix("http://").split(":")
        self.upstream, self.losses, self.posts = (host, int(port)), losses, 0


class Passing(socketserver.BaseRequestHandler):
    server: Lossy

    def handle(self) -> None:
        with socket.create_connection(self.server.upstream) as upstream:
            first = self.request.recv(1 << 16)
            is_post = first.startswith(b"POST")
            self.server.posts += is_post
            upstream.sendall(first)
            threading.Thread(target=self.pass_on, args=(upstream,), daemon=True).start()
            reply = upstream.recv(1 << 16)
            if is_post and 0 < self.server.losses:
                self.server.losses -= 1
                return
            while reply:
                self.request.sendall(reply)
                reply = upstream.recv(1 << 16)

    def pass_on(self, upstream: socket.socket) -> None:
        try:
            while more := self.request.recv(1 << 16):
                upstream.sendall(more)
        except OSError:
            pass


def test_a_batch_whose_reply_was_lost_is_sent_again_and_counts_once(home: Home, client: dpsw.Client) -> None:
    stream = made(client)
    with Lossy(home, losses=2) as proxy, serving(proxy) as port:
        lossy = dpsw.Client(f"http://127.0.0.1:{port}", home.token)
        sent = lossy.send(stream.name, ["a", "b"] * 1000)
        assert (sent.events, sent.repeated, proxy.posts) == (2000, 2000, 3)
    fed(client, stream, ["c"] * 500, last=2450)
    # Were the batch counted twice, the stream would have come to 4,500.
    assert stream.view().retained.end <= 2500
    assert counts(stream)["c"] == pytest.approx(500, abs=40)


def test_a_question_is_asked_once(home: Home) -> None:
    with Lossy(home, losses=1) as proxy, serving(proxy) as port:
        lossy = dpsw.Client(f"http://127.0.0.1:{port}", home.token)
        with pytest.raises(dpsw.ServiceError, match="was lost"):
            lossy.create_source("lost-source", protects="event", epsilon=1, columns={"page": "text"})
        assert proxy.posts == 1


class Scripted(ThreadingHTTPServer):
    """Replies what it is told to, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self, *replies: tuple[int, dict[str, str], str]) -> None:
        super().__init__(("127.0.0.1", 0), Reading)
        self.replies, self.asked = list(replies), list[tuple[str, str, dict[str, str]]]()


class Reading(BaseHTTPRequestHandler):
    server: Scripted

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.command, self.path, dict(self.headers)))
        status, headers, body = self.server.replies.pop(0)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


def problem(status: int, code: str = "busy", detail: str = "later", **headers: str) -> tuple[int, dict[str, str], str]:
    return status, headers, json.dumps({"code": code, "detail": detail})


SOURCE = {
    "name": "web",
    "protects": "event",
    "columns": {"page": "text"},
    "streams": [],
    "ledger": {"epsilon": 1, "delta": 0, "epsilon_spent": 0, "delta_spent": 0},
}
SOURCES = (200, dict[str, str](), json.dumps({"sources": [SOURCE]}))
RECEIPT = (202, dict[str, str](), json.dumps({"events": 1, "repeated": False}))
TOKEN = "dpsw_a-secret-token"


@contextmanager
def scripted(*replies: tuple[int, dict[str, str], str]) -> Iterator[tuple[Scripted, dpsw.Client]]:
    with Scripted(*replies) as server, serving(server) as port:
        yield server, dpsw.Client(f"http://127.0.0.1:{port}", TOKEN)


def test_a_busy_service_is_asked_again_after_as_long_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(_http.time, "sleep", waits.append)
    with scripted(SOURCES, problem(503, **{"Retry-After": "3"}), problem(429), RECEIPT) as (server, client):
        assert client.send("web", ["a"]).events == 1
        ids = {headers["Batch-Id"] for _, _, headers in server.asked[1:]}
    assert len(ids) == 1
    assert waits[0] == 3 and 0 < waits[1] < 1


def test_a_service_that_stays_busy_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http.time, "sleep", lambda _: None)
    with scripted(SOURCES, *[problem(503)] * 20) as (server, client):
        with pytest.raises(dpsw.ServiceError, match="later") as caught:
            client.send("web", ["a"], batch_id="mine")
        assert (caught.value.code, caught.value.status, len(server.asked)) == ("busy", 503, 1 + _http.TRIES_MAX)
    assert 'batch_id="mine"' in caught.value.__notes__[0]


def test_a_service_that_asks_for_a_long_pause_is_not_waited_for() -> None:
    with scripted(SOURCES, problem(429, **{"Retry-After": "3600"})) as (_, client):
        with pytest.raises(dpsw.ServiceError) as caught:
            client.send("web", ["a"])
    assert caught.value.retry_after == 3600


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 500, 502])
def test_what_will_not_pass_is_not_sent_again(status: int) -> None:
    with scripted(SOURCES, problem(status, "no", "never")) as (server, client):
        with pytest.raises(dpsw.ServiceError) as caught:
            client.send("web", ["a"])
        assert (caught.value.status, len(server.asked)) == (status, 2)


def test_a_redirect_is_not_followed() -> None:
    with Scripted() as other, serving(other) as port:
        elsewhere = {"Location": f"http://127.0.0.1:{port}/v1/streams"}
        for status in (301, 302, 303, 307, 308):
            with scripted((status, elsewhere, "")) as (_, client):
                with pytest.raises(dpsw.ServiceError, match="redirects elsewhere, where the token is not sent"):
                    client.streams()
        assert other.asked == []


NONSENSE = ["<html>hello</html>", "{}", "[]", "5", '{"streams": [5]}', '{"streams": [{}]}', "\x00", "", "[" * 10**5]


@pytest.mark.parametrize("body", NONSENSE, ids=range(len(NONSENSE)))
def test_what_is_no_service_is_told_apart(body: str) -> None:
    with scripted((200, {}, body)) as (_, client):
        with pytest.raises(dpsw.ServiceError, match="is that the address of the service") as caught:
            client.streams()
    assert caught.value.code == "no-service"


def test_a_page_of_a_proxy_is_told_apart_from_a_problem_of_the_service() -> None:
    with scripted((502, {}, "<html>Bad Gateway</html>")) as (_, client):
        with pytest.raises(dpsw.ServiceError, match="replied with status 502") as caught:
            client.streams()
    assert (caught.value.code, caught.value.status) == ("no-service", 502)


def test_the_token_is_in_no_repr_no_message_and_no_output(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HTTPConnection, "debuglevel", 1)
    shown = ""
    with scripted(problem(400, "bad", f"you sent Bearer {TOKEN}\x1b[31m"), (200, {}, "no")) as (server, client):
        for _ in range(2):
            try:
                client.streams()
            except dpsw.ServiceError as error:
                shown += "".join(traceback.format_exception(error)) + repr(error)
        assert server.asked[0][2]["Authorization"] == f"Bearer {TOKEN}"
        stream = client.stream("pages")
        shown += repr(client) + repr(stream) + repr(client._service._token) + str(vars(type(client)))
        shown += repr(copy.copy(client))
    with pytest.raises(dpsw.ParameterError) as caught:
        dpsw.Client("http://127.0.0.1:1", f"{TOKEN}\nX-Other: header")
    shown += str(caught.value) + "".join(capfd.readouterr())
    assert "you sent Bearer <token>\\x1b[31m" in shown
    assert TOKEN not in shown


def test_an_unknown_token_and_one_that_allows_less_are_refused(home: Home, client: dpsw.Client) -> None:
    stream = made(client)
    with pytest.raises(dpsw.ServiceError, match="does not know the token") as caught:
        dpsw.Client(home.url, "dpsw_wrong").stream(stream.name).top()
    assert (caught.value.code, caught.value.status) == ("no-token", 401)
    asker = dpsw.Client(home.url, home.token_for("--role", "query"))
    assert asker.stream(stream.name).privacy().epsilon == EPSILON
    # The refusal comes before all of the body is sent, and is heard all the same.
    with pytest.raises(dpsw.ServiceError) as caught:
        asker.send(stream.name, ["a" * 1000] * 20_000)
    assert (caught.value.code, caught.value.status) == ("forbidden", 403)
    sender = dpsw.Client(home.url, home.token_for("--role", "ingest", "--source", stream.name))
    assert sender.send(stream.name, ["a"]).events == 1
    with pytest.raises(dpsw.ServiceError):
        sender.stream(stream.name).top()


def test_an_unreachable_service_says_so_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = dpsw.Client(f"http://127.0.0.1:{port}", TOKEN)
    for ask in (client.streams, lambda: client.send("web", ["a"]), lambda: next(client.stream("pages").live())):
        with pytest.raises(dpsw.ServiceError, match="nothing listens at .*is the service running") as caught:
            ask()
        assert (caught.value.code, caught.value.status) == ("unreachable", 0)


def test_a_silent_service_is_not_waited_for_longer_than_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = dpsw.Client(f"http://127.0.0.1:{silent.getsockname()[1]}", TOKEN, timeout=0.05)
        with pytest.raises(dpsw.ServiceError, match="did not reply within 0.05 seconds") as caught:
            client.streams()
    assert caught.value.code == "timeout"


WRONG = ["127.0.0.1:7878", "ftp://a", "http://", "http://a:x", "http://a b", "http://é", "http://a\x7f", "http://a?b=5", "", 5, None]


@pytest.mark.parametrize("url", WRONG)
def test_what_is_no_address_is_refused(url: Any) -> None:
    with pytest.raises(dpsw.ParameterError, match='a url such as "https://'):
        dpsw.Client(url, TOKEN)


def test_a_token_goes_over_plain_http_to_this_machine_alone() -> None:
    for host in ("127.0.0.1", "127.8.8.8", "[::1]", "localhost"):
        dpsw.Client(f"http://{host}:7878", TOKEN)
    for host in ("10.0.0.1", "example.org", "localhost.example.org", "[::]", "0.0.0.0", "127.0.0.1.example.org"):
        with pytest.raises(dpsw.ParameterError, match="would travel unprotected .*https://.*insecure=True"):
            dpsw.Client(f"http://{host}:7878", TOKEN)
        dpsw.Client(f"http://{host}:7878", TOKEN, insecure=True)
        dpsw.Client(f"https://{host}:7878", TOKEN)


def test_a_name_and_password_in_the_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(dpsw.ParameterError, match="the token is a parameter") as caught:
        dpsw.Client(f"http://me:{TOKEN}@127.0.0.1", TOKEN)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("token", ["", " ", "two words", "é", "a\r\nHost: b", None, b"bytes"])
def test_what_is_no_token_is_refused(token: Any) -> None:
    with pytest.raises(dpsw.ParameterError, match="a token is one line"):
        dpsw.Client("http://127.0.0.1", token)


@pytest.mark.parametrize("name", ["", "../tokens", "a/b", "a?b", "é", ".", "a" * 65, "a\n", None])
def test_what_is_no_name_is_refused(client: dpsw.Client, name: Any) -> None:
    for ask in (client.stream, client.delete_stream, lambda name: client.send(name, [])):
        with pytest.raises(dpsw.ParameterError, match="a name has 1 to 64"):
            ask(name)


def test_certificates_are_checked(tmp_path: Path) -> None:
    trustme = pytest.importorskip("trustme", reason="pip install trustme makes certificates for this test")
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    stranger.cert_pem.write_to_path(str(tmp_path / "other.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    (tmp_path / "chain.pem").write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    (tmp_path / "dpsw.toml").write_text('data = "data"\n[tls]\ncertificate = "chain.pem"\nkey = "key.pem"\n')
    with running(tmp_path, "--config", "dpsw.toml") as home:
        assert home.url.startswith("https://")
        trusting = dpsw.Client(home.url, home.token, ca_file=tmp_path / "ca.pem")
        stream = made(trusting)
        assert trusting.send(stream.name, ["a"]).events == 1
        assert len(next(stream.live())) == 0
        for ca_file in (None, tmp_path / "other.pem"):
            with pytest.raises(dpsw.ServiceError, match="is not trusted: .*ca_file=") as caught:
                dpsw.Client(home.url, home.token, ca_file=ca_file, insecure=True).streams()
            assert caught.value.code == "untrusted"
        with pytest.raises(dpsw.ServiceError, match="is not trusted: .*localhost"):
            dpsw.Client(home.url.replace("127.0.0.1", "localhost"), home.token, ca_file=tmp_path / "ca.pem").streams()
        with pytest.raises(dpsw.ServiceError):
            dpsw.Client(home.url.replace("https", "http"), home.token).streams()
    with pytest.raises(dpsw.ParameterError, match="no certificates can be read"):
        dpsw.Client("https://127.0.0.1", TOKEN, ca_file=tmp_path / "none.pem")


def test_a_service_without_tls_is_told_apart(home: Home) -> None:
    with pytest.raises(dpsw.ServiceError, match="does not speak TLS") as caught:
        dpsw.Client(home.url.replace("http", "https"), home.token).streams()
    assert caught.value.code == "no-tls" and isinstance(caught.value.__cause__, ssl.SSLError)


# Live -----------------------------------------------------------------------------------------------------------------------


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


# Making and listing ---------------------------------------------------------------------------------------------------------


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


def test_what_the_service_does_not_bear_is_refused_in_its_words(client: dpsw.Client) -> None:
    stream = made(client)
    with pytest.raises(dpsw.ServiceError, match="over the budget") as caught:
        client.create_stream("more", source=stream.name, item="page", window=1000, epsilon=BUDGET, keys=["a"])
    assert (caught.value.code, caught.value.status) == ("over-budget", 409)
    with pytest.raises(dpsw.ServiceError, match="there is no source 'nowhere'") as caught:
        client.send("nowhere", ["a"])
    assert caught.value.code == "unknown-source"


def test_windows_and_keys_are_said_as_the_service_reads_them() -> None:
    assert [_wire.span(window) for window in (1000, "100k", "15m", timedelta(seconds=1.5))] == [1000, 100_000, "900000ms", "1500ms"]
    assert _wire.keys(5) == {"below": 5} and _wire.keys("found") == "found"
    assert _wire.keys([2**63, 1]) == {"integers": [2**63, 1]} and _wire.keys(("a", "b")) == {"list": ["a", "b"]}
    with pytest.raises(dpsw.ParameterError, match="all texts or all integers"):
        _wire.keys(["a", 1])


def test_the_example_of_the_document_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs/http.md").read_text()
    (example,) = re.findall(r"## From Python\n.*?```python\n(.*?)```", text, re.DOTALL)
    with running(tmp_path) as home:
        (tmp_path / "dpsw-data").symlink_to(tmp_path / "data")
        monkeypatch.chdir(tmp_path)
        said: dict[str, Any] = {}
        exec(example.replace("http://127.0.0.1:7878", home.url), said)
        assert said["sent"].events == 200_000
        assert {row.item for row in said["rows"]} == {"/", "/cart"}
