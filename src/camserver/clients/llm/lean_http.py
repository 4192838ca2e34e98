"""HTTP/1.1 for many questions to one address: half the processor time of the general client.

A sheet of a million rows is a million questions, and what asking costs on this side is mostly HTTP. This one does a
POST over connections that are kept open, and nothing else: no redirects, no cookies, no proxies, no compression. What
it reads is parsed by httptools, and every answer is bounded.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
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


# What becomes of a request: any answer, or OSError when the connection failed, TimeoutError when it took too long,
# TooLong, or ValueError for what is no HTTP.
Came = Reply | Exception


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
        """Any answer is returned; what else may come is raised."""
        loop = asyncio.get_running_loop()
        connection = self._taken(loop.time())
        if connection is None:
            connection = await self._connected(min(connect_sec, timeout_sec))
        waiting: asyncio.Future[Reply] = loop.create_future()
        connection.ask(_request(head, body), timeout_sec, partial(_hand, waiting))
        try:
            return await waiting
        except asyncio.CancelledError:
            connection.abort()
            raise

    def send(self, head: bytes, body: bytes, timeout_sec: float, then: Callable[[Came], None]) -> bool:
        """The same without a task, over a connection that is open already; False where there is none. `then` is told
        what came."""
        connection = self._taken(asyncio.get_running_loop().time())
        if connection is None:
            return False
        connection.ask(_request(head, body), timeout_sec, then)
        return True

    async def close(self) -> None:
        for one in list(self._every):
            one.abort()
        self._idle.clear()
        # Transports close in the next turn of the loop.
        await asyncio.sleep(0)

    def rest(self, connection: "_Connection", now_sec: float) -> None:
        """It has nothing to do."""
        if connection.is_open and len(self._idle) < IDLE_MAX:
            connection.idle_since_sec = now_sec
            self._idle.append(connection)
        else:
            connection.abort()

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
                            partial(_Connection, self, self._answer_bytes_max, self._every),
                            place.address,
                            place.port,
                            **tls,
                        )
                        return connection
                    except OSError as error:
                        failed = error
                raise failed
        except TimeoutError:
            raise NoConnection(f"no connection to {self._host} within {connect_sec:g} s") from None


@lru_cache(maxsize=256)
def _lower(name: bytes) -> str:
    """Of a header: the same few, a million times."""
    return name.decode("latin-1").lower()


def _request(head: bytes, body: bytes) -> bytes:
    return b"%b%d\r\n\r\n%b" % (head, len(body), body)


def _hand(waiting: "asyncio.Future[Reply]", came: Came) -> None:
    if waiting.done():
        return  # whoever waited was cancelled
    if isinstance(came, Reply):
        waiting.set_result(came)
    else:
        waiting.set_exception(came)


class _Connection(asyncio.Protocol):
    """One question at a time."""

    def __init__(self, home: LeanHttp, answer_bytes_max: int, every: "set[_Connection]") -> None:
        self._home = home
        self._answer_bytes_max = answer_bytes_max
        self._every = every
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._then: Callable[[Came], None] | None = None  # None: nobody asked
        self._late: asyncio.TimerHandle | None = None
        self._parser: Any = None
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._length = 0
        self._reply: Reply | None = None  # whole, and not given yet
        self.is_open = False
        self.idle_since_sec = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # of a stream
        self.is_open = True
        self._every.add(self)

    def ask(self, request: bytes, timeout_sec: float, then: Callable[[Came], None]) -> None:
        """`then` is called once, and not before this returns."""
        if self._transport is None or not self.is_open:
            self._loop.call_soon(then, ConnectionResetError("the connection was closed"))
            return
        self._then = then
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._body, self._length = {}, [], 0
        self._late = self._loop.call_later(timeout_sec, self._fail, TimeoutError())
        self._transport.write(request)

    def abort(self) -> None:
        self.is_open = False
        self._every.discard(self)
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: Exception) -> None:
        """An answer that may still come is none any more."""
        self.abort()
        self._end(error)

    def _end(self, came: Came) -> None:
        then, self._then, self._reply = self._then, None, None
        if self._late is not None:
            self._late.cancel()
            self._late = None
        if then is not None:
            if self.is_open:
                # Before the answer is looked at: the next question may follow at once.
                self._home.rest(self, self._loop.time())
            then(came)

    # -- What the loop and the parser call ---------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._then is None:
            self.abort()  # nobody asked
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ValueError(f"no HTTP: {error}"))
            return
        if self._reply is not None:
            self._end(self._reply)
            if not self.is_open:
                self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        self._every.discard(self)
        ends_with_it = not {"content-length", "transfer-encoding"} & self._headers.keys()
        if error is None and self._then is not None and self._headers and ends_with_it:
            self._end(self._whole())
        self._end(ConnectionResetError("the connection was closed before the answer was whole"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[_lower(name)] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._length += len(body)
        if self._length > self._answer_bytes_max:
            self._fail(TooLong())
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            self._headers = {}  # "continue": the answer itself follows
            return
        # More than one answer to a question: what else comes is not listened to.
        self.is_open = self.is_open and self._parser.should_keep_alive() and self._reply is None
        if self._then is not None and self._reply is None:
            self._reply = self._whole()

    def _whole(self) -> Reply:
        return Reply(self._parser.get_status_code(), self._headers, b"".join(self._body))
