"""Requests that are sent before earlier ones are answered: they wait, and what follows them is not read meanwhile."""

import asyncio
import gc
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from camserver.base import asgi
from camserver.base.http_answers import WHOLE
from camserver.base.http_connections import PIECE_BYTES, LimitedProtocol
from camserver.base.ports import listen
from tests.rig.polling import until
from tests.rig.ports import port_of

TIMEOUT_SEC = 60
SMALLEST = b"GET / HTTP/1.1\r\n\r\n"


@dataclass
class Seen:
    """What the application saw of its server."""

    port: int = 0
    made: list[LimitedProtocol] = field(default_factory=list)
    waiting: list[tuple[int, bool]] = field(default_factory=list)  # so many, and whether more was read
    paths: list[str] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    told_that_it_left: bool = False

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers with the path and the size of the body; `/hold` when it may, `/stream` without an end."""
        self.paths.append(scope["path"])
        self._note()
        if scope["path"] == "/stream":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                self._note()
            self.told_that_it_left = True
            return
        size = 0
        while True:
            message = await receive()
            self._note()
            size += len(message.get("body", b""))
            if not message.get("more_body", False):
                break
        if scope["path"] == "/hold":
            # Whoever listens for the end of the connection resumes reading, in uvicorn.
            hearing = asyncio.ensure_future(receive())
            await self.may_answer.wait()
            self._note()
            hearing.cancel()
        body = f"{scope['path']} {size}".encode()
        if scope["path"].startswith("/whole"):
            scope["extensions"][WHOLE](200, [(b"content-length", b"%d" % len(body))], body)
        else:
            start = {"status": 200, "headers": [(b"content-length", b"%d" % len(body))]}
            await send({"type": "http.response.start", **start})
            await send({"type": "http.response.body", "body": body})

    def _note(self) -> None:
        for protocol in self.made[-1:]:
            self.waiting.append((len(protocol.pipeline), protocol.transport.is_reading()))


@pytest.fixture
async def seen(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Seen]:
    seen = Seen()
    made = LimitedProtocol.connection_made

    def noted(self: LimitedProtocol, transport: asyncio.Transport) -> None:
        seen.made.append(self)
        made(self, transport)

    monkeypatch.setattr(LimitedProtocol, "connection_made", noted)
    sock = listen("127.0.0.1", 0, "the test")
    ready = asyncio.Event()
    task = asyncio.create_task(asgi.serve(seen.app, sock, ready.set))
    await ready.wait()
    seen.port = port_of(sock)
    yield seen
    seen.may_answer.set()
    task.cancel()
    await asyncio.wait([task], timeout=TIMEOUT_SEC)
    sock.close()


def get(path: str, more: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode()


def post(path: str, body: bytes) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


LAST = get("/last", "Connection: close\r\n")


async def bodies(reader: asyncio.StreamReader) -> list[str]:
    """Of all answers until the server closes."""
    async with asyncio.timeout(TIMEOUT_SEC):
        got = await reader.read()
    return [one.rpartition(b"\r\n\r\n")[2].decode() for one in got.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize("path", ["/", "/whole"])
async def test_whoever_asks_much_in_one_go_is_answered_in_order_and_little_of_it_waits(seen: Seen, path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
    writer.write(b"".join(get(f"{path}{number}") for number in range(5_000)) + LAST)
    assert await bodies(reader) == [*(f"{path}{number} 0" for number in range(5_000)), "/last 0"]
    writer.close()
    most = max(waiting for waiting, _ in seen.waiting)
    assert 0 < most <= PIECE_BYTES / len(SMALLEST) + 1
    assert not any(is_reading for waiting, is_reading in seen.waiting if waiting)


async def test_nothing_is_read_while_a_request_waits_for_its_turn(seen: Seen) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
    size = 3_000_000
    writer.write(get("/hold") + get("/1") + post("/2", b"x" * size) + SMALLEST * 10_000 + LAST)
    await until(lambda: bool(seen.made and seen.made[0].pipeline), "a request that waits")
    await until(lambda: len(seen.waiting) == 2, "it was listened for the end")
    [protocol] = seen.made
    assert not protocol.transport.is_reading()
    assert sum(len(cycle.body) for cycle, _ in protocol.pipeline) <= PIECE_BYTES
    seen.may_answer.set()
    assert await bodies(reader) == ["/hold 0", "/1 0", f"/2 {size}", *["/ 0"] * 10_000, "/last 0"]
    writer.close()
    assert not any(is_reading for waiting, is_reading in seen.waiting if waiting)


async def test_a_long_body_is_not_cut_into_pieces_but_what_follows_it_is(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    feed = LimitedProtocol._feed

    def noted(self: LimitedProtocol, data: bytes | memoryview) -> None:
        sizes.append(len(data))
        feed(self, data)

    reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
    writer.write(get("/hold"))
    await until(lambda: bool(seen.waiting), "a request under way")
    seen.may_answer.set()
    async with asyncio.timeout(TIMEOUT_SEC):
        await reader.readuntil(b"/hold 0")
    monkeypatch.setattr(LimitedProtocol, "_feed", noted)
    asked = post("/1", b"x" * 100_000) + SMALLEST * 5_000 + LAST
    seen.made[0].data_received(asked)
    assert await bodies(reader) == ["/1 100000", *["/ 0"] * 5_000, "/last 0"]
    writer.close()
    assert sizes[:2] == [PIECE_BYTES, len(post("/1", b"x" * 100_000)) - PIECE_BYTES]
    assert max(sizes[2:]) <= PIECE_BYTES
    assert sum(sizes) == len(asked)
    assert max(waiting for waiting, _ in seen.waiting) <= PIECE_BYTES / len(SMALLEST) + 1


async def test_a_client_that_leaves_while_requests_wait_leaves_nothing_behind(seen: Seen) -> None:
    gc.collect()
    gc.disable()
    try:
        before = {id(one) for one in gc.get_objects() if isinstance(one, RequestResponseCycle)}
        _, writer = await asyncio.open_connection("127.0.0.1", seen.port)
        writer.write(get("/hold") + SMALLEST * 100)
        await until(lambda: bool(seen.made and seen.made[0].pipeline), "requests that wait")
        seen.made[0].transport.abort()
        await until(lambda: seen.made[0].parser is None, "the connection's end")
        assert not seen.made[0].pipeline
        seen.made.clear()
        seen.may_answer.set()
        await until(lambda: left(before) <= 1, "all of them are gone")
    finally:
        gc.enable()
    assert seen.paths == ["/hold"]
    writer.close()


def left(before: set[int]) -> int:
    return sum(isinstance(one, RequestResponseCycle) and id(one) not in before for one in gc.get_objects())


async def test_whoever_is_answered_while_others_wait_is_told_that_the_client_left(
    seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", seen.port)
    writer.write(get("/stream") + get("/1"))
    await until(lambda: bool(seen.made and seen.made[0].pipeline), "a request that waits")
    seen.made[0].transport.abort()
    await until(lambda: seen.told_that_it_left, "the stream's end")
    writer.close()
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("waits", [b"", get("/1")])
async def test_what_is_no_request_does_not_get_into_an_answer_under_way(seen: Seen, waits: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
    writer.write(get("/stream"))
    async with asyncio.timeout(TIMEOUT_SEC):
        assert (await reader.readuntil(b"begun")).startswith(b"HTTP/1.1 200 ")
        writer.write(waits + b"\0 no request \0\r\n\r\n")
        rest = await reader.read()
    writer.close()
    assert b"HTTP/1.1" not in rest
    # And it is said where nothing else is.
    reader, writer = await asyncio.open_connection("127.0.0.1", seen.port)
    writer.write(b"\0 no request \0\r\n\r\n")
    async with asyncio.timeout(TIMEOUT_SEC):
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()
