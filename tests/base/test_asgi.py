import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from fastapi import FastAPI, Request, Response, WebSocket
from starlette.responses import StreamingResponse
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from camserver.base import asgi, http_answers, http_connections
from camserver.base.address_counts import AddressCounts
from camserver.base.addresses import peer_host, peer_network
from camserver.base.http_connections import LimitedProtocol, Limits
from camserver.base.ports import listen
from tests.rig.polling import until
from tests.rig.ports import port_of

TIMEOUT_SEC = 60


put_down: list[str] = []
# More than the system keeps for one connection.
MUCH = bytes(20_000_000)


def made_app(entered: asyncio.Event) -> FastAPI:
    app = FastAPI()

    @app.get("/hello")
    async def hello() -> dict[str, str]:
        return {"say": "hello"}

    @app.get("/caller")
    async def caller(request: Request) -> dict[str, str]:
        return {"address": request.client.host if request.client else "", "scheme": request.url.scheme}

    @app.websocket("/caller")
    async def socket_caller(ws: WebSocket) -> None:
        await ws.accept()
        await ws.send_json({"address": ws.client.host if ws.client else ""})

    @app.get("/later")
    async def later(request: Request) -> StreamingResponse:
        """The head at once, the body when it is asked for by another request."""

        async def parts() -> AsyncIterator[bytes]:
            await entered.wait()
            yield b"a body "
            yield b"in parts"

        return StreamingResponse(parts())

    @app.get("/much")
    async def much() -> Response:
        return Response(MUCH)

    @app.get("/endless")
    async def endless() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(0)  # as whoever reads a file does; a peer that is gone takes all at once
                yield MUCH

        return StreamingResponse(parts())

    @app.websocket("/much")
    async def much_and_over(ws: WebSocket) -> None:
        await ws.accept()
        await ws.send_bytes(MUCH)

    @app.get("/now")
    async def now() -> None:
        entered.set()

    @app.post("/size")
    async def size(request: Request) -> int:
        return len(await request.body())

    @app.get("/never")
    async def never() -> None:
        entered.set()
        await asyncio.Event().wait()

    @app.websocket("/never")
    async def never_ends(ws: WebSocket) -> None:
        await ws.accept()
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            put_down.append("socket")

    @app.websocket("/refused")
    async def refused(ws: WebSocket) -> None:
        await ws.send_denial_response(Response("no", 401))

    @app.websocket("/forgotten")
    async def forgotten(ws: WebSocket) -> None:
        """Answers nothing."""

    @app.websocket("/echo")
    async def echo(ws: WebSocket) -> None:
        await ws.accept()
        while True:
            await ws.send_text(await ws.receive_text())

    return app


class Serving:
    def __init__(self, sock: socket.socket) -> None:
        self.entered = asyncio.Event()
        self.ready = asyncio.Event()
        self.url = f"http://127.0.0.1:{port_of(sock)}"
        self.task = asyncio.create_task(asgi.serve(made_app(self.entered), sock, self.ready.set, 1_000))


@pytest.fixture
async def serving() -> AsyncIterator[Serving]:
    sock = listen("127.0.0.1", 0, "web.port")
    serving = Serving(sock)
    await asyncio.wait_for(serving.ready.wait(), TIMEOUT_SEC)
    yield serving
    serving.task.cancel()
    await asyncio.wait([serving.task], timeout=TIMEOUT_SEC)
    sock.close()


async def test_serves_and_ends_when_cancelled(serving: Serving) -> None:
    async with aiohttp.ClientSession() as session, session.get(serving.url + "/hello") as answer:
        assert await answer.json() == {"say": "hello"}
        assert "server" not in answer.headers
    serving.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(serving.task, TIMEOUT_SEC)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(serving.url + "/hello")


