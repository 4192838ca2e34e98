"""Telling somebody of changes as they happen, however they listen: over a WebSocket or as server-sent events.

A `Line` is the way to them. The first message brings what happened behind the cursor, or that too much did (resync);
from then on changes come as they happen. Listeners send nothing.
"""

import asyncio
from functools import lru_cache
from typing import Protocol

from camserver.base.errors import BadInput, Retry
from camserver.base.log import get_logger
from camserver.services.web.calls import Call
from camserver.services.web.feeds import Changes, Ping, Reader, Resync, System, Tail
from camserver.store import feed
from camserver.store.changes import PAGE_MAX
from camserver.wire import api

log = get_logger(__name__)

CLOSE_TRY_LATER = 1013  # the store is away
# A browser that is too slow for its messages is also too slow for the last one.
CLOSE_TIMEOUT_SEC = 5.0
# Texts of messages of the last moment, for readers who are told the same.
TEXTS_KEPT = 256
First = api.FeedChanges | api.FeedResync


class Line(Protocol):
    async def tell(self, text: str, last_seq: int) -> bool:
        """A message as JSON, and the cursor behind it. False when nobody is there any more."""

    async def hear(self) -> int | None:
        """Ends when the listener leaves (None), or does what it has no reason to: the code it is sent away with."""


def parse_cursor(*given: str) -> int | None:
    """Of everything that was given as one. None: from now on."""
    if not given:
        return None
    if len(given) > 1:
        raise BadInput("`after` is given more than once; give it once", reason="bad_cursor")
    return _cursor(given[0])


def _cursor(given: str) -> int:
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
    return api.Change(
        seq=item.seq, kind=item.kind, at=item.at, site=item.site, camera_id=item.camera_id, object=item.object
    )


# Whoever reaches the same is told the same: the text is made once for all of them, not once for each. It follows from
# the changes alone, and which of them are for somebody was decided before.
@lru_cache(maxsize=TEXTS_KEPT)
def _live(items: tuple[feed.Item, ...], last_seq: int) -> str:
    changes = [shown_change(item) for item in items]
    return api.FeedChanges(changes=changes, last_seq=last_seq, live=True).model_dump_json()


async def _send(line: Line, call: Call, tail: Tail, reader: Reader, after: int | None) -> None:
    first = await _first(line, call, tail, reader, after)
    is_there = await line.tell(first.model_dump_json(), first.last_seq)
    while is_there:
        told = await reader.next()
        match told:
            case Changes(items, last_seq):
                text = _live(items, last_seq)
            case Resync(last_seq):
                text = api.FeedResync(last_seq=last_seq).model_dump_json()
            case System(last_seq):
                text = api.FeedSystem(last_seq=last_seq).model_dump_json()
            case Ping(last_seq):
                text = api.FeedPing(last_seq=last_seq).model_dump_json()
        is_there = await line.tell(text, told.last_seq)


async def _first(line: Line, call: Call, tail: Tail, reader: Reader, after: int | None) -> First:
    """The first message. With the store away that takes until it is back, or given up; pings say meanwhile that
    somebody is here, or the listener would give the connection up and come back to the same."""
    reading = asyncio.create_task(_missed(call, tail, reader, after))
    pinging = asyncio.create_task(_ping(line, reader, after or 0))
    try:
        await asyncio.wait({reading, pinging}, return_when=asyncio.FIRST_COMPLETED)
        # Where nobody is there any more to be pinged, whoever hears the listener ends this.
        return await reading
    finally:
        for task in (reading, pinging):
            task.cancel()
        await asyncio.gather(reading, pinging, return_exceptions=True)


async def _ping(line: Line, reader: Reader, cursor: int) -> None:
    """With the listener's own cursor: there is no other yet."""
    is_there = True
    while is_there:
        await reader.ping()
        is_there = await line.tell(api.FeedPing(last_seq=cursor).model_dump_json(), cursor)


async def _missed(call: Call, tail: Tail, reader: Reader, after: int | None) -> First:
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
