"""Runs an ASGI application on a socket that is open already, as one task among others of the process.

uvicorn on its own takes the process's signals, its logging and its listening socket. Here all three belong to
the process: cancelling the task is the one way to stop, and it is bounded in time.

What a connection may cost before there is a request, and without anybody who reads, is `http_connections`', what a
WebSocket may cost `websocket_connections`'.

Who the caller is and whether it came over TLS is taken from X-Forwarded-For and X-Forwarded-Proto where the
connection comes from a trusted proxy, and from the connection itself otherwise.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import uvicorn

from camserver.base import websocket
from camserver.base.address_counts import AddressCounts
from camserver.base.addresses import peer_network
from camserver.base.doors import Door, DoorPolicy, Stranger
from camserver.base.errors import Bug
from camserver.base.http_connections import HttpConfig, LimitedProtocol, Limits
from camserver.base.log import get_logger
from camserver.base.websocket_connections import BoundedSocket

log = get_logger(__name__)

# Requests under way get this long after the stop; websockets are closed at once with 1012 (service restart).
GRACE_SEC = 3
# And what was broken off then gets this long to put down what it had in hand.
PUT_DOWN_SEC = 1.0
# A connection on which nothing is asked stays open for longer than those who ask keep theirs (aiohttp 15 s, proxies
# mostly 60 s): who closes first must be the one who asks, or a request meets the end of its connection now and then.
KEEP_ALIVE_SEC = 75
_STOPPING: tuple[dict[str, Any], ...] = (
    {"type": "http.response.start", "status": 503, "headers": [(b"retry-after", b"1"), (b"content-length", b"0")]},
    {"type": "http.response.body", "body": b""},
)


# In `scope["state"]` of requests and sockets that came over TLS: the peer's certificate in DER, or None.
PEER_CERTIFICATE = "peer_certificate"

# Whose X-Forwarded-For and X-Forwarded-Proto are believed, unless a service says otherwise: this machine's.
LOOPBACK_PROXIES = ("127.0.0.1", "::1")


class _TlsProtocol(LimitedProtocol):
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
        self.path = ""
        self.query: dict[str, str] = {}
        # What is no address, or asks for more than anybody here knows, is nobody's path.
        with contextlib.suppress(ValueError):
            parts = urlsplit(url.decode("latin-1"))
            self.query = dict(parse_qsl(parts.query, max_num_fields=16))
            self.path = unquote(parts.path)
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


def _taking(take: Callable[[Upgrade], None]) -> type[LimitedProtocol]:
    """Requests as usual, and every socket to `take`."""

    class Taking(LimitedProtocol):
        def handle_websocket_upgrade(self) -> None:
            self.connections.discard(self)
            self._uncount()
            take(Upgrade(self.url, self.scope["headers"], self.transport))  # type: ignore[arg-type]  # as it has them

    return Taking


def _tls_taking(take: Callable[[Upgrade], None]) -> type[_TlsProtocol]:
    """The same over TLS."""

    class Taking(_TlsProtocol):
        def handle_websocket_upgrade(self) -> None:
            self.stranger.left()
            self.connections.discard(self)
            self._uncount()
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
    trusted_proxies: Sequence[str] = LOOPBACK_PROXIES,
) -> None:
    """Serves until cancelled. `on_ready` is called once requests are being accepted.

    With `take_socket` WebSockets are not the application's: it gets their connections, and closes them.

    `message_max_bytes` bounds one incoming WebSocket message. With `tls` it speaks TLS, and the peer's certificate is
    in the scope's state as `PEER_CERTIFICATE`. The application's lifespan is not run: what it
    needs is made, and let go, by the service that calls this.

    A connection from one of `trusted_proxies` (addresses and networks) has the caller's address in X-Forwarded-For:
    the last one there that is no trusted proxy's, since what stands before it anybody may have written. Where TLS
    ends here, whoever is in between passes bytes on and writes no header; then nobody's are believed.
    """
    config = HttpConfig(
        _ending_in_order(app),
        loop="none",
        http=LimitedProtocol if take_socket is None else _taking(take_socket),
        ws=BoundedSocket,
        lifespan="off",
        log_config=None,
        # Its lines hold whole addresses, and signed links are addresses that open pictures.
        access_log=False,
        server_header=False,
        ws_max_size=message_max_bytes,
        ws_per_message_deflate=False,
        timeout_keep_alive=KEEP_ALIVE_SEC,
        timeout_graceful_shutdown=GRACE_SEC,
        forwarded_allow_ips=[] if tls is not None else [str(peer_network(one)) for one in trusted_proxies],
    )
    config.limits = limits
    limits.hold(sock)
    config.addresses = AddressCounts(limits.connections_per_address, limits.spares_loopback, limits.spares)
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
        if left := server.server_state.tasks:
            await asyncio.wait(left, timeout=PUT_DOWN_SEC)
        raise
    raise Bug("the HTTP server ended by itself")


def _ending_in_order(app: Any) -> Any:
    """The application, without the traceback of what outlasts the grace at the end: that is broken off on purpose."""

    async def called(scope: Any, receive: Any, send: Any) -> None:
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                raise
            log.info("broken off, since this process ends", kind=scope["type"])
            if scope["type"] == "http":
                with contextlib.suppress(RuntimeError):  # the answer had begun
                    for message in _STOPPING:
                        await send(message)
        finally:
            if scope["type"] == "http":
                # What these hold, holds the scope: all of it would stay until somebody looks for such circles.
                scope["extensions"].clear()
                scope["state"].clear()

    return called
