"""A worker's socket with the streamer: what it may say that brings nothing."""

import pytest

from camserver.base import websocket
from camserver.base.websocket import CLOSE, CONTINUATION, PING, PONG
from camserver.domain.live_links import Ticket
from camserver.services.streamer.feeds import (
    BACKLOG_MAX_BYTES,
    BAD_MESSAGE,
    IDLE_FRAMES_MAX,
    IDLE_FRAMES_MS,
    FeedSocket,
)
from tests.services.streamer.test_viewers import FakeTransport


class Clock:
    boot_ms = 0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def network() -> FakeTransport:
    return FakeTransport()


@pytest.fixture
def feed(clock: Clock, network: FakeTransport) -> FeedSocket:
    ticket = Ticket("streamer-1", 1, "cam_1", 7, "sub", False, "worker-1", 40_000, "n1")
    made = FeedSocket(ticket, lambda: clock.boot_ms, lambda feed, message: None, lambda feed: None)
    made.connection_made(network)
    return made


def piece(size: int = 0) -> bytes:
    head = bytearray(websocket.client_head(CONTINUATION, size))
    head[0] &= 0x7F
    return bytes(head) + b"x" * size


@pytest.mark.parametrize("idle", [websocket.client_head(PING, 0), websocket.client_head(PONG, 0), piece(), piece(3)])
def test_frames_that_bring_no_message_have_a_bound(
    feed: FeedSocket, network: FakeTransport, clock: Clock, idle: bytes
) -> None:
    begun = b"\x02" + piece()[1:]
    feed.data_received(begun)
    for _ in range(5):
        clock.boot_ms += IDLE_FRAMES_MS
        feed.data_received(idle * IDLE_FRAMES_MAX)
        assert not network.is_closed
    network.written.clear()
    feed.data_received(idle)
    assert network.is_closed
    [said] = network.written
    assert (said[0] & 15, websocket.close_code(said[2:])) == (CLOSE, BAD_MESSAGE)


def test_one_that_reads_nothing_gets_no_answers(feed: FeedSocket, network: FakeTransport) -> None:
    network.backlog = BACKLOG_MAX_BYTES + 1
    feed.data_received(websocket.client_head(PING, 0))
    assert network.written == []
    network.backlog = 0
    feed.data_received(websocket.client_head(PING, 0))
    assert network.written == [websocket.frame(PONG, b"")]
