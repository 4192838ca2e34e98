"""A viewer's socket: it skips when it is slow, and is let go when it hangs."""

import asyncio
from typing import Any

import pytest

from camserver.base import websocket
from camserver.services.streamer.fragments import Fragment
from camserver.services.streamer.viewers import (
    BACKLOG_LOW_BYTES,
    BACKLOG_MAX_BYTES,
    FRAMES_MAX,
    STUCK_MS,
    SocketViewer,
)
from tests.rig.polling import until


class FakeTransport(asyncio.Transport):
    """A network that takes as much as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.backlog = 0
        self.is_aborted = self.is_closed = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return self.backlog

    def is_closing(self) -> bool:
        return self.is_closed or self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True

    def close(self) -> None:
        self.is_closed = True


def picture(number: int, is_key: bool = False) -> Fragment:
    return Fragment(f"picture {number}".encode(), 0, is_key, number, 1)


@pytest.fixture
def gone() -> list[SocketViewer]:
    return []


@pytest.fixture
def network() -> FakeTransport:
    return FakeTransport()


@pytest.fixture
def viewer(network: FakeTransport, gone: list[SocketViewer]) -> SocketViewer:
    made = SocketViewer("lease-1", gone.append)
    made.connection_made(network)
    return made


def test_it_begins_with_a_keyframe(viewer: SocketViewer, network: FakeTransport) -> None:
    viewer.begin((b"init",))
    for number, is_key in enumerate([False, True, False]):
        viewer.offer(picture(number, is_key))
    assert network.written == [b"init", b"picture 1", b"picture 2"]
    assert viewer.skipped == 1


def test_a_slow_one_skips_to_a_keyframe_that_it_has_room_for(viewer: SocketViewer, network: FakeTransport) -> None:
    viewer.offer(picture(0, is_key=True))
    network.backlog = BACKLOG_MAX_BYTES + 1
    viewer.offer(picture(1))
    network.backlog = BACKLOG_LOW_BYTES + 1
    viewer.offer(picture(2))
    viewer.offer(picture(3, is_key=True))
    network.backlog = 0
    viewer.offer(picture(4))
    viewer.offer(picture(5, is_key=True))
    assert network.written == [b"picture 0", b"picture 5"]
    assert viewer.skipped == 4


def test_one_that_takes_nothing_is_let_go(viewer: SocketViewer, network: FakeTransport) -> None:
    network.backlog = 1_000
    for boot_ms in range(0, STUCK_MS, 1_000):
        viewer.tick(boot_ms)
    assert not network.is_aborted
    network.backlog = 900  # it took a little
    viewer.tick(STUCK_MS)
    assert not network.is_aborted
    viewer.tick(2 * STUCK_MS)
    assert network.is_aborted


def test_an_idle_one_is_asked_whether_it_is_there(viewer: SocketViewer, network: FakeTransport) -> None:
    viewer.tick(0)
    viewer.tick(10 * STUCK_MS)
    assert network.written == [websocket.frame(websocket.PING, b"")] * 2
    assert not network.is_aborted


def test_it_answers_and_hears_the_end(viewer: SocketViewer, network: FakeTransport, gone: list[SocketViewer]) -> None:
    masked = b"\x89\x82\x01\x02\x03\x04" + bytes((ord("h") ^ 1, ord("i") ^ 2))
    viewer.data_received(masked)
    assert network.written == [websocket.frame(websocket.PONG, b"hi")]
    viewer.data_received(websocket.client_head(websocket.CLOSE, 2) + websocket.close_payload(1000))
    assert network.is_closed
    viewer.connection_lost(None)
    assert gone == [viewer]
    viewer.offer(picture(1, is_key=True))
    viewer.end(1001, "too late")


def test_one_that_does_not_speak_websocket_is_cut_off(viewer: SocketViewer, network: FakeTransport) -> None:
    viewer.data_received(b"\x81\xff" + b"\xff" * 20)
    assert network.is_aborted


@pytest.mark.parametrize("opcode", [websocket.PING, websocket.PONG, websocket.TEXT, websocket.BINARY])
def test_one_that_says_more_than_viewers_do_is_cut_off(
    viewer: SocketViewer, network: FakeTransport, opcode: int
) -> None:
    said = websocket.client_head(opcode, 0) * FRAMES_MAX
    for number in range(5):
        viewer.data_received(said)
        viewer.tick(number * 1000)
        assert not network.is_aborted
    viewer.data_received(said + websocket.client_head(opcode, 0))
    assert network.is_aborted


def test_one_that_does_not_take_what_there_is_gets_no_answers(viewer: SocketViewer, network: FakeTransport) -> None:
    network.backlog = BACKLOG_LOW_BYTES + 1
    viewer.data_received(websocket.client_head(websocket.PING, 0))
    assert network.written == []
    network.backlog = BACKLOG_LOW_BYTES
    viewer.data_received(websocket.client_head(websocket.PING, 0))
    assert network.written == [websocket.frame(websocket.PONG, b"")]


async def test_the_end_is_said_to_who_reads_and_cuts_off_who_does_not(
    viewer: SocketViewer, network: FakeTransport
) -> None:
    viewer.end(4404, "ttl")
    assert b'"reason":"ttl"' in network.written[0]
    assert network.written[1] == websocket.frame(websocket.CLOSE, websocket.close_payload(4404, "ttl"))
    # It is closed when it was heard: what the viewer says meanwhile would take the words back.
    assert not network.is_closed
    assert viewer.is_over
    viewer.end(4404, "once more")
    viewer.data_received(websocket.client_head(websocket.PING, 0))
    viewer.data_received(websocket.client_head(websocket.CLOSE, 2) + websocket.close_payload(4404))
    assert network.is_closed
    assert len(network.written) == 2
    viewer.connection_lost(None)
    slow, other = FakeTransport(), SocketViewer("lease-2", lambda _: None)
    other.connection_made(slow)
    slow.backlog = BACKLOG_LOW_BYTES + 1
    other.end(4404, "ttl")
    assert slow.is_aborted
    assert slow.written == []


async def test_one_that_does_not_say_that_it_heard_the_end_is_cut_off(
    viewer: SocketViewer, network: FakeTransport
) -> None:
    viewer.end(4404, "ttl")
    await until(lambda: network.is_aborted, "it is cut off")
