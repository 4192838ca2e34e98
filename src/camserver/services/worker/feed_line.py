"""The socket to a streamer: a WebSocket that any thread writes to, with a bound on what waits.

What the network takes at once is given to it by the thread that has it: handing every picture to the loop's thread
means two threads that wake each other up and wait for the interpreter's lock. Only what the network does not take
goes on from the loop.
"""

import asyncio
import contextlib
import ipaddress
import os
import ssl
import threading
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

from camserver.base import websocket
from camserver.base.errors import BadInput, Unavailable
from camserver.wire.live import PICTURE_ASKED, FeedStatus, pack_status

CONNECT_SEC = 10.0
ANSWER_MAX_BYTES = 16_384
MESSAGE_MAX_BYTES = 4_096
BACKLOG_MAX_BYTES = 4_000_000


class FeedLine(asyncio.Protocol):
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._lock = threading.Lock()
        self._fd = -1  # a second one of the connection; -1: all goes through the transport, as with TLS
        self._is_over = False
        self._is_behind = False  # something was not taken at once: what follows has to wait behind it
        self._waiting: list[bytes] = []  # for the loop
        self._waiting_bytes = 0
        self._answer = bytearray()
        self._key = websocket.new_key()
        self._frames = websocket.Frames(MESSAGE_MAX_BYTES)
        self.answered: asyncio.Future[None] = self._loop.create_future()
        self.closed = asyncio.Event()
        self.close_code: int | None = None  # that the streamer gave
        # Called when the streamer asks for a picture to keep.
        self.on_picture_asked: Callable[[], None] = lambda: None

    @property
    def backlog_bytes(self) -> int:
        transport = self._transport
        if not self._is_behind or transport is None:
            return 0
        return self._waiting_bytes + transport.get_write_buffer_size()

    def ask(self, host: str, target: str, ticket: str) -> None:
        assert self._transport is not None
        self._transport.write(websocket.request(host, target, self._key, {"Authorization": f"Bearer {ticket}"}))

    def send(self, *pieces: bytes) -> None:
        """One binary message, in pieces; from any thread."""
        self._put(websocket.client_head(websocket.BINARY, sum(map(len, pieces))), *pieces)

    def send_status(self, status: FeedStatus) -> None:
        self.send(pack_status(status))

    def close(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._put(websocket.client_head(websocket.CLOSE, 2), websocket.close_payload(1000))
            self._is_over = True
            self._write_on()
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _put(self, *pieces: bytes) -> None:
        with self._lock:
            if self._is_over:
                return
            size = sum(map(len, pieces))
            given = 0 if self._has_to_wait() else self._write(pieces, size)
            if given == size:
                return
            self._is_behind = True
            self._waiting.append(b"".join(pieces)[given:])
            self._waiting_bytes += size - given
            is_first = len(self._waiting) == 1
        if is_first:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._write_on)

    def _has_to_wait(self) -> bool:
        if self._fd < 0:
            return True
        if self._is_behind and self._transport is not None:
            self._is_behind = bool(self._waiting) or self._transport.get_write_buffer_size() > 0
        return self._is_behind

    def _write(self, pieces: "tuple[bytes, ...]", size: int) -> int:
        """How much the network takes now."""
        try:
            return os.writev(self._fd, pieces)
        except BlockingIOError:
            return 0
        except OSError:
            self._is_over = True  # the loop sees it as well, and says so
            return size

    def _write_on(self) -> None:
        """In the loop."""
        with self._lock:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            if waiting and self._transport is not None and not self._transport.is_closing():
                self._transport.write(b"".join(waiting))

    # The network ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Of whichever loop: not all of them derive theirs from this class.
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and transport.get_extra_info("sslcontext") is None:
            self._fd = os.dup(sock.fileno())

    def data_received(self, data: bytes) -> None:
        if not self.answered.done():
            data = self._read_answer(data)
        if not data:
            return
        try:
            for opcode, payload in self._frames.feed(data):
                if opcode == websocket.CLOSE:
                    self.close_code = websocket.close_code(payload)
                    self.close()
                elif opcode == websocket.BINARY and payload == PICTURE_ASKED:
                    self.on_picture_asked()
                elif opcode == websocket.PING:
                    self._put(websocket.client_head(websocket.PONG, len(payload)), payload)
        except BadInput:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        with self._lock:
            self._is_over = True
            self._transport = None
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
        self.closed.set()
        if not self.answered.done():
            self.answered.set_exception(Unavailable("the streamer closed the connection"))

    def _read_answer(self, data: bytes) -> bytes:
        """What follows the answer to the request, once that is all there."""
        self._answer += data
        head, found, rest = bytes(self._answer).partition(b"\r\n\r\n")
        if not found:
            if len(self._answer) > ANSWER_MAX_BYTES:
                self.abort()
            return b""
        first, *lines = head.decode("latin-1").split("\r\n")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = first.split(" ")[1:2]
        if status != ["101"] or fields.get("sec-websocket-accept") != websocket.accept_key(self._key):
            self.answered.set_exception(Unavailable(f"the streamer answered {' '.join(status) or 'nonsense'}"))
            self.abort()
            return b""
        self.answered.set_result(None)
        return rest


async def connect(url: str, ticket: str, tls: ssl.SSLContext | None) -> FeedLine:
    """Opens the socket to a streamer. Unavailable when that fails, BadInput when it must not be tried."""
    parts = urlsplit(url)
    host, is_tls = parts.hostname or "", parts.scheme == "wss"
    if not is_tls and not _is_loopback(host):
        raise BadInput(f"the streamer at {host} would get the camera's video in the clear; it needs a wss:// address")
    port = parts.port or (443 if is_tls else 80)
    line: FeedLine | None = None
    try:
        async with asyncio.timeout(CONNECT_SEC):
            context = (tls or ssl.create_default_context()) if is_tls else None
            _, line = await asyncio.get_running_loop().create_connection(FeedLine, host, port, ssl=context)
            line.ask(parts.netloc, parts.path or "/", ticket)
            await line.answered
            return line
    except (OSError, TimeoutError) as error:
        if line is not None:
            line.abort()
        raise Unavailable(f"the streamer at {host}:{port} can't be reached ({type(error).__name__})") from None
    except BaseException:
        if line is not None:
            line.abort()
        raise


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
