"""Events on their way from Python to the real service."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest
from services import BUDGET, EPSILON, START, Home, counts, fed, made, numbers, until

import dpsw
from dpsw import _arrow, _events

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
    fed(client, stream, **given[way], last=START + timedelta(seconds=299.9))
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
    assert fed(client, stream, ["a", "\ud800", "a", b"a"] * 1000, last=8000).events == 4000
    assert counts(stream)["a"] == 750


def test_several_columns_are_sent_together(client: dpsw.Client) -> None:
    name = f"s{next(numbers)}"
    columns = {"page": "text", "status": "integer"}
    client.create_source(name, protects="event", epsilon=BUDGET, columns=columns)
    pages = client.create_stream(f"{name}p", source=name, item="page", window=1000, epsilon=EPSILON, keys=["a", "b"])
    codes = client.create_stream(f"{name}c", source=name, item="status", window=1000, epsilon=EPSILON, keys=600)
    client.send(name, {"page": ["a", "b"] * 1000, "status": [200, 404] * 1000})
    client.send(name, pandas.DataFrame({"status": [200, 404] * 1000, "page": ["a", "b"] * 1000}))
    until(lambda: 4000 <= pages.view().retained.end and 4000 <= codes.view().retained.end)
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
        (["a"], {"batch_id": "monday"}, "such as \"web-1/42\""),
        (["a"], {"batch_id": "two words/1"}, "such as"),
        (["a"], {"batch_id": "x" * 65 + "/1"}, "such as"),
        (["a"], {"batch_id": "a/01"}, "such as"),
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
        assert fed(client, stream, items, batch_id="monday/7") == dpsw.Sent(4000, 0, "monday/7")
        assert client.send(stream.name, items, batch_id="monday/7") == dpsw.Sent(4000, 4000, "monday/7")
        fed(client, stream, ["c"] * 1000, last=5000)
        assert stream.view().retained.end <= 5000, "what was sent again counts once"


def test_what_goes_wrong_late_says_what_was_taken_and_under_which_name(client: dpsw.Client) -> None:
    stream = made(client)
    with pytest.raises(dpsw.InputError, match="row 99999 of 'page'") as caught:
        client.send(stream.name, ["a"] * 99_999 + [1.5])
    assert caught.value.__notes__[0].startswith("0 events were taken before")
    with pytest.raises(dpsw.InputError) as caught:
        client.send(stream.name, iter(["a"] * 99_999 + [1.5]), batch_id="mine/3")
    assert caught.value.__notes__[0].startswith("65536 events were taken before; send all again with batch_id=\"mine/3\"")
    assert client.send(stream.name, iter(["a"] * 100_000), batch_id="mine/3") == dpsw.Sent(100_000, 65_536, "mine/3")


def test_each_call_has_numbers_of_its_own_also_after_an_error(client: dpsw.Client, home: Home) -> None:
    stream = made(client)
    own = dpsw.Client(home.url, home.token)
    first = own.send(stream.name, ["a"])
    sender = first.batch_id.removesuffix("/1")
    assert first == dpsw.Sent(1, 0, f"{sender}/1") and own.send(stream.name, ["a"]).batch_id == f"{sender}/2"
    with pytest.raises(dpsw.InputError) as caught:
        own.send(stream.name, iter(["a"] * 99_999 + [1.5]))
    assert f'batch_id="{sender}/3"' in caught.value.__notes__[0]
    assert own.send(stream.name, ["b"]).batch_id == f"{sender}/4", "3 was taken"
    assert own.send(stream.name, ["b"], batch_id=f"{sender}/9").repeated == 0
    assert own.send(stream.name, ["b"]).batch_id == f"{sender}/10"


def test_a_batch_that_is_too_old_is_an_error_and_counts_nowhere(client: dpsw.Client) -> None:
    stream = made(client)
    client.send(stream.name, ["a"], batch_id="old/5000")
    assert client.send(stream.name, ["a"], batch_id="old/3976").repeated == 0
    with pytest.raises(dpsw.ServiceError, match="taken before, or is too old") as caught:
        client.send(stream.name, ["a"], batch_id="old/3975")
    assert (caught.value.code, caught.value.status) == ("batch-too-old", 409)


def test_a_sender_for_life_goes_on_in_the_next_process_and_is_not_shared(
    client: dpsw.Client, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = made(client)
    for _ in range(2):
        assert dpsw.Client(home.url, home.token, sender="cron").send(stream.name, ["a"]).repeated == 0
    monkeypatch.setattr(_events.clock, "time_ns", lambda: 1_000_000)
    one, other = (dpsw.Client(home.url, home.token, sender="twins") for _ in range(2))
    one.send(stream.name, ["a"])
    with pytest.raises(dpsw.ServiceError, match="another program send as 'twins'") as caught:
        other.send(stream.name, ["b"])
    assert caught.value.code == "sender-shared"
    with pytest.raises(dpsw.ParameterError, match="a sender has 1 to 64"):
        dpsw.Client(home.url, home.token, sender="two words")


def test_bytes_that_are_no_text_need_pyarrow(client: dpsw.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_arrow, "is_installed", lambda: False)
    stream = made(client)
    fed(client, stream, [b"a", "b"] * 2000)
    fed(client, stream, pyarrow.array(["a", "b"] * 2000), last=8000)
    assert counts(stream) == {"a": 500, "b": 500, "c": 0}
    with pytest.raises(dpsw.InputError, match="row 1 of 'page' is no UTF-8: install pyarrow"):
        client.send(stream.name, ["a", b"\xff"])
    assert client.send(stream.name, ["a", b"\xff"], on_error="skip").events == 2
