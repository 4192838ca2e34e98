"""One WebSocket of the HTTP server, held to limits as requests are by `http_connections`.

Frames that bring no message (pings, pongs, pieces of messages) cost as much to read as those that do, and nobody
waits for them, so there are so many in a while. Messages are read as the application receives them. A handshake is
answered, and in time; a refusal that was sent is taken for the answer it is, and IPv4 peers for what they are.

Who may open a WebSocket and what is said on it is the application's.
"""

import asyncio
from typing import Final

from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from camserver.base.addresses import peer_host
from camserver.base.http_connections import HttpConfig, peer_of
from camserver.base.log import get_logger

log = get_logger(__name__)

# Whoever listens answers a ping each twenty seconds, and browsers send long messages in pieces of some ten kilobytes.
IDLE_FRAMES_MAX: Final = 1_000
IDLE_FRAMES_SPAN_SEC: Final = 60.0
# Of what came in one piece, so much is read at a time.
PIECE_BYTES: Final = 4_096

_REFUSED: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 37\r\n"
    b"Connection: close\r\n\r\nthis is no handshake of the WebSocket"
)


class BoundedSocket(WebSocketsSansIOProtocol):
    config: HttpConfig

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._kept = b""  # what came before earlier messages were received
        self._idle_frames = 0
        self._idle_since_sec = self.loop.time()
        self._is_over = False
        self._deadline = self.loop.call_later(self.config.limits.headers_timeout_sec, self._end_handshake)
        super().connection_made(transport)
        if self.client is not None:
            self.client = (peer_host(self.client[0]), self.client[1])
        self._counted = self.config.addresses.enter(self._peer())

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        self.config.addresses.leave(self._counted)
        self._kept = b""
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:
            super().data_received(data)
            self._refuse_what_is_no_handshake()
        elif not self.handshake_complete:
            # Nobody may speak before the answer.
            self.transport.close()
        elif self.read_paused or self._kept or len(data) > PIECE_BYTES:
            self._feed_by_pieces(self._kept + data)
        else:
            super().data_received(data)

    async def receive(self) -> ASGIReceiveEvent:
        message = await super().receive()
        if self._kept and not self.read_paused:
            self._feed_by_pieces(self._kept)
        return message

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            # uvicorn knows a handshake as complete only when it was accepted or closed with 403. An application that
            # answered by anything else would be reported as an error, for each sign-in that is over.
            self.handshake_complete = True

    def handle_cont(self, event: Frame) -> None:
        self._count_idle()
        super().handle_cont(event)

    def handle_text(self, event: Frame) -> None:
        self._count_unheard(event)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        self._count_unheard(event)
        super().handle_bytes(event)

    def handle_pong(self, event: Frame) -> None:
        self._count_idle()
        super().handle_pong(event)

    def handle_ping(self) -> None:
        self._count_idle()
        if self.writable.is_set():
            super().handle_ping()
        else:
            # Whoever does not read what there is for it needs no pongs either.
            self.conn.data_to_send()

    def send_receive_event_to_app(self) -> None:
        """uvicorn logs text that is none, which anybody may send, as an error of its own."""
        if self.curr_msg_data_type == "text" and not self.close_sent and not _is_utf8(b"".join(self.frames)):
            self.frames = []
            self.conn.fail(CloseCode.INVALID_DATA, "this is no text in UTF-8")
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        super().handle_parser_exception()
        # Whoever sends now is told that the client is gone, and not that it may not.
        self.disconnected = True

    def _feed_by_pieces(self, data: bytes) -> None:
        """Until there is a message; the rest is kept until that was received."""
        at = 0
        while at < len(data) and not self.read_paused and not self.transport.is_closing():
            super().data_received(data[at : at + PIECE_BYTES])
            at += PIECE_BYTES
        self._kept = data[at:] if self.read_paused else b""

    def _count_unheard(self, event: Frame) -> None:
        if not event.fin or self.close_sent:
            self._count_idle()

    def _count_idle(self) -> None:
        self._idle_frames += 1
        if self._idle_frames <= IDLE_FRAMES_MAX or self._is_over:
            return
        now_sec = self.loop.time()
        if now_sec - self._idle_since_sec >= IDLE_FRAMES_SPAN_SEC:
            self._idle_frames, self._idle_since_sec = 1, now_sec
            return
        self._is_over = True
        log.warning("a WebSocket sent too many frames without a message and was closed", address=self._peer())
        self.conn.fail(CloseCode.POLICY_VIOLATION, "too many frames without a message")
        self.handle_parser_exception()

    def _refuse_what_is_no_handshake(self) -> None:
        """What the library refuses while it reads the request makes no event, so uvicorn does not answer it."""
        if self.handshake_initiated:
            return
        self.transport.write(b"".join(self.conn.data_to_send()) or _REFUSED)
        self.transport.close()

    def _end_handshake(self) -> None:
        if not self.handshake_complete:
            log.warning("a WebSocket's handshake was not answered in time", address=self._peer())
            self.send_500_response()
            self.transport.close()
            self.disconnected = True

    def _peer(self) -> str:
        return peer_of(self.transport)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
