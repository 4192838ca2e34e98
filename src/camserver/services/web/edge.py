"""The outermost layer: everything that holds for every request before it means anything.

Host allow-list (421), bounded body (413, 408), bounded address (414), no U+0000 and no JSON but in UTF-8 (400), HEAD
wherever there is a GET, security headers on every answer, one log line a request without its query, and a request id.
It knows no routes and nobody's name.
What a connection may cost before there is a request is `base.asgi`'s.
"""

import asyncio
import ipaddress
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import lru_cache, partial
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from uuid_utils import uuid7

from camserver.base import figures
from camserver.base.clock import Clock
from camserver.base.errors import BadInput, Reject
from camserver.base.hosts import in_address
from camserver.base.http_answers import ARRIVED, WHOLE, Arrived, Header, Whole
from camserver.base.log import get_logger, keep_ids
from camserver.config import Settings, StreamerSettings
from camserver.domain.scoring_sheets import PART_BYTES
from camserver.services.web.answers import error_response
from camserver.services.web.languages import choose_language
from camserver.services.web.requests import BODY, HEADERS, RequestHeaders

log = get_logger(__name__)
# Asked whether a line would be written at all, before it is made.
_plain_log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# What may stand in a header; whatever else a client calls us is not answered to anyway.
_NAME = re.compile(r"[a-z0-9.:-]{1,255}")
BODY_MAX_BYTES = 65_536
# A file that is sent whole, by its path. Characters of it may take several bytes, and JSON escapes some.
LONG_BODIES_MAX_BYTES = {"/api/imports": 2_000_000}
# Pieces of a sheet that is to be scored.
_SHEETS = "/api/scoring/sheets/"
_PIECES = re.compile(rf"{_SHEETS}[A-Za-z0-9-]{{1,36}}/parts/[0-9]{{1,6}}")
# Of JSON; behind a backslash that is one itself, it is a plain text.
_NOTHING = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
BODY_TIMEOUT_SEC = 30
ADDRESS_MAX_BYTES = 8_192
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
HOSTS_REMEMBERED = 64
_NO_EXTENSIONS: Final[dict[str, Any]] = {}
_HEADERS: Final[tuple[Header, ...]] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)
_POLICY: Final = b"content-security-policy"
_NAMES: Final = frozenset([*(name for name, _ in _HEADERS), _POLICY])


class WrongHost(Reject):
    code = "wrong_host"
    http_status = 421


class TooLarge(Reject):
    code = "too_large"
    http_status = 413


class TooLongAddress(Reject):
    code = "address_too_long"
    http_status = 414


class TooSlow(Reject):
    code = "too_slow"
    http_status = 408


