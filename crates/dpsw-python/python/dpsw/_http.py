"""Requests to the service: where it is, who asks, and what can go wrong on the way."""

from __future__ import annotations

import json
import random
import socket
import ssl
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlencode, urlsplit

from ._errors import ParameterError, ServiceError
from ._words import name

# A reply is never longer than this, whatever answers.
REPLY_LEN_MAX = 1 << 30
# A problem is a few sentences.
PROBLEM_LEN_MAX = 1 << 16
# A batch is sent so often at most, and nobody waits longer than this for the next time.
TRIES_MAX = 6
FIRST_WAIT = 0.1
LONGEST_WAIT = 30.0
# A connection that was lost, no reply in time, a disk that did not confirm: another try may go through.
LOST = ("unreachable", "timeout", "outcome-unknown")
BUSY = (429, 503)

Params = Sequence[tuple[str, str]]
Shape = TypeVar("Shape")


class Token:
    """A token, which nothing prints."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        text = text.strip() if isinstance(text, str) else ""
        if not text or not all("!" <= letter <= "~" for letter in text):
            raise ParameterError("a token is one line of ASCII characters without blanks, as `dpsw-server token create` prints it")
        self._text = text

    def __repr__(self) -> str:
        return "<token>"

    def header(self) -> str:
        """What a request shows."""
        return f"Bearer {self._text}"

    def out_of(self, text: str) -> str:
        """The same words without the token, in case that a reply repeats what was sent."""
        return text.replace(self._text, "<token>")


class Service:
    """Where the service is and who asks. Every request has a connection of its own, goes there alone and follows no redirect."""

    __slots__ = ("_parts", "_timeout", "_tls", "_token", "url")

    def __init__(self, url: str, token: str, *, timeout: float, ca_file: str | None, insecure: bool) -> None:
        self._token = Token(token)
        self._parts = _parts(url)
        if self._parts.scheme == "http" and not insecure and not _is_loopback(self._parts.hostname or ""):
            raise ParameterError(
                f"the token would travel unprotected to {self._parts.hostname}: use https://, or allow it with insecure=True"
            )
        if not isinstance(timeout, int | float) or not 0 < timeout < 1e6:
            raise ParameterError(f"timeout must be a number of seconds above 0, got {timeout!r}")
        self.url = self._parts.geturl().rstrip("/")
        self._timeout = timeout
        self._tls = _tls(self._parts.scheme, ca_file)

    def ask(self, read: Callable[[Any], Shape], path: str, params: Params = (), question: Any = None) -> Shape:
        """The answer to a question, which is asked once; with a body, the question stays out of the address."""
        method = "GET" if question is None else "POST"
        return self.told(read, self.answer(method, path, params, question))

    def answer(self, method: str, path: str, params: Params = (), question: Any = None) -> bytes:
        """The bytes of a reply."""
        body = None if question is None else json.dumps(question, allow_nan=False).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        with self.exchange(method, path, params, body, headers) as (response, _):
            return self._whole(response)

    def told(self, read: Callable[[Any], Shape], reply: bytes) -> Shape:
        """What a reply says."""
        try:
            return read(json.loads(reply))
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            raise self._stranger("replied what dpsw-server of this version does not say") from error

    def send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[bytes, int]:
        """The reply to a body that may be sent again, if the service is busy or the connection is lost; and how often it was sent."""
        for attempt in range(TRIES_MAX):
            try:
                with self.exchange(method, path, (), body, headers) as (response, _):
                    return self._whole(response), attempt + 1
            except ServiceError as error:
                if attempt + 1 == TRIES_MAX or not wait(error, attempt):
                    raise
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def exchange(
        self, method: str, path: str, params: Params = (), body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Generator[tuple[HTTPResponse, socket.socket], None, None]:
        """Asks, and hands over what comes back with the socket that it comes from, if it is no problem."""
        connection = self._connection()
        try:
            connection.connect()
            channel: socket.socket = connection.sock
            self._request(connection, method, path, params, body, headers or {})
            with connection.getresponse() as response:
                self._check(response)
                yield response, channel
        except (OSError, HTTPException) as error:
            raise self._lost(error) from error
        finally:
            connection.close()

    def _connection(self) -> HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._tls is None:
            connection = HTTPConnection(host, port, timeout=self._timeout)
        else:
            connection = HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)
        # Whoever debugs all connections of a program would print the token.
        connection.set_debuglevel(0)
        return connection

    def _request(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        params: Params,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> None:
        target = self._parts.path.rstrip("/") + path + (f"?{urlencode(params)}" if params else "")
        try:
            connection.request(method, target, body, {**headers, "Authorization": self._token.header()})
        except ConnectionError:
            # Who refuses a request need not read its body: the reply may be there already.
            pass

    def _whole(self, response: HTTPResponse) -> bytes:
        reply = response.read(REPLY_LEN_MAX + 1)
        if REPLY_LEN_MAX < len(reply):
            raise self._stranger("replied more than dpsw-server ever does")
        return reply

    def _check(self, response: HTTPResponse) -> None:
        if response.status < 300:
            return
        if response.status < 400:
            raise ServiceError(
                f"{self.url} redirects elsewhere, where the token is not sent; give the address of the service itself",
                code="redirect",
                status=response.status,
            )
        raise self._problem(response)

    def _problem(self, response: HTTPResponse) -> ServiceError:
        status, seconds = response.status, response.headers.get("Retry-After", "")
        retry_after = float(seconds) if seconds.isascii() and seconds.isdigit() else None
        try:
            said = json.loads(response.read(PROBLEM_LEN_MAX))
            code, words = str(said["code"]), str(said["detail"])
        except (ValueError, TypeError, LookupError, RecursionError):
            return self._stranger(f"replied with status {status} and not as dpsw-server does", status, retry_after)
        if status == 401:
            words = f"{self.url} does not know the token; `dpsw-server token create` makes one"
        words = name(self._token.out_of(words), PROBLEM_LEN_MAX)
        return ServiceError(words, code=code, status=status, retry_after=retry_after)

    def _stranger(self, what: str, status: int = 0, retry_after: float | None = None) -> ServiceError:
        words = f"{self.url} {what}: is that the address of the service?"
        return ServiceError(words, code="no-service", status=status, retry_after=retry_after)

    def _lost(self, error: OSError | HTTPException) -> ServiceError:
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"is not trusted: {error.verify_message}; name the authority that signed its certificate with ca_file="
            return ServiceError(f"{self.url} {why}", code="untrusted")
        if isinstance(error, ssl.SSLError):
            return ServiceError(f"{self.url} does not speak TLS as it should: {error.reason or error}", code="no-tls")
        if isinstance(error, TimeoutError):
            return ServiceError(f"{self.url} did not reply within {self._timeout:g} seconds", code="timeout")
        if isinstance(error, socket.gaierror):
            return ServiceError(f"there is no host {self._parts.hostname!r}: {error.strerror}", code="no-host")
        if isinstance(error, ConnectionRefusedError):
            return ServiceError(f"nothing listens at {self.url}; is the service running?")
        if isinstance(error, OSError):
            return ServiceError(f"the connection to {self.url} was lost: {error.strerror or type(error).__name__}")
        return ServiceError(f"the connection to {self.url} was lost, or it speaks no HTTP: {type(error).__name__}")


def wait(error: ServiceError, attempt: int) -> bool:
    """Waits until another try is polite; false, at once, if none would help."""
    if error.code not in LOST and error.status not in BUSY:
        return False
    if error.retry_after is not None and LONGEST_WAIT < error.retry_after:
        return False
    # Clients that lost one service do not all come back at once.
    seconds = min(FIRST_WAIT * 2**attempt, LONGEST_WAIT) * random.uniform(0.5, 1)
    time.sleep(max(seconds, error.retry_after or 0))
    return True


def _parts(url: str) -> SplitResult:
    wanted = 'a url such as "https://dpsw.example.org:7878"'
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except (ValueError, TypeError, AttributeError) as error:
        raise ParameterError(f"{wanted} is wanted: {error}") from None
    # Whatever else stands there could be a secret, so it is not repeated.
    if parts.username is not None or parts.password is not None:
        raise ParameterError(f"{wanted} is wanted, without a name and password: the token is a parameter of its own")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise ParameterError(f"{wanted} is wanted, got {url!r}")
    if not all("!" <= letter <= "~" for letter in url):
        raise ParameterError(f"{wanted} is wanted, in ASCII and without blanks, got {url!r}")
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(scheme: str, ca_file: str | None) -> ssl.SSLContext | None:
    if scheme == "http":
        if ca_file is not None:
            raise ParameterError("ca_file= is for https:// addresses")
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ParameterError(f"no certificates can be read from ca_file={ca_file!r}: {error.strerror or error}") from None
