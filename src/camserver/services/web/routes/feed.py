"""The change feed, pushed: over a WebSocket (`GET /api/feed?after=SEQ`), or as server-sent events
(`GET /api/feed/events`) for programs and proxies that have none. Asked for instead of pushed, it is `changes`.
"""

import asyncio
import json
from typing import Annotated

from fastapi import Query, Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from camserver.domain.people import Permission
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.following import CLOSE_TIMEOUT_SEC, converse, parse_cursor
from camserver.services.web.routing import Routes

routes = Routes()

CLOSE_CLIENT_SPOKE = 1003
# How long a browser waits before it comes back by itself.
RETRY_MS = 3_000
_EVENTS = "text/event-stream"


@routes.socket("/api/feed", Permission.READ)
async def follow(socket: WebSocket, call: Call) -> None:
    """Changes as they happen."""
    after = parse_cursor(*socket.query_params.getlist("after"))
    call.web.feeds.require_room(call.principal)
    await socket.accept()
    async with call.web.feeds.join(call.principal) as (tail, reader):
        code = await converse(_SocketLine(socket), call, tail, reader, after)
        if code is not None:
            await _close(socket, code)


class _SocketLine:
    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def tell(self, text: str, last_seq: int) -> bool:
        try:
            await self._socket.send_text(text)
        except WebSocketDisconnect:
            return False
        return True

    async def hear(self) -> int | None:
        message = await self._socket.receive()
        return None if message["type"] == "websocket.disconnect" else CLOSE_CLIENT_SPOKE


async def _close(socket: WebSocket, code: int) -> None:
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_SEC):
            await socket.close(code)
    except (TimeoutError, WebSocketDisconnect, RuntimeError):
        # It is gone, or will not hear it; the connection is cut when this returns.
        return


@routes.get(
    "/api/feed/events",
    Permission.READ,
    response_class=Response,
    responses={200: {"content": {_EVENTS: {}}, "description": "the feed, until one of the two ends it"}},
)
async def follow_events(
    call: TheCall,
    after: Annotated[str | None, Query(max_length=18, description="A cursor; none: now.")] = None,
) -> Response:
    """Changes as they happen, as server-sent events: what the WebSocket sends, and `Last-Event-ID` is its cursor.

    An event named `end` says with the WebSocket's close code why the server ends it.
    """
    cursor = parse_cursor(*call.request.query_params.getlist("after"))
    if last := call.request.headers.get("last-event-id"):
        # A browser that comes back by itself asks the old address.
        cursor = parse_cursor(last)
    call.web.feeds.require_room(call.principal)
    return _EventStream(call, cursor)


class _EventStream(Response):
    """An answer without an end. A reader that is too slow is cut off, and comes back with its cursor."""

    media_type = _EVENTS

    def __init__(self, call: Call, after: int | None) -> None:
        # Proxies that collect answers before they hand them on are asked not to.
        super().__init__(headers={"X-Accel-Buffering": "no", "Cache-Control": "private, no-store"})
        del self.headers["content-length"]
        self._call = call
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        call = self._call
        async with call.web.feeds.join(call.principal) as (tail, reader):
            code = await converse(_EventLine(receive, send), call, tail, reader, self._after)
        if code is None:
            return
        end = f"event: end\ndata: {json.dumps({'code': code})}\n\n".encode()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_SEC):
                await send({"type": "http.response.body", "body": end, "more_body": False})
        except TimeoutError:
            # It will not hear it; the connection is cut when this returns.
            return


class _EventLine:
    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._preface = f"retry: {RETRY_MS}\n"

    async def tell(self, text: str, last_seq: int) -> bool:
        event = f"{self._preface}id: {last_seq}\ndata: {text}\n\n"
        self._preface = ""
        await self._send({"type": "http.response.body", "body": event.encode(), "more_body": True})
        return True

    async def hear(self) -> int | None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        return None
