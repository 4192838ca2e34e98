"""What a WebSocket may cost that says nothing, and handshakes that the library refuses without a word."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from camserver.base import asgi, websocket, websocket_connections
from camserver.base.http_connections import Limits
from camserver.base.ports import listen
from camserver.base.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Frames
from camserver.base.websocket_connections import IDLE_FRAMES_MAX, PIECE_BYTES, BoundedSocket
from tests.rig.polling import until
from tests.rig.ports import port_of

TIMEOUT_SEC = 60
HANDSHAKE = (
    b"GET /echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
INVALID_DATA, POLICY_VIOLATION = 1007, 1008


@dataclass
class Server:
    port: int = 0
    made: list[BoundedSocket] = field(default_factory=list)
    heard: list[bytes] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # messages that wait while one is received
    may_accept: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        """`/echo` says what it hears; `/deaf` hears nothing; `/late` is not accepted before it may be."""
        assert (await receive())["type"] == "websocket.connect"
        if scope["path"] == "/late":
            await self.may_accept.wait()
        await send({"type": "websocket.accept"})
        if scope["path"] == "/deaf":
            await self.ended.wait()
        while (message := await receive())["type"] != "websocket.disconnect":
            self.waiting.append(self.made[-1].queue.qsize())
            self.heard.append(message.get("bytes") or message["text"].encode())
            await send({"type": "websocket.send", "bytes": self.heard[-1]})
        self.ended.set()


@pytest.fixture
async def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    server = Server()
    made = BoundedSocket.connection_made

    def noted(self: BoundedSocket, transport: asyncio.BaseTransport) -> None:
        server.made.append(self)
        made(self, transport)

    monkeypatch.setattr(BoundedSocket, "connection_made", noted)
    sock = listen("127.0.0.1", 0, "the test")
    ready = asyncio.Event()
    limits = Limits(headers_timeout_sec=getattr(request, "param", TIMEOUT_SEC))
    task = asyncio.create_task(asgi.serve(server.app, sock, ready.set, limits=limits))
    await ready.wait()
    server.port = port_of(sock)
    yield server
    server.ended.set()
    server.may_accept.set()
    task.cancel()
    await asyncio.wait([task], timeout=TIMEOUT_SEC)
    sock.close()


def frame(opcode: int, payload: bytes = b"", is_last: bool = True) -> bytes:
    head = bytearray(websocket.client_head(opcode, len(payload)))
    if not is_last:
        head[0] &= 0x7F
    return bytes(head) + payload


async def connected(port: int, path: str = "/echo") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HANDSHAKE.replace(b"/echo", path.encode()) + b"\r\n")
    async with asyncio.timeout(TIMEOUT_SEC):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    return reader, writer


async def said(reader: asyncio.StreamReader) -> list[tuple[int, bytes]]:
    """Frames until the server closes."""
    frames: list[tuple[int, bytes]] = []
    parser = Frames(1_000_000)
    async with asyncio.timeout(TIMEOUT_SEC):
        while data := await reader.read(65_536):
            frames += parser.feed(data)
    return frames


@pytest.mark.parametrize(
    "idle",
    [
        frame(PING, b"x" * 125),
        frame(PONG),
        frame(CONTINUATION, is_last=False),
        frame(CONTINUATION, b"x", is_last=False),
    ],
    ids=["pings", "pongs", "empty pieces", "small pieces"],
)
async def test_frames_that_bring_no_message_have_a_bound(
    server: Server, idle: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    begun = frame(TEXT, is_last=False)
    reader, writer = await connected(server.port)
    writer.write(begun + idle * IDLE_FRAMES_MAX)
    opcode, payload = (await said(reader))[-1]
    assert (opcode, websocket.close_code(payload)) == (CLOSE, POLICY_VIOLATION)
    await asyncio.wait_for(server.ended.wait(), TIMEOUT_SEC)
    writer.close()
    # Of what comes in one piece no more is looked at, and it is told of once.
    reader, writer = await connected(server.port)
    caplog.clear()
    server.ended.clear()
    server.made[1].data_received(begun + idle * 100_000)
    await asyncio.wait_for(server.ended.wait(), TIMEOUT_SEC)
    assert server.made[1]._idle_frames <= IDLE_FRAMES_MAX + PIECE_BYTES
    assert caplog.text.count("too many frames") == 1
    writer.close()


async def test_text_that_is_none_is_refused_and_leaves_no_traceback(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    for pieces in (frame(TEXT, b"\xff\xfe"), frame(TEXT, b"\xe3\x81", is_last=False) + frame(CONTINUATION, b"x")):
        reader, writer = await connected(server.port)
        server.ended.clear()
        writer.write(pieces)
        [(opcode, payload)] = await said(reader)
        assert (opcode, websocket.close_code(payload)) == (CLOSE, INVALID_DATA)
        await asyncio.wait_for(server.ended.wait(), TIMEOUT_SEC)
        writer.close()
    # A character may be cut in two.
    reader, writer = await connected(server.port)
    writer.write(frame(TEXT, b"\xe3\x81", is_last=False) + frame(CONTINUATION, b"\x82"))
    echoed = websocket.frame(BINARY, "あ".encode())
    assert await asyncio.wait_for(reader.readexactly(len(echoed)), TIMEOUT_SEC) == echoed
    writer.close()
    assert server.heard == ["あ".encode()]
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_an_application_that_goes_on_sending_then_leaves_no_traceback(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await connected(server.port)
    server.made[0].data_received(frame(PING) * (IDLE_FRAMES_MAX - 10))
    # It is over before the message is received and answered.
    server.made[0].data_received(frame(TEXT, b"one") + frame(PING) * 20)
    await said(reader)
    writer.close()
    await until(lambda: server.made[0].transport.is_closing() and not server.made[0].tasks, "the end")
    assert server.heard == [b"one"]
    assert "Traceback" not in caplog.text


async def test_who_keeps_a_connection_alive_for_long_is_not_closed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket_connections, "IDLE_FRAMES_SPAN_SEC", 0.0)
    reader, writer = await connected(server.port)
    writer.write(frame(PING, b"x") * (3 * IDLE_FRAMES_MAX) + frame(TEXT, b"heard") + frame(CLOSE, b"\x03\xe8"))
    frames = await said(reader)
    assert frames.count((PONG, b"x")) == 3 * IDLE_FRAMES_MAX
    assert server.heard == [b"heard"]
    writer.close()


async def test_a_long_message_in_pieces_is_one(server: Server) -> None:
    pieces = [os.urandom(100) for _ in range(IDLE_FRAMES_MAX // 2)]
    reader, writer = await connected(server.port)
    stream = frame(BINARY, pieces[0], is_last=False)
    stream += b"".join(frame(CONTINUATION, piece, is_last=False) for piece in pieces[1:-1])
    writer.write(stream + frame(CONTINUATION, pieces[-1]))
    await until(lambda: bool(server.heard), "the message")
    assert server.heard == [b"".join(pieces)]
    writer.write(frame(CLOSE))
    assert (await said(reader))[0] == (BINARY, server.heard[0])
    writer.close()


async def test_many_messages_are_read_as_they_are_received(server: Server) -> None:
    reader, writer = await connected(server.port)
    sent = [b"%d" % number for number in range(20_000)]
    writer.write(b"".join(frame(TEXT, one) for one in sent))
    await until(lambda: len(server.heard) == len(sent), "all of them")
    writer.write(frame(CLOSE))
    assert [payload for opcode, payload in await said(reader) if opcode == BINARY] == sent
    assert max(server.waiting) <= PIECE_BYTES
    writer.close()


async def test_who_does_not_read_gets_no_pongs(server: Server) -> None:
    _, writer = await connected(server.port)
    writer.write(frame(PING))
    [protocol] = server.made
    sent: list[bytes] = []

    class Full:
        """A transport that has taken as much as it may."""

        def __getattr__(self, name: str) -> Any:
            return getattr(transport, name)

        def write(self, data: bytes) -> None:
            sent.append(data)

    transport = protocol.transport
    protocol.transport = Full()  # type: ignore[assignment]  # what is called of it
    protocol.pause_writing()
    protocol.data_received(frame(PING) * 10)
    assert b"".join(sent) == b""
    protocol.resume_writing()
    protocol.data_received(frame(PING, b"?"))
    assert b"".join(sent) == websocket.frame(PONG, b"?")
    protocol.transport = transport
    writer.close()


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (b"X-Long: " + b"y" * 60_000 + b"\r\n", b"431"),
        (b"X-Many: y\r\n" * 300, b"431"),
        (b"Content-Length: 5\r\n", b"400"),
        (b"Sec-WebSocket-Version: 12\r\n", b"400"),
    ],
    ids=["a long field", "many fields", "a body", "two versions"],
)
async def test_a_handshake_that_is_refused_is_answered(server: Server, more: bytes, status: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(HANDSHAKE + more + b"\r\n")
    async with asyncio.timeout(TIMEOUT_SEC):
        assert (await reader.read()).startswith(b"HTTP/1.1 " + status)
    writer.close()


async def test_what_is_refused_without_a_word_is_answered_all_the_same(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(HANDSHAKE.replace(b"/echo", b"/\xff\xfe") + b"\r\n")
    async with asyncio.timeout(TIMEOUT_SEC):
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()


@pytest.mark.parametrize("server", [0.2], indirect=True)
async def test_a_handshake_is_answered_in_time(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(HANDSHAKE.replace(b"/echo", b"/late") + b"\r\n")
    async with asyncio.timeout(TIMEOUT_SEC):
        assert (await reader.read()).startswith(b"HTTP/1.1 500 ")
    writer.close()


async def test_whoever_was_let_in_in_time_stays(server: Server) -> None:
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"http://127.0.0.1:{server.port}/echo") as ws,
    ):
        [protocol] = server.made
        protocol._end_handshake()  # what is called when the time for it is over
        await ws.send_bytes(b"still here")
        assert await asyncio.wait_for(ws.receive_bytes(), TIMEOUT_SEC) == b"still here"


async def test_who_speaks_before_the_handshake_is_answered_is_cut_off(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(HANDSHAKE.replace(b"/echo", b"/late") + b"\r\n")
    await until(lambda: bool(server.made), "the handshake")
    writer.write(frame(PING) * 10)
    async with asyncio.timeout(TIMEOUT_SEC):
        assert PONG | 0x80 not in await reader.read()
    writer.close()
