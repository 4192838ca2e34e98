"""HTTP/1.1 for many questions to one address: half the processor time of the general client.

A sheet of a million rows is a million questions, and what asking costs on this side is mostly HTTP. This one does a
POST over connections that are kept open, and nothing else: no redirects, no cookies, no proxies, no compression. What
it reads is parsed by httptools, and every answer is bounded.
"""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httptools

from camserver.base.hosts import in_address
from camserver.clients.outgoing import OutgoingPolicy

# Kept open while nothing is asked; providers close them after a minute or more.
IDLE_MAX_SEC = 30.0
IDLE_MAX = 1000


class NoConnection(OSError):
    """Nobody accepted a connection in time."""


class TooLong(Exception):
    """The answer goes on beyond its bound."""


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]  # lower case
    body: bytes


class LeanHttp:
    """Connections to one address. As many are open as questions are in flight."""

    def __init__(self, url: str, policy: OutgoingPolicy, *, answer_bytes_max: int) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._is_tls = parts.scheme == "https"
        self._port = parts.port or (443 if self._is_tls else 80)
        self._path = parts.path
        named = in_address(self._host)
        usual = 443 if self._is_tls else 80
        place = named if self._port == usual else f"{named}:{self._port}"
        # Small compressed answers can be huge ones: not asked for.
        self._head = f"Host: {place}\r\nAccept-Encoding: identity\r\nUser-Agent: camserver\r\n"
        self._policy = policy
        self._answer_bytes_max = answer_bytes_max
        self._tls: ssl.SSLContext | None = None
        self._idle: list[_Connection] = []
        self._every: set[_Connection] = set()

    def head(self, path: str, headers: Mapping[str, str]) -> bytes:
        """What requests to a path begin with, up to the length of their bodies."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if lines.count("\n") != len(headers):
            raise ValueError("a header holds a line break; check the key")
        return f"POST {self._path}{path} HTTP/1.1\r\n{self._head}{lines}Content-Length: ".encode("latin-1")

    async def post(self, head: bytes, body: bytes, *, timeout_sec: float, connect_sec: float) -> Reply:
        """Any answer is returned. OSError when the connection fails, TimeoutError when it takes too long."""
        loop = asyncio.get_running_loop()
        connection = self._taken(loop.time())
        if connection is None:
            connection = await self._connected(min(connect_sec, timeout_sec))
        try:
            reply = await connection.ask(b"%b%d\r\n\r\n%b" % (head, len(body), body), timeout_sec)
        except BaseException:
            connection.abort()
            raise
        if connection.is_open and len(self._idle) < IDLE_MAX:
            connection.idle_since_sec = loop.time()
            self._idle.append(connection)
        else:
            connection.abort()
        return reply

    async def close(self) -> None:
        for one in list(self._every):
            one.abort()
        self._idle.clear()
        # Transports close in the next turn of the loop.
        await asyncio.sleep(0)

    def _taken(self, now_sec: float) -> "_Connection | None":
        """The connection that was used last, so that those too many grow old."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and now_sec - connection.idle_since_sec < IDLE_MAX_SEC:
                return connection
            connection.abort()
        return None

    async def _connected(self, connect_sec: float) -> "_Connection":
        loop = asyncio.get_running_loop()
        if self._is_tls and self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        tls: dict[str, Any] = {"ssl": self._tls, "server_hostname": self._host} if self._is_tls else {}
        try:
            async with asyncio.timeout(connect_sec):
                failed: OSError = NoConnection(f"{self._host} has no address")
                for place in await self._policy.places(self._host, self._port):
                    try:
                        _, connection = await loop.create_connection(
                            lambda: _Connection(self._answer_bytes_max, self._every), place.address, place.port, **tls
                        )
                        return connection
                    except OSError as error:
                        failed = error
                raise failed
        except TimeoutError:
            raise NoConnection(f"no connection to {self._host} within {connect_sec:g} s") from None


class _Connection(asyncio.Protocol):
    """One question at a time."""

    def __init__(self, answer_bytes_max: int, every: "set[_Connection]") -> None:
        self._answer_bytes_max = answer_bytes_max
        self._every = every
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Reply] | None = None
        self._late: asyncio.TimerHandle | None = None
        self._parser: Any = None
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._length = 0
        self._is_whole = False
        self.is_open = False
        self.idle_since_sec = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # of a stream
        self.is_open = True
        self._every.add(self)

    def ask(self, request: bytes, timeout_sec: float) -> "asyncio.Future[Reply]":
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[Reply] = loop.create_future()
        if self._transport is None or not self.is_open:
            waiting.set_exception(ConnectionResetError("the connection was closed"))
            return waiting
        self._waiting = waiting
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._body, self._length = {}, [], 0
        self._late = loop.call_later(timeout_sec, self._fail, TimeoutError())
        self._transport.write(request)
        return waiting

    def abort(self) -> None:
        self.is_open = False
        self._every.discard(self)
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)
        self._rest()

    def _rest(self) -> None:
        """Nobody waits any more."""
        self._waiting = None
        if self._late is not None:
            self._late.cancel()
            self._late = None

    # -- What the loop and the parser call ---------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            self.abort()  # nobody asked
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ValueError(f"no HTTP: {error}"))
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        self._every.discard(self)
        ends_with_it = not {"content-length", "transfer-encoding"} & self._headers.keys()
        if error is None and self._waiting is not None and self._headers and ends_with_it:
            self._answer()
        self._fail(ConnectionResetError("the connection was closed before the answer was whole"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._length += len(body)
        if self._length > self._answer_bytes_max:
            self._fail(TooLong())
            self.abort()
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            self._headers = {}  # "continue": the answer itself follows
            return
        self.is_open = self.is_open and self._parser.should_keep_alive()
        self._answer()

    def _answer(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(Reply(self._parser.get_status_code(), self._headers, b"".join(self._body)))
        self._rest()
