"""Follows a stream: the service sends its top items whenever they change (server-sent events)."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse

from . import _wire
from ._errors import ServiceError
from ._http import LOST, Params, Service, wait
from ._results import Rows

# The service says every 15 seconds that it is still there; after three of them it is not.
SILENCE_MAX = 45.0
# A lost service is looked for about a minute, and not more often than every second.
TRIES_MAX = 10
FIRST_WAIT = 1.0
LINE_LEN_MAX = 1 << 26


def follow(service: Service, path: str, params: Params) -> Iterator[Rows]:
    """The rows now, and whenever they change. Connects again if the connection is lost."""
    last: Rows | None = None
    attempt = 0
    while True:
        error = ServiceError(f"{service.url} ended the connection")
        try:
            with service.exchange("GET", path, params) as (response, channel):
                channel.settimeout(SILENCE_MAX)
                for event in _events(response):
                    rows, attempt = service.told(_wire.rows, event), 0
                    # After a new connection the first rows may be those that were seen last.
                    if rows != last:
                        last = rows
                        yield rows
        except ServiceError as met:
            error = met
        if last is None or attempt == TRIES_MAX or not _wait(error, attempt):
            raise error
        attempt += 1


def _wait(error: ServiceError, attempt: int) -> bool:
    if error.code in LOST:
        error.retry_after = FIRST_WAIT
    return wait(error, attempt)


def _events(response: HTTPResponse) -> Iterator[bytes]:
    """What the events say, without the comments between them."""
    parts: list[bytes] = []
    while line := response.readline(LINE_LEN_MAX + 1):
        if LINE_LEN_MAX < len(line):
            raise HTTPException("an event is too long")
        text = line.rstrip(b"\r\n")
        if text.startswith(b"data:"):
            parts.append(text.removeprefix(b"data:").removeprefix(b" "))
        elif not text and parts:
            yield b"\n".join(parts)
            parts = []
