"""Telling somebody of changes as they happen, however they listen: over a WebSocket or as server-sent events.

A `Line` is the way to them. The first message brings what happened behind the cursor, or that too much did (resync);
from then on changes come as they happen. Listeners send nothing.
"""

import asyncio
from dataclasses import asdict
from typing import Protocol

from camserver.base.errors import BadInput, Retry
from camserver.base.log import get_logger
from camserver.services.web.calls import Call
from camserver.services.web.feeds import Changes, Ping, Reader, Resync, Tail
from camserver.store import feed
from camserver.store.changes import PAGE_MAX
from camserver.wire import api

log = get_logger(__name__)

CLOSE_TRY_LATER = 1013  # the store is away
# A browser that is too slow for its messages is also too slow for the last one.
CLOSE_TIMEOUT_SEC = 5.0
Told = api.FeedChanges | api.FeedResync | api.FeedPing


class Line(Protocol):
    async def tell(self, message: Told) -> bool:
        """False when nobody is there any more."""

    async def hear(self) -> int | None:
        """Ends when the listener leaves (None), or does what it has no reason to: the code it is sent away with."""


def parse_cursor(given: str | None) -> int | None:
    """None: from now on."""
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) <= 18):
        raise BadInput(
            "`after` must be a number that the feed gave out; leave it out to start now", reason="bad_cursor"
        )
    return int(given)


async def converse(line: Line, call: Call, tail: Tail, reader: Reader, after: int | None) -> int | None:
    """Until the listener leaves (None) or the server has a reason to end, whose code is answered."""
    sending = asyncio.create_task(_send(line, call, tail, reader, after))
    hearing = asyncio.create_task(line.hear())
    ended = asyncio.create_task(reader.ended.wait())
    tasks: set[asyncio.Task[object]] = {sending, hearing, ended}
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


def shown_change(item: feed.Item) -> api.Change:
    return api.Change.model_validate(asdict(item))


async def _send(line: Line, call: Call, tail: Tail, reader: Reader, after: int | None) -> None:
    is_there = await line.tell(await _first(call, tail, reader, after))
    while is_there:
        match await reader.next():
            case Changes(items, last_seq):
                shown = [shown_change(item) for item in items]
                is_there = await line.tell(api.FeedChanges(changes=shown, last_seq=last_seq, live=True))
            case Resync(last_seq):
                is_there = await line.tell(api.FeedResync(last_seq=last_seq))
            case Ping(last_seq):
                is_there = await line.tell(api.FeedPing(last_seq=last_seq))


async def _first(call: Call, tail: Tail, reader: Reader, after: int | None) -> Told:
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
