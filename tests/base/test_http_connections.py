"""Answers in one go, beside those by messages; what limits a connection is in test_asgi.py."""

import asyncio
import contextlib
import gc
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from camserver.base import asgi, http_connections
from camserver.base.http_answers import ARRIVED, WHOLE, Header
from camserver.base.http_connections import LimitedProtocol, Limits
from camserver.base.ports import listen
from tests.rig.polling import until
from tests.rig.ports import port_of

TIMEOUT_SEC = 60
said: list[object] = []
seen: list[bytes] = []  # names of the last request's headers


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the path; `/odd` tries what must not be sent first, `/twice` answers again, `/early` before there
    is a body, `/pieces` without saying how long it is."""
    body = scope["path"].encode()
    headers: list[Header]
    if scope["path"] == "/early":
        headers = [(b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    if scope["method"] == "POST":
        body = await body_of(scope, receive)
    seen[:] = sorted(name for name, _ in scope["headers"])
    if scope["path"] == "/pieces":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in (b"one ", b"two "):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"three"})
        return
    headers = [(b"content-length", b"%d" % len(body)), (b"x-kind", b"whole")]
    whole = scope["extensions"][WHOLE]
    scope["state"]["scope"] = scope  # a circle, as requests and what is known of them are
    if scope["path"] == "/odd":
        for odd in ((b"x-odd", b"a\r\nset-cookie: b"), (b"x\nodd", b"a"), (b"x-odd", b"\0")):
            try:
                whole(200, [odd], b"")
            except Exception as error:
                said.append(type(error).__name__)
    said.append(whole(200, headers, body))
    if scope["path"] == "/twice":
        said.append(whole(200, headers, body))


async def body_of(scope: Any, receive: Any) -> bytes:
    """What has arrived at once, and how; then nothing more is to be received."""
    arrived = scope["extensions"][ARRIVED]
    body: bytes | None = arrived()
    if body is not None:
        waiting = asyncio.ensure_future(receive())
        await asyncio.sleep(0)
        said.append(waiting.done())
        waiting.cancel()
        return b"at once " + body
    body = b""
    while (message := await receive())["more_body"]:
        body += message["body"]
        said.append(arrived())
    return b"by messages " + body + message["body"]


@pytest.fixture
async def port() -> AsyncIterator[int]:
    said.clear()
    sock = listen("127.0.0.1", 0, "the test")
    ready = asyncio.Event()
    task = asyncio.create_task(asgi.serve(app, sock, ready.set))
    await ready.wait()
    yield port_of(sock)
    task.cancel()
    await asyncio.wait([task], timeout=TIMEOUT_SEC)
    sock.close()


async def answers_to(port: int, request: bytes) -> list[bytes]:
    """Each answer's head and body, until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(TIMEOUT_SEC):
        got = await reader.read()
    writer.close()
    return [b"HTTP/1.1 " + one for one in got.split(b"HTTP/1.1 ")[1:]]


