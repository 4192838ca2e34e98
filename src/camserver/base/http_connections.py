"""One connection of the HTTP server, held to limits.

What uvicorn leaves unbounded is bounded here, before there is a request: how many connections an address may have
(429), how long a request's headers may be (431) and how long they may take (408). So is what is asked before earlier
requests are answered: nothing more is read while a request waits for its turn. And what is sent: how long it may find
nobody who takes it.

How answers are sent is `http_answers`', what becomes of offers of other protocols `http_upgrades`'.
"""

import asyncio
import json
import socket
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import httptools
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from camserver.base.address_counts import AddressCounts
from camserver.base.addresses import peer_host
from camserver.base.http_answers import ARRIVED, WHOLE, Header, Joining, OldCycle, answer_whole, arrived
from camserver.base.http_upgrades import has_body, head_without_offer, is_websocket
from camserver.base.log import get_logger

log = get_logger(__name__)

# Ordinary requests come whole in less. Of what came in one piece and is more, so much at a time becomes requests:
# one that waits takes a hundred times the memory of its bytes.
PIECE_BYTES: Final = 4_096
# How long, and with how much, whoever was answered in the middle of a request may go on with it: a file that somebody
# took by mistake.
LINGER_SEC: Final = 5.0
LINGER_MAX_BYTES: Final = 32_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a connection may cost before there is a request, and when nobody reads what is sent."""

    headers_max_bytes: int = 65_536  # of a request's line and headers together
    headers_timeout_sec: float = 20.0
    connections_per_address: int = 0  # 0: any number
    # A proxy on this machine has the connections of everybody, and what runs here could do worse.
    spares_loopback: bool = True
    # So do proxies elsewhere: addresses and networks without a bound.
    spares: tuple[str, ...] = ()
    # How long a peer may take nothing of what is sent to it. nginx gives its clients as long.
    unread_max_sec: float = 60.0

    def hold(self, listening: socket.socket) -> None:
        """Has the system end the connections of this socket whose peers take nothing of what is sent to them.

        Nothing else ends them. Closing waits until everything was taken, and a peer that reads nothing but answers
        the system's probes is waited for without end: by its connection, by megabytes in the system's memory, and by
        whoever writes to it. What is taken slowly goes on, since any progress begins the time anew. Accepted
        connections inherit this from the socket that listens.
        """
        if listening.family in (socket.AF_INET, socket.AF_INET6):
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(self.unread_max_sec * 1000))


_REFUSALS = {
    400: (
        "Bad Request",
        "bad_socket",
        "a WebSocket begins with a request that has no body, and waits for the answer",
    ),
    408: ("Request Timeout", "too_slow", "the request's headers took too long; try again"),
    429: ("Too Many Requests", "too_many_connections", "too many connections from this address; close some"),
    501: ("Not Implemented", "no_proxy", "this server is no proxy; ask for what is here"),
    431: ("Request Header Fields Too Large", "headers_too_large", "the request's headers are too large; send less"),
}
_UNREADABLE = ("Bad Request", "no_http", "this is no request of HTTP/1.1, or its body can't be read; send it anew")


class HttpConfig(uvicorn.Config):
    limits: Limits
    addresses: AddressCounts


class _NoMore(list[Header]):
    """A list that nothing is added to."""

    def append(self, _: Header) -> None:
        pass


_NO_MORE: Final = _NoMore()


class _Flow(FlowControl):
    """Does not read on while a request waits for its turn, whoever asks for it: the end of each answer does, and
    whoever receives a body."""

    is_held = False

    def resume_reading(self) -> None:
        if self.read_paused and not self.is_held:
            self.read_paused = False
            self._transport.resume_reading()


class LimitedProtocol(HttpToolsProtocol):
    """Holds a connection to the limits. A WebSocket begins as a request, and is held to them until then."""

    config: HttpConfig
    flow: _Flow

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self._limits = self.config.limits
        self._head_bytes: int | None = 0  # None: not within a request's headers
        self._unread_bytes: int | None = None  # behind the headers and no part of the body; None: not within a body
        self._has_read = False  # since data came last, some of it was of a body
        self._body_bytes = 0  # that came so far, of one body
        self._refused = 0  # other than 0: what comes now is dropped
        self._dropped_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._kept = b""  # what came while a request waits for its turn, or behind one
        self._ahead: RequestResponseCycle | None = None  # the request under way, where others wait behind it
        super().connection_made(transport)
        self.flow = _Flow(transport)
        if self.client is not None:
            self.client = (peer_host(self.client[0]), self.client[1])
        self._start_timer()
        self._counted = self.config.addresses.enter(peer_of(transport))
        if self.config.addresses.are_too_many(self._counted):
            log.warning("an address has too many connections; one more was refused", address=peer_of(transport))
            self._refuse(429)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._uncount()
        self._forget_queue()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._dropped_bytes += len(data)
            if self._dropped_bytes > LINGER_MAX_BYTES:
                self.transport.close()
            return
        if self.pipeline or len(data) > PIECE_BYTES:
            self._feed_by_pieces(self._kept + data)
        else:
            self._feed(data)

    def _feed_by_pieces(self, data: bytes) -> None:
        """Until a request has to wait for its turn; the rest is kept until then."""
        at, pieces = 0, memoryview(data)
        while at < len(data) and not self.pipeline and not self._refused and not self.transport.is_closing():
            # What belongs to a body becomes no request, however much it is.
            size_bytes = PIECE_BYTES if self._unread_bytes is None else max(PIECE_BYTES, self._body_left_bytes())
            self._feed(pieces[at : at + size_bytes])
            at += size_bytes
        self._kept = data[at:] if self.pipeline else b""

    def _body_left_bytes(self) -> int:
        """Of the body that is being read; 0 when that says nothing of its length."""
        declared = [int(value) for name, value in self.scope["headers"] if name == b"content-length"]
        return declared[0] - self._body_bytes if declared else 0

    def _feed(self, data: bytes | memoryview) -> None:
        size_bytes = len(data)
        if self._head_bytes is not None:
            self._head_bytes += size_bytes
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        while data:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as offer:
                data = self._consider(data[offer.args[0] :])
            except httptools.HttpParserError:
                self.send_400_response("Invalid HTTP request received.")
                return
        if self._unread_bytes is not None:
            self._count_unread(size_bytes)
        if self._refused:
            return
        if self._head_bytes is None:
            if self.cycle.response_complete and self._head_timer is None:
                # Something came that no request begins with, and whoever waits for one has no timer any more.
                self._start_timer()
            return
        if self._head_bytes > self._limits.headers_max_bytes:
            self._refuse(431)
        elif self._head_timer is None:
            self._start_timer()

    def _should_upgrade(self) -> bool:
        """Nothing that offers another protocol becomes a request before it was considered."""
        return True

    def _consider(self, rest: bytes | memoryview) -> bytes:
        """A request offered to go on in another protocol. What is to be read now, with what came behind its head."""
        method, version, headers = self.scope["method"], self.scope["http_version"], self.headers
        if method == "CONNECT":
            self._refuse(501)
            return b""
        if not is_websocket(method, version, headers):
            self._make_parser()
            return head_without_offer(method, self.url, version, headers) + rest
        if rest or has_body(headers) or not self._is_idle():
            self._refuse(400)
            return b""
        self._refused = 101  # from here on nothing is this protocol's
        self.handle_websocket_upgrade()
        return b""

    def handle_websocket_upgrade(self) -> None:
        # Its connection is another protocol's from here on, which counts it again.
        self._uncount()
        super().handle_websocket_upgrade()

    def _make_parser(self) -> None:
        """As uvicorn makes it: what comes behind a request that closes is no error."""
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_bytes is None:
            self._head_bytes = 0

    def on_headers_complete(self) -> None:
        self._refuse_long_head()
        self._head_bytes = None
        self._unread_bytes = self._body_bytes = 0
        self._stop_timer()
        before = self.cycle
        super().on_headers_complete()
        cycle = self.cycle
        if cycle is not None and cycle is not before:
            offered: dict[str, Any] = {
                WHOLE: partial(answer_whole, cycle, cycle.transport),
                ARRIVED: partial(arrived, cycle),
            }
            self.scope["extensions"] = offered
            # What comes behind a body in chunks is no header, and the application has them already.
            self.headers = _NO_MORE
            if self.scope["http_version"] != "1.1":
                # uvicorn makes it of its own class, and nothing of it was used yet.
                cycle.__class__ = OldCycle
                cycle.keep_alive = False
            cycle.transport = Joining(cycle.transport, self.loop)  # type: ignore[assignment]  # what it calls
            if self.pipeline and not self.flow.is_held:
                self.flow.is_held = True
                self._ahead = before

    def on_response_complete(self) -> None:
        """uvicorn's, which reads on although requests are waiting."""
        self.server_state.total_requests += 1
        if self.transport.is_closing() or self._refused:
            return
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        if self.pipeline:
            self._begin_next()
            return
        self.flow.resume_reading()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _begin_next(self) -> None:
        self._ahead, app = self.pipeline.pop()
        self._start_asgi_task(self._ahead, app)
        if self.pipeline:
            return
        self._ahead = None
        self.flow.is_held = False
        self._feed_by_pieces(self._kept)
        self.flow.resume_reading()

    def _forget_queue(self) -> None:
        """Who was being answered while others waited is told that the client is gone: uvicorn tells the last one.
        Those whose turn never came hold themselves, which nobody else would end."""
        if self._ahead is not None and not self._ahead.response_complete:
            self._ahead.disconnected = True
            self._ahead.message_event.set()
        self._ahead, self._kept = None, b""
        for cycle, _ in self.pipeline:
            cycle.on_response = _do_nothing
            cycle.scope["extensions"].clear()
        self.pipeline.clear()

    def on_body(self, body: bytes) -> None:
        self._has_read = True
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread_bytes = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._refused:
            return
        self.logger.warning(msg)
        if self._unread_bytes is not None and not self.pipeline and not self.cycle.response_started:
            # This is the request that is wrong, and nobody has answered it: nobody is to any more.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._say(400, *_UNREADABLE)
            self._linger()
        elif self._is_idle():
            self._say(400, *_UNREADABLE)
            self._linger()
        else:
            # It would stand in the middle of an answer.
            self._refused = 400
            self.transport.close()

    def _count_unread(self, size_bytes: int) -> None:
        """Chunks may be followed by a line without end, which the parser would keep."""
        assert self._unread_bytes is not None
        self._unread_bytes = 0 if self._has_read else self._unread_bytes + size_bytes
        self._has_read = False
        if self._unread_bytes > self._limits.headers_max_bytes and not self._refused:
            self._refuse(431)

    def _refuse_long_head(self) -> None:
        """What came in one piece and is too long becomes no request: the parser ends at the error."""
        size_bytes = len(self.url) + sum([len(name) + len(value) for name, value in self.headers])
        if size_bytes > self._limits.headers_max_bytes:
            self._refuse(431)
            raise ValueError("the request's headers are too large")

    def _uncount(self) -> None:
        self.config.addresses.leave(self._counted)
        self._counted = None

    def end(self) -> None:
        """The last answer was given."""
        if self._unread_bytes is None:
            self.transport.close()
        else:
            self._linger()

    def _linger(self) -> None:
        """Closes once the peer has, or after a while; what comes until then is dropped. Whoever closes while the peer
        still sends resets the connection, and what was answered is lost with it."""
        if not self.transport.can_write_eof():
            self.transport.close()
            return
        self._refused = self._refused or 200
        self.transport.write_eof()
        self.flow.is_held = False
        self.flow.resume_reading()
        self._stop_timer()
        self._head_timer = self.loop.call_later(LINGER_SEC, self.transport.close)

    def _start_timer(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.headers_timeout_sec, self._end_wait)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_wait(self) -> None:
        if self._head_bytes is None:
            # No request has begun that could be answered.
            self.transport.close()
        else:
            self._refuse(408)

    def _refuse(self, status: int) -> None:
        if not self._is_idle():
            self._refused = status
            self._stop_timer()
            self.transport.close()
            return
        self._say(status, *_REFUSALS[status])
        if status == 431:
            self._linger()
        else:
            self.transport.close()

    def _say(self, status: int, phrase: str, code: str, message: str) -> None:
        """The last that is said on this connection."""
        self._refused = status
        self._stop_timer()
        body = json.dumps({"error_code": code, "message": message, "details": {"reason": code}}).encode()
        head = (
            f"HTTP/1.1 {status} {phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete


def _do_nothing() -> None:
    pass


def peer_of(transport: asyncio.Transport | None) -> str:
    name = None if transport is None else transport.get_extra_info("peername")
    return peer_host(str(name[0])) if isinstance(name, tuple) else ""
