"""Requests that offer another protocol, at the socket: each is one request, with the body its headers tell of."""

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest

from camserver.base import asgi
from camserver.base.asgi import Upgrade
from camserver.base.http_connections import LimitedProtocol
from camserver.base.http_upgrades import has_body, head_without_offer, is_websocket
from camserver.base.ports import listen
from tests.rig.polling import until
from tests.rig.ports import port_of

TIMEOUT_SEC = 60
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"
# Offers that are left, with the request that makes them.
LEFT = {
    "unknown": (b"POST", b"1.1", b"Connection: Upgrade\r\nUpgrade: foo\r\n"),
    "h2c": (b"POST", b"1.1", H2C),
    "h2c by GET": (b"GET", b"1.1", H2C),
    "a WebSocket by POST": (b"POST", b"1.1", b"Connection: Upgrade\r\nUpgrade: websocket\r\n"),
    "a WebSocket of HTTP 1.0": (b"GET", b"1.0", b"Connection: Upgrade, keep-alive\r\nUpgrade: websocket\r\n"),
    "a WebSocket among others": (b"GET", b"1.1", b"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n"),
    "twice": (b"POST", b"1.1", b"Upgrade: websocket\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"),
}
HANDSHAKE = (
    b"GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers with what it was asked, and takes every socket."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        return
    body = b""
    more = True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    offers = any(name == b"upgrade" for name, _ in scope["headers"])
    answer = b"%s %s %s %r" % (scope["method"].encode(), scope["path"].encode(), body, offers)
    start = {"status": 200, "headers": [(b"content-length", b"%d" % len(answer))]}
    await send({"type": "http.response.start", **start})
    await send({"type": "http.response.body", "body": answer})


@pytest.fixture(params=[1, 7, 100_000], ids=["byte by byte", "in pieces", "whole"])
async def port(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    received = LimitedProtocol.data_received

    def by_pieces(self: LimitedProtocol, data: bytes) -> None:
        for at in range(0, len(data), request.param):
            if self.transport.get_protocol() is self:
                received(self, data[at : at + request.param])

    monkeypatch.setattr(LimitedProtocol, "data_received", by_pieces)
    sock = listen("127.0.0.1", 0, "the test")
    ready = asyncio.Event()
    task = asyncio.create_task(asgi.serve(app, sock, ready.set))
    await ready.wait()
    yield port_of(sock)
    task.cancel()
    await asyncio.wait([task], timeout=TIMEOUT_SEC)
    sock.close()


async def answers_to(port: int, request: bytes) -> list[tuple[int, bytes]]:
    """Status and body of each answer, until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(TIMEOUT_SEC):
        got = await reader.read()
    writer.close()
    answers: list[tuple[int, bytes]] = []
    while got:
        head, _, rest = got.partition(b"\r\n\r\n")
        [size] = [
            int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
        ]
        answers.append((int(head.split()[1]), rest[:size]))
        got = rest[size:]
    return answers


def sized(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def chunked(body: bytes) -> bytes:
    return b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


@pytest.mark.parametrize("framed", [sized, chunked])
@pytest.mark.parametrize("name", LEFT)
async def test_a_request_whose_offer_is_left_is_answered_with_its_body(port: int, name: str, framed: Any) -> None:
    method, version, offer = LEFT[name]
    if version == b"1.0" and framed is chunked:
        return  # there is no such thing
    request = method + b" /asked HTTP/" + version + b"\r\nHost: x\r\n" + offer + framed(SMUGGLED)
    expected = [(200, method + b" /asked " + SMUGGLED + b" False"), (200, b"GET /last  False")]
    assert await answers_to(port, request + LAST) == expected[: 1 if version == b"1.0" else 2]


async def test_many_offers_behind_each_other_are_answered_in_order(port: int) -> None:
    asked = b"".join(
        b"POST /%d HTTP/1.1\r\nHost: x\r\n%s%s" % (number, H2C, sized(b"body %d" % number)) for number in range(200)
    )
    answers = await answers_to(port, asked + LAST)
    assert answers[:-1] == [(200, b"POST /%d body %d False" % (number, number)) for number in range(200)]


@pytest.mark.parametrize("framed", [sized, chunked])
@pytest.mark.parametrize("connection", [b"Upgrade", b"keep-alive, Upgrade", b"Upgrade\r\nConnection: keep-alive"])
async def test_a_handshake_with_a_body_is_refused(port: int, connection: bytes, framed: Any) -> None:
    request = HANDSHAKE + b"Connection: " + connection + b"\r\n" + framed(SMUGGLED)
    [(status, body)] = await answers_to(port, request)
    assert status == 400
    assert b"bad_socket" in body


async def test_a_handshake_behind_an_answer_under_way_ends_the_connection(port: int) -> None:
    """Its answer would come before that, or within."""
    request = b"POST /asked HTTP/1.1\r\nHost: x\r\n" + sized(b"") + HANDSHAKE + b"Connection: Upgrade\r\n\r\n"
    assert [status for status, _ in await answers_to(port, request)] in ([], [200])


@pytest.mark.parametrize("connection", [b"Upgrade", b"upgrade\r\nConnection: keep-alive"])
async def test_a_handshake_is_taken_up(port: int, connection: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HANDSHAKE + b"Content-Length: 0\r\nConnection: " + connection + b"\r\n\r\n")
    async with asyncio.timeout(TIMEOUT_SEC):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    writer.close()


async def test_a_tunnel_is_refused(port: int) -> None:
    for offer in (b"", H2C):
        [(status, body)] = await answers_to(port, b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n" + offer + sized(SMUGGLED))
        assert status == 501
        assert b"no_proxy" in body


async def test_a_handshake_with_a_body_does_not_get_to_who_takes_sockets() -> None:
    taken: list[Upgrade] = []

    def take(upgrade: Upgrade) -> None:
        taken.append(upgrade)

    sock = listen("127.0.0.1", 0, "the test")
    ready = asyncio.Event()
    task = asyncio.create_task(asgi.serve(app, sock, ready.set, take_socket=take))
    await ready.wait()
    [(status, _)] = await answers_to(port_of(sock), HANDSHAKE + b"Connection: Upgrade\r\n" + sized(SMUGGLED))
    assert status == 400
    post = HANDSHAKE.replace(b"GET", b"POST") + b"Connection: Upgrade\r\n" + sized(SMUGGLED)
    assert (await answers_to(port_of(sock), post + LAST))[0] == (200, b"POST /echo " + SMUGGLED + b" False")
    assert not taken
    _, writer = await asyncio.open_connection("127.0.0.1", port_of(sock))
    writer.write(HANDSHAKE + b"Connection: Upgrade\r\n\r\n")
    await until(lambda: bool(taken), "the socket")
    taken[0].refuse(HTTPStatus.NOT_FOUND, "there is no such socket")
    writer.close()
    task.cancel()
    await asyncio.wait([task], timeout=TIMEOUT_SEC)
    sock.close()


MANY = b"/echo?" + b"&".join(b"a=%d" % number for number in range(17))


@pytest.mark.parametrize("url", [MANY, b"//[x/echo", b"http://[::1/echo"])
async def test_an_address_that_is_none_is_answered_by_who_takes_sockets(
    url: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    taken: list[str] = []

    def take(upgrade: Upgrade) -> None:
        taken.append(upgrade.path)
        upgrade.refuse(HTTPStatus.NOT_FOUND, "there is no such socket")

    sock = listen("127.0.0.1", 0, "the test")
    ready = asyncio.Event()
    task = asyncio.create_task(asgi.serve(app, sock, ready.set, take_socket=take))
    await ready.wait()
    request = HANDSHAKE.replace(b"/echo", url) + b"Connection: Upgrade\r\n\r\n"
    assert request.startswith(b"GET " + url)
    assert await answers_to(port_of(sock), request) == [(404, b"there is no such socket")]
    assert (taken, caplog.messages) == ([""], [])
    task.cancel()
    await asyncio.wait([task], timeout=TIMEOUT_SEC)
    sock.close()


def test_the_head_of_a_request_without_its_offer() -> None:
    headers = [(b"host", b"x"), (b"upgrade", b"h2c"), (b"connection", b"Upgrade"), (b"content-length", b"3")]
    made = head_without_offer("POST", b"/a?b=%20", "1.1", headers)
    assert made == b"POST /a?b=%20 HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\ncontent-length: 3\r\n\r\n"
    assert has_body(headers)
    assert not has_body([(b"content-length", b"0")])
    assert not is_websocket("GET", "1.1", [(b"upgrade", b"websocket"), (b"connection", b"close")])