async def test_requests_in_a_row_are_answered_in_their_order_and_the_last_closes(port: int) -> None:
    asked = b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(3))
    last = b"GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    got = await answers_to(port, asked + last)
    assert [one.rpartition(b"\r\n\r\n")[2] for one in got] == [b"/0", b"/1", b"/2", b"/end"]
    assert all(one.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nx-kind: whole\r\n" in one for one in got)
    assert [b"connection: close" in one for one in got] == [False, False, False, True]
    assert said == [True] * 4


async def test_a_client_of_http_1_0_is_closed_after_its_answer(port: int) -> None:
    [got] = await answers_to(port, b"GET /old HTTP/1.0\r\n\r\n")
    assert got.endswith(b"\r\n\r\n/old")


@pytest.mark.parametrize("version", [b"1.0", b"0.9"])
async def test_an_old_client_is_sent_no_chunks(port: int, version: bytes, caplog: pytest.LogCaptureFixture) -> None:
    [got] = await answers_to(port, b"GET /pieces HTTP/%s\r\nHost: x\r\nConnection: keep-alive\r\n\r\n" % version)
    head, _, body = got.partition(b"\r\n\r\n")
    assert (b"transfer-encoding" in head, body) == (False, b"one two three")
    assert b"connection: close" in head
    [got] = await answers_to(port, b"HEAD /pieces HTTP/%s\r\nHost: x\r\n\r\n" % version)
    assert got.endswith(b"\r\n\r\n")
    assert caplog.messages == []


async def test_what_no_header_may_hold_is_not_sent(port: int) -> None:
    [got] = await answers_to(port, b"GET /odd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert said == ["Bug", "Bug", "Bug", True]
    assert b"odd\r\n" not in got
    assert b"set-cookie" not in got


async def test_there_is_one_answer(port: int) -> None:
    [got] = await answers_to(port, b"GET /twice HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert got.endswith(b"\r\n\r\n/twice")
    assert said == [True, False]


def cycles() -> list[RequestResponseCycle]:
    return [one for one in gc.get_objects() if isinstance(one, RequestResponseCycle)]


async def test_a_request_leaves_nothing_that_holds_itself(port: int) -> None:
    await answers_to(port, b"GET /warm HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    gc.collect()
    gc.disable()
    # Of other tests, which somebody may still hold.
    before = cycles()
    try:
        asked = b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(50))
        await answers_to(port, asked + b"GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        left = [one for one in cycles() if not any(one is other for other in before)]
        # The connection's own last one may still be there.
        assert len(left) <= 1
    finally:
        gc.enable()


async def test_a_client_that_is_gone_is_not_answered(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sock: socket.socket = writer.get_extra_info("socket")
    writer.write(b"GET /gone HTTP/1.1\r\nHost: x\r\n\r\n")
    await writer.drain()
    sock.shutdown(socket.SHUT_RDWR)
    writer.close()
    del reader
    [got] = await answers_to(port, b"GET /after HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert got.endswith(b"/after")


POST = b"POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 6\r\n\r\n"


async def test_a_body_that_came_with_its_headers_is_there_at_once(port: int) -> None:
    [got] = await answers_to(port, POST + b"abcdef")
    assert got.endswith(b"\r\n\r\nat once abcdef")
    # Nothing is to be received but that the client goes.
    assert said == [False, True]


async def test_a_body_that_comes_later_comes_by_messages(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(POST + b"abc")
    await until(lambda: bool(said), "the first piece")
    writer.write(b"def")
    async with asyncio.timeout(TIMEOUT_SEC):
        got = await reader.read()
    writer.close()
    assert got.endswith(b"\r\n\r\nby messages abcdef")
    assert said[0] is None


CHUNKED = b"POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_what_follows_a_body_in_chunks_is_no_header(port: int) -> None:
    [got] = await answers_to(port, CHUNKED + b"3\r\nabc\r\n0\r\nX-Late: yes\r\nHost: y\r\n\r\n")
    assert got.endswith(b"\r\n\r\nat once abc")
    assert seen == [b"connection", b"host", b"transfer-encoding"]


@pytest.mark.parametrize("line", [b"X-Late: " + b"y" * 20_000, b"X-Late: y\r\n" * 2_000])
async def test_what_follows_a_body_has_an_end(port: int, line: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(CHUNKED + b"3\r\nabc\r\n0\r\n")
    async with asyncio.timeout(TIMEOUT_SEC):
        with contextlib.suppress(ConnectionError):
            # Longer than any socket's buffers: whoever read it all would be kept busy for as long.
            for _ in range(10_000):
                writer.write(line)
                await writer.drain()
            raise AssertionError("all of it was read")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize(
    "wrong",
    [
        b"Transfer-Encoding: identity\r\n\r\nabc",
        b"Transfer-Encoding: gzip\r\n\r\nabc",
        b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef",
    ],
)
async def test_a_body_that_can_not_be_read_is_told_of(port: int, wrong: bytes) -> None:
    [got] = await answers_to(port, b"POST /early HTTP/1.1\r\nHost: x\r\n" + wrong)
    assert got.startswith(b"HTTP/1.1 400 ")
    assert b'"error_code": "no_http"' in got


async def test_a_long_body_in_small_chunks_is_read(port: int) -> None:
    pieces = b"".join(b"1;why=%s\r\nx\r\n" % (b"z" * 40) for _ in range(20_000))
    [got] = await answers_to(port, CHUNKED + pieces + b"0\r\n\r\n")
    assert got.endswith(b"x" * 20_000)


@pytest.mark.parametrize("more", [b"\r\n", b"\r\n\r\n\r\n"])
async def test_whoever_sends_nothing_that_begins_a_request_is_not_waited_for(
    port: int, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocols: list[LimitedProtocol] = []
    made = LimitedProtocol.connection_made

    def noted(self: LimitedProtocol, transport: Any) -> None:
        protocols.append(self)
        made(self, transport)

    monkeypatch.setattr(LimitedProtocol, "connection_made", noted)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(TIMEOUT_SEC):
        writer.write(b"GET /answered HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n/answered")).startswith(b"HTTP/1.1 200 ")
        [protocol] = protocols
        protocol._limits = Limits(headers_timeout_sec=0.05)
        writer.write(more)
        assert await reader.read() == b""
    writer.close()


# More than the buffers of both ends hold.
LONG_BYTES = 16_000_000
REFUSED = [
    (b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % LONG_BYTES, b"413"),
    (b"POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % LONG_BYTES, b"413"),
    (b"GET /early HTTP/1.1\r\nHost: x\r\nX-Long: ", b"431"),
    (b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nwrong\r\n", b"400"),
    (b"\0 no request \0\r\n\r\n", b"400"),
]


@pytest.mark.parametrize(("head", "status"), REFUSED)
async def test_whoever_is_refused_while_they_still_send_reads_why(port: int, head: bytes, status: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(TIMEOUT_SEC):
        writer.write(head + b"x" * LONG_BYTES)
        await writer.drain()
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 %s " % status)


@pytest.mark.parametrize("name", ["LINGER_SEC", "LINGER_MAX_BYTES"])
async def test_whoever_was_refused_does_not_go_on_for_ever(
    port: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, name, 0.01)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(TIMEOUT_SEC):
        writer.write(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % 10**12)
        assert (await reader.read()).endswith(b"/early")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"x" * 1000)
                await writer.drain()
                await asyncio.sleep(0)
    writer.close()
