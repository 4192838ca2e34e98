"""One browser's socket: gets frames that were made once for all, skips when it is slow, and is let go when it hangs.

No task and no queue a viewer: what the network does not take waits in the transport, up to a bound.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import cast

from camserver.base import websocket
from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.services.streamer.fragments import Fragment
from camserver.wire.live import ViewerEnd
from camserver.wire.message import Message

log = get_logger(__name__)

# More than this not taken by the viewer, and it skips to the next keyframe.
BACKLOG_MAX_BYTES = 2_000_000
# It goes on with a keyframe when no more than this is left of the backlog.
BACKLOG_LOW_BYTES = 200_000
# Without anything taken for so long, it is let go.
STUCK_MS = 10_000
# What the kernel keeps for a viewer: more would only be older.
SEND_BUFFER_BYTES = 262_144
# One that was told that it is over has so long to say that it heard. Closed at once, what it had just said itself
# would make the kernel take back the last words.
GOING_SEC = 2.0
MESSAGE_MAX_BYTES = 4_096
# Frames of a viewer between two ticks, a second: it answers a ping, and says something once.
FRAMES_MAX = 100
# All that a viewer ever says: its browser does not play what it was told would come.
UNPLAYABLE = b'{"type":"unplayable"}'
PING = websocket.frame(websocket.PING, b"")


def text_frame(message: Message) -> bytes:
    return websocket.frame(websocket.TEXT, message.model_dump_json().encode())


class SocketViewer(asyncio.Protocol):
    """Its socket is open already; what it is shown is its stream's affair."""

    def __init__(
        self,
        lease_id: str,
        on_gone: "Callable[[SocketViewer], None]",
        on_unplayable: "Callable[[SocketViewer], None]" = lambda viewer: None,
        hears: bool = False,
    ) -> None:
        self.lease_id = lease_id
        self.hears = hears  # it wants sound, where there is any
        self._on_gone = on_gone
        self._on_unplayable = on_unplayable
        self._frames = websocket.Frames(MESSAGE_MAX_BYTES, FRAMES_MAX, are_all_idle=True)
        self._transport: asyncio.Transport | None = None
        self._going: asyncio.TimerHandle | None = None  # it was told that it is over
        self._needs_key = True
        self._written = 0
        self._written_then = 0  # at the last tick
        self._taken = 0
        self._taken_boot_ms: int | None = None
        self.skipped = 0

    @property
    def is_over(self) -> bool:
        return self._transport is None or self._going is not None or self._transport.is_closing()

    # The network ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Of whichever loop: not all of them derive theirs from this class.
        self._transport = cast(asyncio.Transport, transport)
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
                # A peer that is gone without a word, or reads no more.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STUCK_MS)

    def data_received(self, data: bytes) -> None:
        try:
            messages = self._frames.feed(data)
        except BadInput as error:
            log.info("a viewer does not speak WebSocket", lease_id=self.lease_id, cause=error.message)
            self.drop()
            return
        for opcode, payload in messages:
            if opcode == websocket.CLOSE:
                self._hear_close(payload)
            elif opcode == websocket.PING:
                self._answer(payload)
            elif opcode == websocket.TEXT and payload == UNPLAYABLE:
                self._on_unplayable(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._going is not None:
            self._going.cancel()
        self._on_gone(self)

    def _answer(self, ping: bytes) -> None:
        """Whoever does not take what it is shown needs no answers either."""
        if self._transport is not None and self._transport.get_write_buffer_size() <= BACKLOG_LOW_BYTES:
            self.send(websocket.frame(websocket.PONG, ping[:125]))

    # What it is shown -----------------------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Something that is not a picture; small, and never left out."""
        if self._transport is not None and self._going is None:
            self._written += len(frame)
            self._transport.write(frame)

    def begin(self, frames: "tuple[bytes, ...]") -> None:
        """What a picture builds on: the init segment. The next picture is a keyframe."""
        for frame in frames:
            self.send(frame)
        self._needs_key = True

    def offer(self, fragment: Fragment) -> None:
        transport = self._transport
        if transport is None:
            return
        if self._needs_key:
            if fragment.is_sound:
                return
            if not fragment.is_key or transport.get_write_buffer_size() > BACKLOG_LOW_BYTES:
                self.skipped += 1
                return
            self._needs_key = False
        elif not fragment.is_sound and transport.get_write_buffer_size() > BACKLOG_MAX_BYTES:
            self._needs_key = True
            self.skipped += 1
            return
        self._written += len(fragment.frame)
        transport.write(fragment.frame)

    def tick(self, boot_ms: int) -> None:
        """Now and then: whether it still takes anything."""
        self._frames.rest()
        if self._transport is None:
            return
        backlog = self._transport.get_write_buffer_size()
        taken = self._written - backlog
        if not backlog or taken != self._taken or self._taken_boot_ms is None:
            self._taken, self._taken_boot_ms = taken, boot_ms
        elif boot_ms - self._taken_boot_ms >= STUCK_MS:
            log.info("a viewer reads no more and is let go", lease_id=self.lease_id, backlog_bytes=backlog)
            self.drop()
            return
        if not backlog and self._written == self._written_then:
            # Nothing is shown: without this nobody would notice that it is gone.
            self.send(PING)
        self._written_then = self._written

    # Its end --------------------------------------------------------------------------------------------------

    def end(self, code: int, reason: str) -> None:
        """Says why, and closes when that was heard; one that does not read is cut off."""
        if self._transport is None or self.is_over:
            return
        if self._transport.get_write_buffer_size() > BACKLOG_LOW_BYTES:
            self.drop()
            return
        self.send(text_frame(ViewerEnd(reason=reason)))
        self.send(websocket.frame(websocket.CLOSE, websocket.close_payload(code, reason)))
        self._going = asyncio.get_running_loop().call_later(GOING_SEC, self.drop)

    def drop(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _hear_close(self, payload: bytes) -> None:
        """It goes by itself, or heard that it shall."""
        self.send(websocket.frame(websocket.CLOSE, payload[:2]))
        if self._transport is not None:
            self._transport.close()
