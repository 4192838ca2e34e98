import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from fastapi import FastAPI, WebSocket

from camserver.base import asgi
from camserver.base.ports import listen
from tests.rig.ports import port_of

TIMEOUT_SEC = 60


def made_app(entered: asyncio.Event) -> FastAPI:
    app = FastAPI()

    @app.get("/hello")
    async def hello() -> dict[str, str]:
        return {"say": "hello"}

    @app.get("/never")
    async def never() -> None:
        entered.set()
        await asyncio.Event().wait()

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


async def test_a_request_that_never_ends_does_not_hold_up_the_stop(serving: Serving) -> None:
    async with aiohttp.ClientSession() as session:
        request = asyncio.create_task(session.get(serving.url + "/never"))
        await asyncio.wait_for(serving.entered.wait(), TIMEOUT_SEC)
        serving.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(serving.task, TIMEOUT_SEC)
        await asyncio.wait([request], timeout=TIMEOUT_SEC)
        assert request.done()
        if request.exception() is None:
            request.result().close()


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
async def guarded() -> AsyncIterator[Callable[[asgi.Limits], Awaitable[int]]]:
    """Starts servers with limits of their own; their ports."""
    tasks: list[asyncio.Task[None]] = []
    socks: list[socket.socket] = []

    async def start(limits: asgi.Limits) -> int:
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
    guarded: Callable[[asgi.Limits], Awaitable[int]],
) -> None:
    port = await guarded(asgi.Limits(headers_timeout_sec=0.05))
    for pieces in ((), (b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",)):
        answer = await said(port, *pieces)
        assert answer.startswith(b"HTTP/1.1 408 "), pieces
        assert b"too_slow" in answer


async def test_headers_have_a_bound(guarded: Callable[[asgi.Limits], Awaitable[int]]) -> None:
    port = await guarded(asgi.Limits(headers_max_bytes=1000))
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


async def test_an_address_has_so_many_connections(guarded: Callable[[asgi.Limits], Awaitable[int]]) -> None:
    port = await guarded(asgi.Limits(connections_per_address=2, spares_loopback=False))
    async with aiohttp.ClientSession() as http, http.ws_connect(f"http://127.0.0.1:{port}/echo"):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await said(port)).startswith(b"HTTP/1.1 429 ")
        writer.close()
        await writer.wait_closed()
        ask = b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        async with asyncio.timeout(60):
            while not (await said(port, ask)).startswith(b"HTTP/1.1 200 "):
                pass  # the server has not seen yet that the one before is closed
    port = await guarded(asgi.Limits(connections_per_address=1))
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    assert (await said(port, ask)).startswith(b"HTTP/1.1 200 ")
    writer.close()
