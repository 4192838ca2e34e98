"""Runs an ASGI application on a socket that is open already, as one task among others of the process.

uvicorn on its own takes the process's signals, its logging and its listening socket. Here all three belong to
the process: cancelling the task is the one way to stop, and it is bounded in time.

What uvicorn leaves unbounded is bounded here, before there is a request: how many connections an address may have
(429), how long a request's headers may be (431) and how long they may take (408).
"""

import asyncio
import contextlib
import ipaddress
import json
import socket
import ssl
from collections.abc import Callable, Generator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from camserver.base import websocket
from camserver.base.doors import Door, DoorPolicy, Stranger
from camserver.base.errors import Bug
from camserver.base.log import get_logger

log = get_logger(__name__)

# Requests under way get this long after the stop; websockets are closed at once with 1012 (service restart).
GRACE_SEC = 3


# In `scope["state"]` of requests and sockets that came over TLS: the peer's certificate in DER, or None.
PEER_CERTIFICATE = "peer_certificate"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a connection may cost before there is a request."""

    headers_max_bytes: int = 65_536  # of a request's line and headers together
    headers_timeout_sec: float = 20.0
    connections_per_address: int = 0  # 0: any number
    # A proxy on this machine has the connections of everybody, and what runs here could do worse.
    spares_loopback: bool = True


_REFUSALS = {
    408: ("Request Timeout", "too_slow", "the request's headers took too long; try again"),
    429: ("Too Many Requests", "too_many_connections", "too many connections from this address; close some"),
    431: ("Request Header Fields Too Large", "headers_too_large", "the request's headers are too large; send less"),
}


class _Config(uvicorn.Config):
    limits: Limits


class _Protocol(HttpToolsProtocol):
    """Holds a connection to the limits. A WebSocket begins as a request, and is held to them until then."""

    config: _Config

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self._limits = self.config.limits
        self._head_bytes: int | None = 0  # None: not within a request's headers
        self._refused = 0
        self._head_timer: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        self._start_timer()
        if self._has_too_many():
            log.warning("an address has too many connections; one more was refused", address=_peer(transport))
            self._refuse(429)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if not self._refused and (self._head_bytes or 0) > self._limits.headers_max_bytes:
            self._refuse(431)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._listed_bytes = 0
        if self._head_bytes is None:
            self._head_bytes = 0
            self._start_timer()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head_bytes = None
        self._stop_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        if not self._refused:
            super().send_400_response(msg)

    def _count(self, size_bytes: int) -> None:
        """What came in one piece and is too long is refused before it is complete: the parser ends at the error."""
        self._listed_bytes += size_bytes
        if self._listed_bytes > self._limits.headers_max_bytes:
            if not self._refused:
                self._refuse(431)
            raise ValueError("the request's headers are too large")

    def _has_too_many(self) -> bool:
        most, own = self._limits.connections_per_address, _peer(self.transport)
        if not most or (self._limits.spares_loopback and _is_loopback(own)):
            return False
        # Of requests and of WebSockets: both are listed there.
        return sum(_peer(one.transport) == own for one in self.connections) > most

    def _start_timer(self) -> None:
        self._stop_timer()
        self._head_timer = self.loop.call_later(self._limits.headers_timeout_sec, self._refuse, 408)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: int) -> None:
        self._refused = status
        self._stop_timer()
        phrase, code, message = _REFUSALS[status]
        body = json.dumps({"error_code": code, "message": message, "details": {"reason": code}}).encode()
        head = (
            f"HTTP/1.1 {status} {phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(head.encode() + body)
        self.transport.close()


def _peer(transport: asyncio.Transport | None) -> str:
    name = None if transport is None else transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) else ""


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return True  # a socket of this machine


class _TlsProtocol(_Protocol):
    """Puts the peer's certificate into the scope. A WebSocket begins as a request and inherits its state.

    The door learns from it when the peer has said something, and when it is gone.
    """

    stranger: Stranger

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        tls = transport.get_extra_info("ssl_object")
        der = tls.getpeercert(binary_form=True)
        self.app_state = {**self.app_state, PEER_CERTIFICATE: der or None}
        super().connection_made(transport)

    def on_headers_complete(self) -> None:
        self.stranger.spoke(is_known=self.app_state[PEER_CERTIFICATE] is not None)
        super().on_headers_complete()

    def handle_websocket_upgrade(self) -> None:
        # Its connection is another protocol's from here on; one without a certificate is refused there.
        self.stranger.left()
        super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stranger.left()
        super().connection_lost(exc)


class Upgrade:
    """A request to become a WebSocket, not answered yet. Whoever took it answers it, once."""

    def __init__(
        self,
        url: bytes,
        headers: list[tuple[bytes, bytes]],
        transport: asyncio.Transport,
        certificate: bytes | None = None,
    ) -> None:
        self.certificate = certificate  # of the peer, in DER; the port's CA has signed it
        parts = urlsplit(url.decode("latin-1"))
        self.path = unquote(parts.path)
        self.query = dict(parse_qsl(parts.query, max_num_fields=16))
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        self._transport = transport
        # Nothing may come before the answer; what comes all the same waits in the kernel.
        transport.set_protocol(asyncio.Protocol())
        transport.pause_reading()

    def accept(self, protocol: asyncio.Protocol) -> bool:
        """Makes it a WebSocket that is `protocol`'s from now on. False when the client is gone."""
        key = self.headers.get("sec-websocket-key")
        if key is None or self.headers.get("sec-websocket-version") != "13":
            self.refuse(HTTPStatus.BAD_REQUEST, "this is no request of the WebSocket protocol, version 13")
            return False
        if self._transport.is_closing():
            return False
        self._transport.set_protocol(protocol)
        self._transport.write(websocket.accepted(key))
        protocol.connection_made(self._transport)
        self._transport.resume_reading()
        return True

    def refuse(self, status: HTTPStatus, text: str) -> None:
        body = text.encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self._transport.write(head.encode() + body)
        self._transport.close()


