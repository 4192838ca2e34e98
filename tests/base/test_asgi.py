import asyncio
import signal
import socket
from collections.abc import AsyncIterator

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