class Edge:
    def __init__(self, app: App, settings: Settings, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._hosts = allowed_hosts(settings)
        # A server has few names; what others call it is refused, and takes the place of another such.
        self._policies = lru_cache(maxsize=HOSTS_REMEMBERED)(partial(_policy_header, settings.streamer))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = uuid7().hex
        scope.setdefault("state", {})["request_id"] = request_id
        headers = scope[HEADERS] = RequestHeaders(scope)
        host = headers.get("host", "")
        answer = _Answer(send, self._policies(host), scope)
        started_ms = self._clock.boot_ms()
        handle = self._handle_socket if scope["type"] == "websocket" else self._handle
        # The server runs each request in a task of its own, with which what is bound here ends.
        keep_ids(request_id=request_id)
        try:
            await handle(scope, receive, answer, headers, host)
        finally:
            self._log(scope, answer.status, self._clock.boot_ms() - started_ms)

    async def _handle_socket(
        self, scope: Scope, receive: Receive, answer: "_Answer", headers: Headers, host: str
    ) -> None:
        try:
            self._check_host(scope, host)
        except Reject as refused:
            response = error_response(refused, choose_language(headers.get("accept-language", "")))
            await response(scope, receive, answer)
            return
        await self._app(scope, receive, answer)

    async def _handle(self, scope: Scope, receive: Receive, answer: "_Answer", headers: Headers, host: str) -> None:
        try:
            self._check_host(scope, host)
            _check_address(scope)
            body = await _read_body(scope, headers, receive)
            _check_characters(scope, headers, body)
        except Reject as refused:
            response = error_response(refused, choose_language(headers.get("accept-language", "")))
            # What is left of the body was not read, so the connection can't be used again.
            response.headers["Connection"] = "close"
            await response(scope, receive, answer)
            return
        if body is None:
            return
        scope[BODY] = body
        if scope["method"] == "HEAD":
            await self._head(scope, body, answer)
        else:
            await self._app(scope, _replay(body, receive), answer)

    async def _head(self, scope: Scope, body: bytes, answer: "_Answer") -> None:
        """The answer that a GET would get, without its content: whoever sends that is told that nobody listens."""
        begun = _Begun(answer)
        await self._app({**scope, "method": "GET", "extensions": {}}, _replay(body, begun.wait), begun)
        await answer({"type": "http.response.body", "body": b"", "more_body": False})

    def _check_host(self, scope: Scope, host: str) -> None:
        name = host_name(host)
        # A literal address that this very connection reached can't be a foreign name pointed at us.
        own_address = (scope.get("server") or ("",))[0]
        if name and (name in self._hosts or name == own_address):
            return
        raise WrongHost(
            "the server does not answer to this host name; add it to web.allowed_hosts, or use another address",
            reason="wrong_host",
        )

    def _log(self, scope: Scope, status: int | None, duration_ms: int) -> None:
        method = scope.get("method", "SOCKET")
        figures.count_request(method, status, duration_ms / 1000)
        quiet = method in ("GET", "HEAD", "SOCKET") and status is not None and status < 400
        if not _plain_log.isEnabledFor(logging.DEBUG if quiet else logging.INFO):
            return
        write = log.debug if quiet else log.info
        write(
            "request",
            method=method,
            path=logged_path(scope["path"]),
            status=status,
            duration_ms=duration_ms,
            address=(scope.get("client") or ("",))[0],
        )


def content_policy(streamer: StreamerSettings, host: str) -> str:
    """Scripts, styles, pictures and clips come from here and nowhere else, nothing is inline, nobody frames us.

    Live video comes from the streamer: where it has an address of its own from there, else from its port at the host
    that the page came from.
    """
    live = ""
    if streamer.public_url is not None:
        origin = _origin(streamer.public_url)
        live = f" {origin} {origin.replace('http', 'ws', 1)}"
    elif _NAME.fullmatch(name := host_name(host)):
        place = f"{in_address(name)}:{streamer.port or '*'}"
        live = f" http://{place} ws://{place}"
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"media-src 'self' blob:{live}; connect-src 'self'{live}; worker-src 'self'; manifest-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )


def _policy_header(streamer: StreamerSettings, host: str) -> Header:
    return _POLICY, content_policy(streamer, host).encode("latin-1")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


class _Answer:
    """Sends, adds the headers every answer has, and remembers the status."""

    def __init__(self, send: Send, content_policy: Header, scope: Scope) -> None:
        self._send = send
        self._content_policy = content_policy
        self.status: int | None = None
        self._whole: Whole | None = scope.get("extensions", _NO_EXTENSIONS).get(WHOLE)
        if self._whole is not None:
            scope["extensions"] = {**scope["extensions"], WHOLE: self.whole}

    async def __call__(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            self.status = 101
        elif message["type"] in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            message["headers"] = self._completed(message.get("headers", ()))
        await self._send(message)

    def whole(self, status: int, headers: Iterable[Header], body: bytes) -> bool:
        """A `Whole` that does the same."""
        assert self._whole is not None
        if not self._whole(status, self._completed(headers), body):
            return False
        self.status = status
        return True

    def _completed(self, given: Iterable[Header]) -> list[Header]:
        # A page may be stricter about itself. Names are in lower case, as they must be in ASGI.
        named = {name for name, _ in given}
        if named.isdisjoint(_NAMES):
            return [*given, *_HEADERS, self._content_policy]
        return [*given, *[one for one in (*_HEADERS, self._content_policy) if one[0] not in named]]


class _Begun:
    """Hands on how an answer begins and drops the rest."""

    def __init__(self, answer: _Answer) -> None:
        self._answer = answer
        self._has_begun = asyncio.Event()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._answer(message)
            self._has_begun.set()

    async def wait(self) -> Message:
        await self._has_begun.wait()
        return {"type": "http.disconnect"}


def _check_address(scope: Scope) -> None:
    if len(scope.get("raw_path") or b"") + len(scope.get("query_string", b"")) > ADDRESS_MAX_BYTES:
        raise TooLongAddress(
            f"the address is longer than {ADDRESS_MAX_BYTES} bytes; ask for less at once",
            reason="address_too_long",
            bytes_max=ADDRESS_MAX_BYTES,
        )


def _check_characters(scope: Scope, headers: Headers, body: bytes | None) -> None:
    """No text holds the character of nothing: PostgreSQL can't keep it, and no person writes it."""
    nothing = "\0" in scope["path"] or b"%00" in scope.get("query_string", b"")
    if not nothing and body and "json" in headers.get("content-type", "").lower():
        _check_encoding(body)
        nothing = b"\\u0000" in body and _NOTHING.search(body) is not None
    if nothing:
        raise BadInput("the request holds the character U+0000; leave it out", reason="bad_character")


def _check_encoding(body: bytes) -> None:
    """JSON is sent in UTF-8. A reader that guesses takes others too, in which nothing is found that is looked for."""
    try:
        body.decode()
    except UnicodeDecodeError:
        is_utf8 = False
    else:
        # UTF-16 and UTF-32 without a mark are told by these; in UTF-8 no JSON begins with one.
        is_utf8 = b"\0" not in body[:4]
    if not is_utf8:
        raise BadInput("the body is JSON in another encoding than UTF-8; send it in UTF-8", reason="not_utf8")


def _body_max_bytes(path: str) -> int:
    if path.startswith(_SHEETS) and _PIECES.fullmatch(path):
        return PART_BYTES
    return LONG_BODIES_MAX_BYTES.get(path, BODY_MAX_BYTES)


async def _read_body(scope: Scope, headers: Headers, receive: Receive) -> bytes | None:
    """The whole body, which is small by rule; None when the client went away."""
    max_bytes = _body_max_bytes(scope["path"])
    declared = headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise _too_large(max_bytes)
    if declared == "0" and "transfer-encoding" not in headers and scope["method"] == "GET":
        return b""
    arrived: Arrived | None = scope.get("extensions", _NO_EXTENSIONS).get(ARRIVED)
    body = None if arrived is None else arrived()
    if body is not None:
        # As nearly always: there is nothing to wait for, and so nothing to bound in time.
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
        return body
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SEC):
            return await _received(receive, max_bytes)
    except TimeoutError:
        raise TooSlow(f"the request took longer than {BODY_TIMEOUT_SEC} s; try again", reason="too_slow") from None


async def _received(receive: Receive, max_bytes: int) -> bytes | None:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
        if not message.get("more_body", False):
            return bytes(body)


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(
        f"the request is larger than {max_bytes} bytes; send less", reason="too_large", bytes_max=max_bytes
    )


def _replay(body: bytes, receive: Receive) -> Receive:
    """What the application receives: the body in one piece, then what comes after it."""
    given = False

    async def next_message() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message


def logged_path(path: str) -> str:
    """The path without what opens a share to whoever reads the log."""
    folder, share, rest = path.partition("/share/")
    if folder or not share:
        return path
    return f"/share/…{''.join(rest.partition('/')[1:])}"


@lru_cache(maxsize=HOSTS_REMEMBERED)
def host_name(host: str) -> str:
    """The name in a Host header, lower case, without port and brackets; empty when there is none."""
    try:
        return (urlsplit(f"//{host.strip()}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def allowed_hosts(settings: Settings) -> frozenset[str]:
    """The configured names, the address that is bound, that of public_url, and this machine's own."""
    configured: Iterable[str] = (*settings.web.allowed_hosts, settings.web.host)
    names = {host_name(f"[{name}]" if _is_ipv6(name) else name) for name in configured}
    names.add(urlsplit(settings.server.public_url).hostname or "")
    return frozenset(names | _LOOPBACK_NAMES) - {"", "0.0.0.0", "::"}


def _is_ipv6(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).version == 6
    except ValueError:
        return False
