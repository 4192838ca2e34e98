"""How the HTTP server's answers are sent: in as few calls to the system as there can be.

An application may answer in one go instead of by messages: `WHOLE` among a scope's extensions is a `Whole`. And it
may have a body that is there already without waiting for it: `ARRIVED` is an `Arrived`.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

from camserver.base.errors import Bug

Header = tuple[bytes, bytes]
# Status, headers (names in lower case, Content-Length among them) and body. False: not now, send it by messages.
Whole = Callable[[int, Iterable[Header], bytes], bool]
WHOLE: Final = "camserver.http.response.whole"
# The whole body; None: it is still to come, receive it by messages.
Arrived = Callable[[], bytes | None]
ARRIVED: Final = "camserver.http.request.arrived"


@lru_cache(maxsize=4096)
def _line(header: Header) -> bytes:
    """Most headers are the same from answer to answer."""
    name, value = header
    if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
        raise Bug(f"the header {name!r} of an answer holds what no header may")
    return b"%s: %s\r\n" % header


def arrived(cycle: RequestResponseCycle) -> bytes | None:
    """What the cycle's `receive` does with a body of which nothing is to come."""
    if cycle.more_body or cycle.disconnected or cycle.response_complete:
        return None
    body, cycle.body = bytes(cycle.body), bytearray()
    cycle.message_event.clear()
    cycle.flow.resume_reading()
    return body


def answer_whole(
    cycle: RequestResponseCycle, transport: asyncio.Transport, status: int, headers: Iterable[Header], body: bytes
) -> bool:
    """What the cycle does with both messages of an answer, by one write."""
    if cycle.disconnected or cycle.response_started or cycle.flow.write_paused:
        return False
    lines = [STATUS_LINE[status], *map(_line, cycle.default_headers), *map(_line, headers)]
    if not cycle.keep_alive:
        lines.append(b"connection: close\r\n")
    lines.append(b"\r\n")
    cycle.waiting_for_100_continue = False
    cycle.response_started = cycle.response_complete = True
    transport.writelines((b"".join(lines), body))
    cycle.message_event.set()
    if not cycle.keep_alive:
        transport.close()
    cycle.on_response()
    return True


class OldCycle(RequestResponseCycle):
    """One of a client of HTTP/1.0, which knows no chunks and would take their marks for content. An answer without a
    length ends with its connection there."""

    _has_length = True

    async def send(self, message: ASGISendEvent) -> None:
        if message["type"] == "http.response.start":
            self._has_length = any(name == b"content-length" for name, _ in message.get("headers", ()))
            if not self._has_length:
                self.chunked_encoding = False
        elif message["type"] == "http.response.body" and not self._has_length:
            self.expected_content_length += len(message.get("body", b""))
        await super().send(message)


class Joining:
    """Sends an answer's head together with the first of its body: uvicorn writes them apart, and each write is a call
    to the system and wakes whoever reads. A head whose body is not there in this turn of the loop goes alone."""

    __slots__ = ("_alone", "_head", "_loop", "_transport", "_was_written")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self._was_written = False
        self._alone: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:
        if self._alone is not None:
            self._alone.cancel()
            self._alone = None
            self._transport.writelines((self._head, data))
        elif self._was_written:
            self._transport.write(data)
        else:
            self._was_written = True
            self._head = data
            self._alone = self._loop.call_soon(self._send_alone)

    def _send_alone(self) -> None:
        self._alone = None
        if not self._transport.is_closing():
            self._transport.write(self._head)

    def close(self) -> None:
        if self._alone is not None:
            self._alone.cancel()
            self._send_alone()
        if not self._transport.is_closing():
            # Asked for now: held on to, it would hold itself.
            self._transport.get_protocol().end()  # type: ignore[attr-defined]  # `http_connections`'

    def is_closing(self) -> bool:
        return self._transport.is_closing()
