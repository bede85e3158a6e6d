"""Ways to the service that lose, refuse and lie, and who is told the token."""

from __future__ import annotations

import copy
import socket
import ssl
import traceback
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from services import EPSILON, RECEIPT, SOURCES, TOKEN, Home, Lossy, Scripted
from services import counts, fed, made, problem, running, scripted, serving

import dpsw
from dpsw import _http


def test_a_batch_whose_reply_was_lost_is_sent_again_and_counts_once(home: Home, client: dpsw.Client) -> None:
    stream = made(client)
    with Lossy(home, losses=2) as proxy, serving(proxy) as port:
        lossy = dpsw.Client(f"http://127.0.0.1:{port}", home.token)
        sent = lossy.send(stream.name, ["a", "b"] * 1000)
        assert (sent.events, sent.repeated, proxy.posts) == (2000, 2000, 3)
    fed(client, stream, ["c"] * 500, last=2500)
    # Were the batch counted twice, the stream would have come to 4,500.
    assert stream.view().retained.end <= 2500
    assert counts(stream)["c"] == pytest.approx(500, abs=40)


def test_a_question_is_asked_once(home: Home) -> None:
    with Lossy(home, losses=1) as proxy, serving(proxy) as port:
        lossy = dpsw.Client(f"http://127.0.0.1:{port}", home.token)
        with pytest.raises(dpsw.ServiceError, match="was lost"):
            lossy.create_source("lost-source", protects="event", epsilon=1, columns={"page": "text"})
        assert proxy.posts == 1


def test_a_busy_service_is_asked_again_after_as_long_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(_http.time, "sleep", waits.append)
    with scripted(SOURCES, problem(503, **{"Retry-After": "3"}), problem(429), RECEIPT) as (server, client):
        assert client.send("web", ["a"]).events == 1
        ids = {headers["Batch-Id"] for _, _, headers in server.asked[1:]}
    assert len(ids) == 1
    assert waits[0] == 3 and 0 < waits[1] < 1


def test_a_batch_whose_outcome_is_unknown_is_sent_again_with_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http.time, "sleep", lambda _: None)
    with scripted(SOURCES, problem(500, "outcome-unknown"), RECEIPT) as (server, client):
        assert client.send("web", ["a"]).events == 1
        ids = [headers["Batch-Id"] for _, _, headers in server.asked[1:]]
    assert len(ids) == 2 and len(set(ids)) == 1


def test_a_service_that_stays_busy_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http.time, "sleep", lambda _: None)
    with scripted(SOURCES, *[problem(503)] * 20) as (server, client):
        with pytest.raises(dpsw.ServiceError, match="later") as caught:
            client.send("web", ["a"], batch_id="mine/1")
        assert (caught.value.code, caught.value.status, len(server.asked)) == ("busy", 503, 1 + _http.TRIES_MAX)
    assert 'batch_id="mine/1"' in caught.value.__notes__[0]


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


WRONG = ["127.0.0.1:7878", "ftp://a", "http://", "http://a:x", "http://a b", "http://é", "http://a\x7f", "http://a?b=5", "", 5]


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