async def test_those_who_ask_close_an_idle_connection_first(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise somebody who asks every five seconds would meet the end of the connection now and then."""
    kept_sec: list[float] = []
    made = LimitedProtocol.connection_made

    def noted(self: LimitedProtocol, transport: asyncio.Transport) -> None:
        kept_sec.append(self.timeout_keep_alive)
        made(self, transport)

    monkeypatch.setattr(LimitedProtocol, "connection_made", noted)
    async with aiohttp.ClientSession() as session, session.get(serving.url + "/hello") as answer:
        assert answer.status == 200
        assert isinstance(session.connector, aiohttp.TCPConnector)
        assert kept_sec[0] > 2 * session.connector._keepalive_timeout


async def test_the_head_of_an_answer_goes_with_its_body(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[list[bytes]] = []

    class Noting(http_answers.Joining):
        __slots__ = ()

        def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
            super().__init__(NotingTransport(transport), loop)  # type: ignore[arg-type]  # what is called of it

    class NotingTransport:
        def __init__(self, transport: asyncio.Transport) -> None:
            self._transport = transport

        def write(self, data: bytes) -> None:
            pieces.append([data])
            self._transport.write(data)

        def writelines(self, lines: tuple[bytes, ...]) -> None:
            pieces.append(list(lines))
            self._transport.writelines(lines)

        def __getattr__(self, name: str) -> object:
            return getattr(self._transport, name)

    monkeypatch.setattr(http_connections, "Joining", Noting)
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.get(serving.url + "/hello") as answer:
                assert await answer.json() == {"say": "hello"}
        assert [len(piece) for piece in pieces] == [2, 2]
        async with session.head(serving.url + "/hello") as answer:
            assert answer.status == 405


async def test_the_head_of_an_answer_does_not_wait_for_a_body_that_comes_later(serving: Serving) -> None:
    async with aiohttp.ClientSession() as session:
        # The answer is there, with its head, before anything of its body.
        answer = await asyncio.wait_for(session.get(serving.url + "/later"), TIMEOUT_SEC)
        async with session.get(serving.url + "/now") as released:
            assert released.status == 200
        assert await asyncio.wait_for(answer.read(), TIMEOUT_SEC) == b"a body in parts"


async def test_a_client_that_asks_before_it_sends_its_body_is_answered(serving: Serving) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(serving.url + "/size", data=b"x" * 1000, expect100=True) as answer,
    ):
        assert await asyncio.wait_for(answer.json(), TIMEOUT_SEC) == 1000


async def test_a_request_that_never_ends_does_not_hold_up_the_stop(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    async with aiohttp.ClientSession() as session:
        request = asyncio.create_task(session.get(serving.url + "/never"))
        await asyncio.wait_for(serving.entered.wait(), TIMEOUT_SEC)
        serving.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(serving.task, TIMEOUT_SEC)
        await asyncio.wait([request], timeout=TIMEOUT_SEC)
        async with request.result() as answer:
            assert answer.status == 503
            assert answer.headers["retry-after"] == "1"
    assert "Traceback" not in caplog.text


async def test_a_socket_that_never_ends_puts_down_what_it_has_and_leaves_no_traceback(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    put_down.clear()
    async with aiohttp.ClientSession() as session, session.ws_connect(serving.url + "/never"):
        await asyncio.wait_for(serving.entered.wait(), TIMEOUT_SEC)
        serving.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(serving.task, TIMEOUT_SEC)
        assert put_down == ["socket"]
    assert "Traceback" not in caplog.text


async def test_a_refused_socket_is_no_error_and_a_forgotten_one_is(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    async with aiohttp.ClientSession() as session:
        # One after the other; the second one's line is written before its answer.
        for path, status in (("/refused", 401), ("/forgotten", 500)):
            with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                await session.ws_connect(serving.url + path)
            assert caught.value.status == status
    assert len([one for one in caplog.records if one.levelno >= logging.ERROR]) == 1


async def test_websockets_work_are_bounded_and_are_told_of_the_stop(serving: Serving) -> None:
    async with aiohttp.ClientSession() as session, session.ws_connect(serving.url + "/echo") as ws:
        await ws.send_str("x" * 1_000)
        assert await ws.receive_str() == "x" * 1_000
        await ws.send_str("x" * 1_001)
        assert (await ws.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
        assert ws.close_code == 1009
    async with aiohttp.ClientSession() as session, session.ws_connect(serving.url + "/echo") as ws:
        serving.task.cancel()
        await ws.receive()
        assert ws.close_code == 1012


async def test_the_signals_stay_with_the_process(serving: Serving) -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.fixture
async def guarded() -> AsyncIterator[Callable[[Limits], Awaitable[int]]]:
    """Starts servers with limits of their own; their ports."""
    tasks: list[asyncio.Task[None]] = []
    socks: list[socket.socket] = []

    async def start(limits: Limits) -> int:
        ready = asyncio.Event()
        socks.append(listen("127.0.0.1", 0, "the test"))
        tasks.append(asyncio.create_task(asgi.serve(made_app(ready), socks[-1], ready.set, limits=limits)))
        await ready.wait()
        return port_of(socks[-1])

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for sock in socks:
        sock.close()


async def said(port: int, *pieces: bytes) -> bytes:
    """Everything that is answered until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_headers_that_never_end_are_not_waited_for(
    guarded: Callable[[Limits], Awaitable[int]],
) -> None:
    port = await guarded(Limits(headers_timeout_sec=0.05))
    for pieces in ((), (b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",)):
        answer = await said(port, *pieces)
        assert answer.startswith(b"HTTP/1.1 408 "), pieces
        assert b"too_slow" in answer


async def test_headers_have_a_bound(guarded: Callable[[Limits], Awaitable[int]]) -> None:
    port = await guarded(Limits(headers_max_bytes=1000))
    end = b"Host: x\r\nConnection: close\r\n\r\n"
    assert (await said(port, b"GET /hello HTTP/1.1\r\n" + end)).startswith(b"HTTP/1.1 200 ")
    for head in (
        b"GET /hello HTTP/1.1\r\nX-Long: " + b"x" * 1000 + b"\r\n",
        b"GET /hello HTTP/1.1\r\n" + b"X: y\r\n" * 600,
        b"GET /" + b"x" * 1000 + b" HTTP/1.1\r\n",
    ):
        # Complete in one piece, and never complete.
        for pieces in ((head + end,), (head[:-2],)):
            assert (await said(port, *pieces)).startswith(b"HTTP/1.1 431 "), head[:40]


@pytest.mark.parametrize("path", ["/much", "/endless", "/much socket"])
async def test_nobody_who_reads_nothing_keeps_a_connection(
    path: str, guarded: Callable[[Limits], Awaitable[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = asyncio.Event()
    for protocol in (LimitedProtocol, WebSocketsSansIOProtocol):

        def lost(self: Any, exc: Exception | None, real: Callable[..., None] = protocol.connection_lost) -> None:
            real(self, exc)
            gone.set()

        monkeypatch.setattr(protocol, "connection_lost", lost)
    path, _, kind = path.partition(" ")
    upgrade = (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    )
    port = await guarded(Limits(unread_max_sec=0.5))
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(("127.0.0.1", port))
        peer.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{upgrade if kind else ''}\r\n".encode())
        await asyncio.wait_for(gone.wait(), TIMEOUT_SEC)


async def test_an_address_has_so_many_connections(guarded: Callable[[Limits], Awaitable[int]]) -> None:
    port = await guarded(Limits(connections_per_address=2, spares_loopback=False))
    async with aiohttp.ClientSession() as http, http.ws_connect(f"http://127.0.0.1:{port}/echo"):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await said(port)).startswith(b"HTTP/1.1 429 ")
        writer.close()
        await writer.wait_closed()
        ask = b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        async with asyncio.timeout(60):
            while not (await said(port, ask)).startswith(b"HTTP/1.1 200 "):
                pass  # the server has not seen yet that the one before is closed
    port = await guarded(Limits(connections_per_address=1))
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    assert (await said(port, ask)).startswith(b"HTTP/1.1 200 ")
    writer.close()


async def test_connections_are_counted_as_they_come_and_go(
    guarded: Callable[[Limits], Awaitable[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[AddressCounts] = []
    made = LimitedProtocol.connection_made

    def noted(self: LimitedProtocol, transport: asyncio.Transport) -> None:
        counts.append(self.config.addresses)
        made(self, transport)

    monkeypatch.setattr(LimitedProtocol, "connection_made", noted)
    port = await guarded(Limits(connections_per_address=2, spares_loopback=False))
    url = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession() as http:
        async with http.ws_connect(url + "/echo"), http.get(url + "/hello") as answer:
            assert answer.status == 200
            assert counts[0]._open == {"127.0.0.1": 2}
            assert (await said(port)).startswith(b"HTTP/1.1 429 ")
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await http.ws_connect(url + "/hello")
    await until(lambda: not counts[0]._open, "all of them are gone")


async def test_a_proxy_has_everybodys_connections(guarded: Callable[[Limits], Awaitable[int]]) -> None:
    ask = b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    for spares, status in ((("127.0.0.0/30",), b"200"), (("127.0.0.4/30", "::1"), b"429")):
        port = await guarded(Limits(connections_per_address=1, spares_loopback=False, spares=spares))
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await said(port, ask)).startswith(b"HTTP/1.1 " + status)
        writer.close()


# Who calls: the server trusts a proxy at 127.0.0.2 and a network behind it.
PROXIES = ("127.0.0.2", "10.9.0.0/24", "::1")


@pytest.fixture
async def behind_proxies(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    # uvicorn's own way to trust everybody; what the caller of `serve` says counts.
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    ready = asyncio.Event()
    sock = listen("127.0.0.1", 0, "the test")
    task = asyncio.create_task(asgi.serve(made_app(ready), sock, ready.set, trusted_proxies=PROXIES))
    await asyncio.wait_for(ready.wait(), TIMEOUT_SEC)
    yield port_of(sock)
    task.cancel()
    await asyncio.wait([task], timeout=TIMEOUT_SEC)
    sock.close()


@pytest.mark.parametrize(
    ("peer", "forwarded", "caller"),
    [
        ("127.0.0.2", "203.0.113.7", "203.0.113.7"),
        ("127.0.0.2", "2001:db8::7", "2001:db8::7"),
        # What the client wrote itself stands before its own address.
        ("127.0.0.2", "198.51.100.1, 203.0.113.7", "203.0.113.7"),
        # A second proxy between.
        ("127.0.0.2", "198.51.100.1, 203.0.113.7, 10.9.0.4", "203.0.113.7"),
        ("127.0.0.2", "127.0.0.2, 203.0.113.7", "203.0.113.7"),
        ("127.0.0.2", "", "127.0.0.2"),
        ("127.0.0.2", None, "127.0.0.2"),
        # Nobody that is trusted: neither the header nor the machine's own addresses help.
        ("127.0.0.1", "203.0.113.7", "127.0.0.1"),
        ("127.0.0.3", "203.0.113.7, 127.0.0.2", "127.0.0.3"),
        ("127.0.0.3", "10.9.0.4", "127.0.0.3"),
    ],
)
async def test_a_caller_is_whom_a_trusted_proxy_names(
    behind_proxies: int, peer: str, forwarded: str | None, caller: str
) -> None:
    headers = {"X-Forwarded-Proto": "https", **({} if forwarded is None else {"X-Forwarded-For": forwarded})}
    connector = aiohttp.TCPConnector(local_addr=(peer, 0))
    async with (
        aiohttp.ClientSession(connector=connector) as http,
        http.get(f"http://127.0.0.1:{behind_proxies}/caller", headers=headers) as answer,
    ):
        scheme = "https" if peer == "127.0.0.2" else "http"
        assert await answer.json() == {"address": caller, "scheme": scheme}


@pytest.mark.parametrize("written", ["127.0.0.1", "::ffff:127.0.0.1"])
async def test_a_peer_of_a_socket_of_both_families_is_who_it_is(written: str) -> None:
    """As systemd hands it over: such a socket names IPv4 peers by addresses of IPv6."""
    ready = asyncio.Event()
    ask = b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as sock:
        sock.setblocking(False)
        port, limits = port_of(sock), Limits(connections_per_address=1, spares_loopback=False, spares=(written,))
        task = asyncio.create_task(
            asgi.serve(made_app(ready), sock, ready.set, limits=limits, trusted_proxies=(written,))
        )
        await asyncio.wait_for(ready.wait(), TIMEOUT_SEC)
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{port}/caller") as answer:
                assert (await answer.json())["address"] == "127.0.0.1"
            headers = {"X-Forwarded-For": "203.0.113.7"}
            async with http.get(f"http://127.0.0.1:{port}/caller", headers=headers) as answer:
                assert (await answer.json())["address"] == "203.0.113.7"
            async with http.ws_connect(f"http://127.0.0.1:{port}/caller") as ws:
                assert (await ws.receive_json())["address"] == "127.0.0.1"
                # It has its connections, and what is spared as many as it likes.
                assert (await said(port, ask)).startswith(b"HTTP/1.1 200 ")
        task.cancel()
        await asyncio.wait([task], timeout=TIMEOUT_SEC)


@pytest.mark.parametrize(
    ("given", "is_"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("0:0:0:0:0:FFFF:0A00:0001", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("", ""),
        ("a:b", "a:b"),
    ],
)
def test_an_ipv4_peer_has_one_name(given: str, is_: str) -> None:
    assert peer_host(given) == is_


@pytest.mark.parametrize(
    ("given", "is_"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:10.0.0.1", "10.0.0.1/32"),
        ("::/0", "::/0"),
        ("2001:db8::/32", "2001:db8::/32"),
    ],
)
def test_networks_of_peers_are_written_as_they_are(given: str, is_: str) -> None:
    assert str(peer_network(given)) == is_
