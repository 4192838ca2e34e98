"""Rows and objects held against each other, both ways."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from camserver.base.errors import NotFound
from camserver.objects.keys import epoch_prefix, frame_uuid_of, is_draft

if TYPE_CHECKING:
    from camserver.objects.interface import Objects
    from camserver.store.check import Reads
    from camserver.store.object_places import NamedObject

AT_ONCE = 32
PAGE = 500


async def missing_objects(
    rows: "Reads", objects: "Objects", told: Callable[[str, int, int], None] = lambda *_: None
) -> "tuple[list[NamedObject], int]":
    """What rows name and is not there, and of how many."""
    from camserver.store import object_places

    gone: list[NamedObject] = []
    looked_at, total = 0, await rows.read(object_places.count)
    for pages in (object_places.pictures, object_places.clips):
        after: int | None = 0
        while after is not None:
            after, named = await rows.read(pages, after)
            looked_at += len(named)
            missing = await _missing(objects, named)
            # Deleted by retention between the two looks: the row does not name it any more.
            still = await rows.read(object_places.still_named, tuple(missing)) if missing else frozenset()
            gone += [one for one in missing if one in still]
            told("objects", min(looked_at, total), total)
    return gone, looked_at


async def _missing(objects: "Objects", named: "tuple[NamedObject, ...]") -> "list[NamedObject]":
    missing: list[NamedObject] = []
    for begin in range(0, len(named), AT_ONCE):
        batch = named[begin : begin + AT_ONCE]
        there = await asyncio.gather(*(_is_there(objects, one.object_key) for one in batch))
        missing += [one for one, is_there in zip(batch, there, strict=True) if not is_there]
    return missing


async def _is_there(objects: "Objects", key: str) -> bool:
    try:
        await objects.get_range(key, 0, 1)
    except NotFound:
        return False
    return True


async def rowless_objects(rows: "Reads", objects: "Objects", delete: bool) -> tuple[list[str], int]:
    """What lies under writers that have ended and no row names; how many of it were deleted, where that is wanted.

    Of such a writer no row can appear any more, so what has none now has none for ever.
    """
    from camserver.store import errand_orders, frames, standing

    rowless: list[str] = []
    deleted, after_epoch = 0, 0
    while epochs := await rows.read(standing.ended_epochs, after_epoch):
        after_epoch = epochs[-1]
        for epoch_id in epochs:
            after = ""
            while keys := await objects.list(epoch_prefix(epoch_id), PAGE, after):
                after = keys[-1]
                kept = await rows.read(frames.with_rows, epoch_id, tuple({frame_uuid_of(key) for key in keys}))
                named = await rows.read(errand_orders.named, epoch_id, tuple(keys))
                extra = [
                    key for key in keys if is_draft(key) or (frame_uuid_of(key) not in kept and key not in named)
                ]
                rowless += extra
                for key in extra if delete else ():
                    await objects.delete(key)
                    deleted += 1
    return rowless, deleted
