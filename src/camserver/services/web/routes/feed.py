"""The change feed, pushed over a WebSocket: `GET /api/feed?after=SEQ`.

The first message brings what happened behind `after`, or that too much did (resync); from then on changes come as
they happen. Clients send nothing. Asked for instead of pushed, the same feed is `changes`.
"""

import asyncio

from starlette.websockets import WebSocket, WebSocketDisconnect

from camserver.base.errors import BadInput, Retry
from camserver.base.log import get_logger
from camserver.domain.people import Permission
from camserver.services.web.calls import Call
from camserver.services.web.feeds import Changes, Ping, Reader, Resync, Tail
from camserver.services.web.routes.changes import shown_change
from camserver.services.web.routing import Routes
from camserver.store import feed
from camserver.store.changes import PAGE_MAX
from camserver.wire import api

log = get_logger(__name__)
routes = Routes()

CLOSE_CLIENT_SPOKE = 1003
CLOSE_TRY_LATER = 1013  # the store is away
# A browser that is too slow for its messages is also too slow for the close frame.
CLOSE_TIMEOUT_SEC = 5.0


@routes.socket("/api/feed", Permission.READ)
async def follow(socket: WebSocket, call: Call) -> None:
    """Changes as they happen."""
    after = _cursor(socket.query_params.get("after"))
    call.web.feeds.require_room(call.principal)
    await socket.accept()
    async with call.web.feeds.join(call.principal) as (tail, reader):
        code = await _converse(socket, call, tail, reader, after)
        if code is not None:
            await _close(socket, code)


def _cursor(given: str | None) -> int | None:
    """None: from now on."""
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) <= 18):
        raise BadInput(
            "`after` must be a number that the feed gave out; leave it out to start now", reason="bad_cursor"
        )
    return int(given)


async def _converse(socket: WebSocket, call: Call, tail: Tail, reader: Reader, after: int | None) -> int | None:
    """Until the client leaves (None) or the server has a reason to close, whose code is answered."""
    sending = asyncio.create_task(_send(socket, call, tail, reader, after))
    hearing = asyncio.create_task(_hear(socket))
    ended = asyncio.create_task(reader.ended.wait())
    tasks = {sending, hearing, ended}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if hearing.done():
            return hearing.result()
        if reader.end_code is not None:
            return int(reader.end_code)
        return _outcome(sending)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _outcome(sending: asyncio.Task[None]) -> int | None:
    try:
        sending.result()
    except Retry as error:
        log.warning("a reader could not be told what it missed", cause=error.message)
        return CLOSE_TRY_LATER
    return None


async def _send(socket: WebSocket, call: Call, tail: Tail, reader: Reader, after: int | None) -> None:
    try:
        await _tell(socket, await _first(call, tail, reader, after))
        while True:
            match await reader.next():
                case Changes(items, last_seq):
                    shown = [shown_change(item) for item in items]
                    await _tell(socket, api.FeedChanges(changes=shown, last_seq=last_seq, live=True))
                case Resync(last_seq):
                    await _tell(socket, api.FeedResync(last_seq=last_seq))
                case Ping(last_seq):
                    await _tell(socket, api.FeedPing(last_seq=last_seq))
    except WebSocketDisconnect:
        return


async def _first(call: Call, tail: Tail, reader: Reader, after: int | None) -> api.FeedChanges | api.FeedResync:
    """What the reader missed. It has joined the tail already, so that nothing falls between the two."""
    position = await tail.position()
    if after is None:
        reader.start_at(position)
        return api.FeedChanges(changes=[], last_seq=position, live=False)
    page = await call.store.read(feed.after, after, PAGE_MAX)
    if page.resync or page.last_seq < position:
        # Pruned, made up, or so much that reading everything anew is the shorter way.
        start = max(page.last_seq, position)
        reader.start_at(start)
        return api.FeedResync(last_seq=start)
    reader.start_at(page.last_seq)
    shown = [shown_change(item) for item in page.items]
    return api.FeedChanges(changes=shown, last_seq=page.last_seq, live=False)


async def _tell(socket: WebSocket, message: api.Answer) -> None:
    await socket.send_text(message.model_dump_json())


async def _hear(socket: WebSocket) -> int | None:
    """Ends when the client leaves, or says something, which it has no reason to."""
    message = await socket.receive()
    return None if message["type"] == "websocket.disconnect" else CLOSE_CLIENT_SPOKE


async def _close(socket: WebSocket, code: int) -> None:
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_SEC):
            await socket.close(code)
    except (TimeoutError, WebSocketDisconnect, RuntimeError):
        # It is gone, or will not hear it; the connection is cut when this returns.
        return
