"""A worker's socket that brings one camera's packets."""

import asyncio
from collections.abc import Callable
from typing import cast

from camserver.base import websocket
from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.domain.live_links import Ticket
from camserver.wire.live import FEED_MESSAGE_MAX_BYTES, PICTURE_ASKED, FeedKey, FeedMessage, FeedPicture, unpack_feed

log = get_logger(__name__)

BAD_MESSAGE = 1002
# Frames of a worker that bring no message, in a second; and what may wait for it when a ping is answered.
IDLE_FRAMES_MAX = 200
IDLE_FRAMES_MS = 1_000
BACKLOG_MAX_BYTES = 65_536
_PICTURE_ASKED = websocket.frame(websocket.BINARY, PICTURE_ASKED)


class FeedSocket(asyncio.Protocol):
    """A `Feed`. Its socket is open already and its ticket was good."""

    def __init__(
        self,
        ticket: Ticket,
        boot_ms: Callable[[], int],
        take: "Callable[[FeedSocket, FeedMessage], None]",
        on_gone: "Callable[[FeedSocket], None]",
    ) -> None:
        self.ticket = ticket
        self.key: FeedKey = (ticket.tenant_id, ticket.camera_id, ticket.quality, ticket.transcode)
        self._boot_ms = boot_ms
        self._take = take
        self._on_gone = on_gone
        self._frames = websocket.Frames(FEED_MESSAGE_MAX_BYTES, IDLE_FRAMES_MAX)
        self._transport: asyncio.Transport | None = None
        self.heard_boot_ms = boot_ms()
        self.begun_boot_ms = self._rested_boot_ms = self.heard_boot_ms
        self._picture: asyncio.Future[bytes] | None = None  # that was asked for and has not come

    @property
    def generation(self) -> int:
        return self.ticket.generation

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Of whichever loop: not all of them derive theirs from this class.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.heard_boot_ms = self._boot_ms()
        try:
            # Nearly always a picture arrives whole, and alone.
            sole = None if self._frames.has_part else websocket.sole_message(data, FEED_MESSAGE_MAX_BYTES)
            if sole is not None:
                self._hear(unpack_feed(sole))
                return
            if self.heard_boot_ms - self._rested_boot_ms >= IDLE_FRAMES_MS:
                self._frames.rest()
                self._rested_boot_ms = self.heard_boot_ms
            for opcode, payload in self._frames.feed(data):
                if opcode == websocket.BINARY:
                    self._hear(unpack_feed(payload))
                elif opcode == websocket.CLOSE:
                    self.close(websocket.close_code(payload), "")
                elif opcode == websocket.PING:
                    self._answer(payload)
        except BadInput as error:
            log.warning("a feed is not understood", camera_id=self.ticket.camera_id, cause=error.message)
            self.close(BAD_MESSAGE, error.message)

    def _answer(self, ping: bytes) -> None:
        """Whoever reads nothing gets no answers that nobody would take."""
        if self._transport is not None and self._transport.get_write_buffer_size() <= BACKLOG_MAX_BYTES:
            self._write(websocket.frame(websocket.PONG, ping[:125]))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._pictured(b"")
        self._on_gone(self)

    def picture(self) -> "asyncio.Future[bytes]":
        """The newest keyframe as a JPEG, from the worker; empty when it makes none. All who ask share one."""
        if self._picture is None:
            self._picture = asyncio.get_running_loop().create_future()
            self._write(_PICTURE_ASKED)
            if self._transport is None:
                self._picture.set_result(b"")
        return self._picture

    def _hear(self, message: FeedMessage) -> None:
        if isinstance(message, FeedPicture):
            self._pictured(message.jpeg)
        else:
            self._take(self, message)

    def _pictured(self, jpeg: bytes) -> None:
        asked, self._picture = self._picture, None
        if asked is not None and not asked.done():
            asked.set_result(jpeg)

    def close(self, code: int, reason: str) -> None:
        if self._transport is not None and not self._transport.is_closing():
            # 1005 stands for no code and is never sent.
            payload = b"" if code == 1005 else websocket.close_payload(code, reason)
            self._write(websocket.frame(websocket.CLOSE, payload))
            self._transport.close()

    def _write(self, frame: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frame)
