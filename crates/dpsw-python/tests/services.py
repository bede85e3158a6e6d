"""The real service in a folder of its own, ways to it that lose and lie, and what tests do with both."""

from __future__ import annotations

import json
import math
import os
import re
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest

import dpsw

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


def missing(words: str) -> NoReturn:
    """What is not there is skipped with the reason; in CI nothing is."""
    if os.environ.get("CI") == "true":
        pytest.fail(words)
    pytest.skip(words)


@contextmanager
def running(folder: Path, *words: str) -> Iterator[Home]:
    if not PROGRAM.exists():
        missing(f"there is no {PROGRAM}: cargo build -p dpsw-server makes it, or DPSW_SERVER says where it is")
    home = Home(folder, *words)
    try:
        yield home
    finally:
        home.end()


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
    """Sends to a new stream, and waits until all is counted; ``last`` is where a stream that is not new comes to."""
    sent = client.send(stream.name, items, **said)
    end = sent.events if last is None else last
    until(lambda: end <= stream.view().retained.end)
    return sent


def counts(stream: dpsw.Stream) -> dict[Any, int]:
    return {row.item: round(row.estimate) for row in stream.top(all=True)}


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

    do_POST = do_PUT = do_GET

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