def _taking(take: Callable[[Upgrade], None]) -> type[_Protocol]:
    """Requests as usual, and every socket to `take`."""

    class Taking(_Protocol):
        def handle_websocket_upgrade(self) -> None:
            self.connections.discard(self)
            take(Upgrade(self.url, self.scope["headers"], self.transport))  # type: ignore[arg-type]  # as it has them

    return Taking


def _tls_taking(take: Callable[[Upgrade], None]) -> type[_TlsProtocol]:
    """The same over TLS."""

    class Taking(_TlsProtocol):
        def handle_websocket_upgrade(self) -> None:
            self.stranger.left()
            self.connections.discard(self)
            certificate = self.app_state[PEER_CERTIFICATE]
            headers, transport = self.scope["headers"], self.transport
            take(Upgrade(self.url, headers, transport, certificate))  # type: ignore[arg-type]  # as it has them

    return Taking


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leaves the signals to the process."""
        yield


class _TlsServer(_Server):
    """Accepts by a door of its own, where uvicorn would let everybody wait for as long as they like."""

    def __init__(
        self,
        config: uvicorn.Config,
        on_ready: Callable[[], None],
        tls: ssl.SSLContext,
        policy: DoorPolicy,
        protocol: type[_TlsProtocol],
    ) -> None:
        super().__init__(config, on_ready)
        self._protocol_class = protocol
        self._tls = tls
        self._policy = policy

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if not sockets:
            raise Bug("a TLS server needs a listening socket")
        # Of a server, uvicorn asks no more than a door has: close() and wait_closed().
        self.servers = [Door(one, self._tls, self._policy, self._protocol) for one in sockets]  # type: ignore[misc]
        self.started = True
        self._on_ready()

    def _protocol(self, stranger: Stranger) -> asyncio.Protocol:
        protocol = self._protocol_class(self.config, self.server_state, self.lifespan.state)
        protocol.stranger = stranger
        return protocol


@dataclass(frozen=True, slots=True)
class Tls:
    context: ssl.SSLContext
    door: DoorPolicy


async def serve(
    app: Any,
    sock: socket.socket,
    on_ready: Callable[[], None],
    message_max_bytes: int = 65_536,
    tls: Tls | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    take_socket: Callable[[Upgrade], None] | None = None,
) -> None:
    """Serves until cancelled. `on_ready` is called once requests are being accepted.

    With `take_socket` WebSockets are not the application's: it gets their connections, and closes them.

    `message_max_bytes` bounds one incoming WebSocket message. With `tls` it speaks TLS, and the peer's certificate is
    in the scope's state as `PEER_CERTIFICATE`. The application's lifespan is not run: what it
    needs is made, and let go, by the service that calls this.
    """
    config = _Config(
        app,
        loop="none",
        http=_Protocol if take_socket is None else _taking(take_socket),
        ws="websockets-sansio",
        lifespan="off",
        log_config=None,
        # Its lines hold whole addresses, and signed links are addresses that open pictures.
        access_log=False,
        server_header=False,
        ws_max_size=message_max_bytes,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=GRACE_SEC,
    )
    config.limits = limits
    server = _Server(config, on_ready)
    if tls is not None:
        protocol = _TlsProtocol if take_socket is None else _tls_taking(take_socket)
        server = _TlsServer(config, on_ready, tls.context, tls.door, protocol)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise
    raise Bug("the HTTP server ended by itself")
