"""A client for ``dpsw-server``: the same questions and the same results, with streams that are counted elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from . import _events, _inputs, _live, _wire
from ._errors import InputError, ParameterError, ServiceError
from ._events import How, Sent
from ._http import Params, Service, Shape
from ._inputs import OnError, TimeUnit
from ._plan import Keys, Window
from ._results import Estimate, History, Rows, Trend
from ._view import ROWS, View
from ._wire import Contract, Source, StreamInfo
from ._words import Item

VIEW = "application/vnd.dpsw.view"
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Client:
    """A client for ``dpsw-server``, with nothing but the standard library.

    Args:
        url: where the service is: ``"http://127.0.0.1:7878"``, ``"https://dpsw.example.org"``.
        token: what ``dpsw-server token create`` printed. It is sent to this address alone, and nothing prints it.
        timeout: how many seconds the service may be silent.
        ca_file: the certificates of the authority that signed that of the service, if the system does not know it.
        insecure: allows to send the token over plain ``http`` to another machine. Certificates are checked all the same.
        sender: the name under which :meth:`send` names its batches. By default it is random, which is right for programs that run
            for long. The service remembers a limited number of names for good: give a program that starts often one name for
            life, and never the same name to two programs that run at the same time.

    >>> import dpsw
    >>> dpsw.Client("http://127.0.0.1:7878", "a-token")
    <Client of http://127.0.0.1:7878>
    >>> dpsw.Client("http://dpsw.example.org", "a-token")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    dpsw._errors.ParameterError: the token would travel unprotected to dpsw.example.org: use https://, ...
    """

    __slots__ = ("_sender", "_service", "_sources")

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 10.0,
        ca_file: str | os.PathLike[str] | None = None,
        insecure: bool = False,
        sender: str | None = None,
    ) -> None:
        authority = None if ca_file is None else os.fspath(ca_file)
        self._service = Service(url, token, timeout=timeout, ca_file=authority, insecure=insecure)
        self._sender = _events.Sender(sender)
        # What a source is like never changes.
        self._sources: dict[str, Source] = {}

    def __repr__(self) -> str:
        return f"<Client of {self._service.url}>"

    def sources(self) -> dict[str, Source]:
        """The sources that the token may see, by name, with what they may spend and spend."""
        found = self._service.ask(_sources, "/v1/sources")
        self._sources = found
        return dict(found)

    def streams(self) -> dict[str, StreamInfo]:
        """The streams that the token may see, by name, with what is promised of them."""
        return self._service.ask(_streams, "/v1/streams")

    def stream(self, name: str) -> Stream:
        """The stream of this name, to be asked; nothing is sent yet."""
        return Stream(self._service, name)

    def send(
        self,
        source: str,
        items: Any,
        *,
        times: Any = None,
        users: Any = None,
        time_unit: TimeUnit | None = None,
        batch_id: str | None = None,
        on_error: OnError = "stop",
    ) -> Sent:
        """Sends events in their order of arrival; when it returns they are durable, and each counts once.

        ``items``, ``times`` and ``users`` may be all that :meth:`Sketch.extend` takes. Where the source has several columns,
        ``items`` is a dictionary of them or a table (pandas, polars, pyarrow); then times and users may be names of its columns,
        and are found by themselves in those that the source calls so. ``None`` is an item, a time or a user that is missing:
        the event takes its place and counts nowhere. What is of no type that can be counted is an error, before any of a list is
        sent; a program that goes on by itself after that needs ``on_error="skip"``: it is then missing.

        Large inputs go in several batches, each with a sender's name and a number: ``"web-1/42"``. What is lost on the way, comes to a
        busy service or has an unknown outcome is sent again for some time. To go on after an error, or in another process, send the same
        events under the same ``batch_id`` again: what arrived before counts once. A number of your own must be higher than those
        before; one that is more than 1,024 below the sender's highest is an error with the code ``batch-too-old``, and is not
        counted. Threads that share a client wait for one another.
        """
        shape = self._source(source)
        how: How = (time_unit, _inputs.skips(on_error))
        path, events, repeated = f"/v1/sources/{_checked(source)}/events", 0, 0
        with self._sender.batches(batch_id) as batches:
            try:
                for kind, body in _events.bodies(shape, items, times, users, how):
                    headers = {"Content-Type": kind, "Batch-Id": batches.name()}
                    reply, tries = self._service.send("POST", path, body, headers)
                    taken, is_repeated = self._service.told(_receipt, reply)
                    if is_repeated and tries == 1 and batch_id is None and self._sender.is_given:
                        raise _shared(headers["Batch-Id"], batches.sender)
                    events, repeated = events + taken, repeated + taken * is_repeated
            except (ServiceError, InputError) as error:
                again = f'send all again with batch_id="{batches.batch_id}", and they count once'
                error.add_note(f"{events} events were taken before; {again}")
                raise
            return Sent(events, repeated, batches.batch_id)

    def create_source(
        self,
        name: str,
        *,
        protects: Literal["event", "presence", "users"],
        epsilon: float,
        columns: Mapping[str, Literal["text", "integer"]],
        delta: float | None = None,
        items_per_user: int | None = None,
        time_column: str | None = None,
        user_column: str | None = None,
        routing: Literal["independent", "by_item"] = "independent",
    ) -> Source:
        """Makes a source. What it protects, its columns and its budget stay as they are for life.

        Args:
            protects: ``"event"``: what an event says; ``"presence"``: also that it happened at all; ``"users"``: all that a user
                sends in a window, of which ``items_per_user`` items per substream count.
            epsilon: what all its streams may spend together, with ``delta``.
            columns: the columns of items.
            time_column: the column with the time of each event; without one it is the time of arrival.
            user_column: the column with who sent each event.
            routing: ``"by_item"`` if events find their way to those that send them by their item.
        """
        said = {
            "name": name,
            "protects": protects,
            "epsilon": epsilon,
            "columns": dict(columns),
            "delta": delta,
            "items_per_user": items_per_user,
            "time_column": time_column,
            "user_column": user_column,
            "routing": routing,
        }
        return self._service.ask(Source.of, "/v1/sources", (), _said(said))

    def create_stream(
        self,
        name: str,
        *,
        source: str,
        item: str,
        window: Window,
        epsilon: float,
        delta: float | None = None,
        keys: Keys | Mapping[str, Any] = "found",
        expected: int | None = None,
        lateness: str | timedelta | None = None,
        memory: int | str | None = None,
        retention: int = 1,
    ) -> Stream:
        """Makes a stream: its source is charged now, and it counts from the next batch on.

        Args:
            source: the source of its events, and ``item`` the column that it counts.
            window, epsilon, delta, keys, lateness, memory, retention: as :func:`dpsw.plan` takes them.
            expected: about how many items a window of time holds: a public guess.
        """
        said = {
            "name": name,
            "item": item,
            "window": _wire.span(window),
            "epsilon": epsilon,
            "delta": delta,
            "keys": _wire.keys(keys),
            "expected": expected,
            "lateness": _wire.lateness(lateness),
            "memory": memory,
            "retention": retention,
        }
        made = self._service.ask(StreamInfo.of, f"/v1/sources/{_checked(source)}/streams", (), _said(said))
        return self.stream(made.name)

    def publish(self, name: str, view: View | bytes) -> Stream:
        """Shows a view of a stream that is sealed here and not by the service; when it returns the view is durable and can be seen.

        The first view makes the stream, for which the token must name it (``dpsw-server token create --role ingest --stream NAME``)
        or be ``admin``. Later ones must be of the same stream, with the same plan, key and sites, and end later. What is lost on the
        way or comes to a busy service is sent again for some time; a view that is shown already changes nothing. The service
        spends nothing: what the view costs is spent where it was sealed.
        """
        if not isinstance(view, View | bytes):
            raise ParameterError(f"a dpsw.View or its bytes are wanted, got {type(view).__name__}")
        body = view.to_bytes() if isinstance(view, View) else view
        stream = self.stream(name)
        self._service.send("PUT", f"/v1/streams/{name}/view", body, {"Content-Type": VIEW})
        return stream

    def delete_stream(self, name: str) -> None:
        """Deletes a stream. What is open is given up; what it has spent stays spent."""
        self._service.answer("DELETE", f"/v1/streams/{_checked(name)}")

    def _source(self, name: str) -> Source:
        _checked(name)
        found = self._sources.get(name) or self.sources().get(name)
        if found is None:
            raise ServiceError(f"there is no source {name!r}, or the token does not allow to see it", code="unknown-source")
        return found


class Stream:
    """A stream of a service. Its questions are those of a :class:`View`, and its answers the same up to the last digits.

    All questions take ``window``, a shorter window than that of the stream, and ``as_of``, the position or time at which a past
    window ended.
    """

    __slots__ = ("_path", "_service", "name")

    def __init__(self, service: Service, name: str, /) -> None:
        self.name = name
        self._service = service
        self._path = f"/v1/streams/{_checked(name)}"

    def __repr__(self) -> str:
        return f"<Stream {self.name} of {self._service.url}>"

    def privacy(self) -> Contract:
        """What is promised of it."""
        return self._service.ask(Contract.of, f"{self._path}/privacy")

    def view(self) -> View:
        """All that can be seen of it now. It answers any number of questions here, and about the same time."""
        return View.from_bytes(self._service.answer("GET", f"{self._path}/view"))

    def top(
        self,
        count: int = ROWS,
        *,
        strict: bool = False,
        trend: bool = False,
        all: bool = False,
        window: Window | None = None,
        as_of: int | datetime | None = None,
    ) -> Rows:
        """The most frequent keys, as :meth:`View.top` has them; with ``all``, also those that may be noise alone."""
        params = [("count", str(count)), *_wire.flags(strict=strict, trend=trend, all=all), *_wire.scope(window, as_of)]
        return self._service.ask(_wire.rows, f"{self._path}/top", params)

    def heavy_hitters(
        self,
        threshold: float,
        *,
        certainty: Literal["plain", "sure", "possible"] = "plain",
        among: Iterable[Item] | None = None,
        strict: bool = False,
        trend: bool = False,
        all: bool = False,
        window: Window | None = None,
        as_of: int | datetime | None = None,
    ) -> Rows:
        """The keys with at least this share of the window, as :meth:`View.heavy_hitters` has them."""
        params = [*_wire.flags(strict=strict, trend=trend, all=all), *_wire.scope(window, as_of)]
        path = f"{self._path}/heavy-hitters"
        if among is None:
            asked = [("threshold", repr(float(threshold))), ("certainty", certainty)]
            return self._service.ask(_wire.rows, path, [*asked, *params])
        if certainty != "plain":
            raise ParameterError(f'certainty is "plain" where among= names the candidates, got {certainty!r}')
        question = {"items": [_wire.asked(item) for item in among], "threshold": float(threshold)}
        return self._service.ask(_wire.rows, path, params, question)

    def frequency(self, item: Item, *, window: Window | None = None, as_of: int | datetime | None = None) -> Estimate:
        """How often an item occurred in the window, with its interval. The item stays out of addresses and logs."""
        return self._frequencies(_wire.estimate, [item], _wire.scope(window, as_of))

    def frequencies(
        self,
        items: Iterable[Item],
        *,
        trend: bool = False,
        window: Window | None = None,
        as_of: int | datetime | None = None,
    ) -> Rows:
        """How often each of these items occurred, in their order. They stay out of addresses and logs."""
        return self._frequencies(_wire.rows, items, [*_wire.flags(trend=trend), *_wire.scope(window, as_of)])

    def history(self, item: Item, *, window: Window | None = None, as_of: int | datetime | None = None) -> History:
        """The item in each substream that is kept, oldest first; it stands in the address."""
        params = [_wire.named(item), *_wire.scope(window, as_of)]
        return self._service.ask(lambda answer: _wire.history(item, answer), f"{self._path}/history", params)

    def trend(self, item: Item, *, window: Window | None = None, as_of: int | datetime | None = None) -> Trend:
        """The item now and before; it stands in the address."""
        params = [_wire.named(item), *_wire.scope(window, as_of)]
        return self._service.ask(_wire.trend, f"{self._path}/trend", params)

    def live(
        self,
        count: int = ROWS,
        *,
        strict: bool = False,
        trend: bool = False,
        all: bool = False,
        window: Window | None = None,
        as_of: int | datetime | None = None,
    ) -> Iterator[Rows]:
        """The most frequent keys now, and again whenever they change, until you leave the loop.

        A lost connection is made again for about a minute. A stream or token that is deleted ends it with an error.
        """
        params = [("count", str(count)), *_wire.flags(strict=strict, trend=trend, all=all), *_wire.scope(window, as_of)]
        return _live.follow(self._service, f"{self._path}/live", params)

    def _frequencies(self, read: Callable[[Any], Shape], items: Iterable[Item], params: Params) -> Shape:
        question = {"items": [_wire.asked(item) for item in items]}
        return self._service.ask(read, f"{self._path}/frequencies", params, question)


def _checked(name: str) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ParameterError(f"a name has 1 to 64 letters, digits, -, _ and ., a letter or digit first, got {name!r}")
    return name


def _said(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _sources(answer: Any) -> dict[str, Source]:
    found = [Source.of(said) for said in answer["sources"]]
    return {source.name: source for source in found}


def _streams(answer: Any) -> dict[str, StreamInfo]:
    found = [StreamInfo.of(said) for said in answer["streams"]]
    return {stream.name: stream for stream in found}


def _shared(batch_id: str, sender: str) -> ServiceError:
    words = f"batch {batch_id} is new here and was taken before, so it was not counted: does another program send as {sender!r}?"
    return ServiceError(f"{words} Give each its own sender=", code="sender-shared")


def _receipt(answer: Any) -> tuple[int, bool]:
    return int(answer["events"]), bool(answer["repeated"])
