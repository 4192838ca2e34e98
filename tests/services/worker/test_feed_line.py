"""The socket to a streamer: whole messages in order, whichever threads write and however little the network takes."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from camserver.base import websocket
from camserver.services.worker.feed_line import BACKLOG_MAX_BYTES, FeedLine
from camserver.wire.live import PICTURE_ASKED
from tests.rig.polling import until

MESSAGE_MAX_BYTES = 10_000_000


@asynccontextmanager
async def line_to(far: socket.socket, near: socket.socket) -> AsyncIterator[FeedLine]:
    """A line whose request was answered."""
    _, line = await asyncio.get_running_loop().create_connection(FeedLine, sock=near)
    line.ask("streamer", "/v1/feed", "ticket")
    far.setblocking(False)
    loop = asyncio.get_running_loop()
    request = await loop.sock_recv(far, 65_536)
    key = request.partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0].decode()
    await loop.sock_sendall(far, websocket.accepted(key))
    await line.answered
    try:
        yield line
    finally:
        line.abort()
        await line.closed.wait()


async def messages(far: socket.socket, frames: websocket.Frames) -> list[tuple[int, bytes]]:
    data = await asyncio.get_running_loop().sock_recv(far, 1_000_000)
    assert data, "the line was closed"
    return frames.feed(data)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        for one in (near, far):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
        yield near, far


async def test_threads_write_whole_messages_in_their_order(pair: tuple[socket.socket, socket.socket]) -> None:
    """Far more than the network takes at once, from three threads and the loop."""
    near, far = pair
    count, size = 60, 20_000
    async with line_to(far, near) as line:

        def write(name: int) -> None:
            for number in range(count):
                line.send(bytes((name, number)), bytes((name,)) * size)

        threads = [threading.Thread(target=write, args=(name,)) for name in (1, 2, 3)]
        for one in threads:
            one.start()
        write(4)
        frames = websocket.Frames(MESSAGE_MAX_BYTES)
        got: list[bytes] = []
        while len(got) < 4 * count:
            got += [payload for _, payload in await messages(far, frames)]
        for one in threads:
            one.join()
        for name in (1, 2, 3, 4):
            its = [payload for payload in got if payload[0] == name]
            assert [payload[1] for payload in its] == list(range(count))
            assert all(payload[2:] == bytes((name,)) * size for payload in its)
        # All was taken: what follows is given to the network at once, by whoever has it.
        assert line.backlog_bytes == 0
        line.send(b"last")
        assert far.recv(100).endswith(b"last")


async def test_what_the_streamer_does_not_take_is_counted_and_sent_before_the_end(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    async with line_to(far, near) as line:
        while line.backlog_bytes <= BACKLOG_MAX_BYTES:
            line.send(bytes(100_000))
        line.send(b"the end")
        line.close()
        line.send(b"too late")
        frames = websocket.Frames(MESSAGE_MAX_BYTES)
        got: list[tuple[int, bytes]] = []
        while not got or got[-1][0] != websocket.CLOSE:
            got += await messages(far, frames)
        assert [payload for _, payload in got[-2:-1]] == [b"the end"]
        far.close()


async def test_a_streamer_that_is_gone_is_noticed_and_writing_on_harms_nobody(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    async with line_to(far, near) as line:
        far.close()
        for _ in range(3):
            await asyncio.to_thread(line.send, bytes(1_000))
        await line.closed.wait()
        line.send(b"nobody hears this")


async def test_it_is_asked_for_a_picture(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    async with line_to(far, near) as line:
        asked: list[None] = []
        line.on_picture_asked = lambda: asked.append(None)
        far.send(websocket.frame(websocket.BINARY, PICTURE_ASKED) + websocket.frame(websocket.BINARY, b"?"))
        await until(lambda: len(asked) == 1, "it is asked for a picture")
