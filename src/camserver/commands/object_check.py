"""`camserver db check --objects`: is every picture and clip there that a row names?"""

import asyncio
from typing import TYPE_CHECKING

from camserver.base.clock import StoreClock
from camserver.base.errors import Conflict, NotFound

if TYPE_CHECKING:
    from camserver.config import Settings
    from camserver.objects.interface import Objects
    from camserver.store import Store
    from camserver.store.check import Finding
    from camserver.store.object_places import NamedObject

AT_ONCE = 32


async def check_objects(settings: "Settings", forget_missing: bool) -> "tuple[Finding, ...]":
    """What is missing. With `forget_missing` it is noted as gone, unless so much is that a disk may be away."""
    from camserver.objects.opening import open_objects
    from camserver.store import open_store

    store = await open_store(settings.store.url.reveal())
    try:
        return await missing_objects(store, await open_objects(settings.objects), forget_missing)
    finally:
        await store.close()


async def missing_objects(store: "Store", objects: "Objects", forget_missing: bool) -> "tuple[Finding, ...]":
    from camserver.store import object_places
    from camserver.store.check import Finding

    gone: list[NamedObject] = []
    looked_at = 0
    for pages in (object_places.pictures, object_places.clips):
        after: int | None = 0
        while after is not None:
            after, named = await store.read(pages, after)
            looked_at += len(named)
            gone += await _missing(objects, named)
    if not gone:
        return ()
    if forget_missing:
        if len(gone) * 2 > looked_at:
            raise Conflict(
                f"{len(gone)} of {looked_at} pictures and clips are not there; is their disk mounted? "
                "Nothing was changed"
            )
        for begin in range(0, len(gone), object_places.PAGE):
            page = tuple(gone[begin : begin + object_places.PAGE])
            await store.write(object_places.note_gone, page, StoreClock().now_ms())
    noted = "; they are noted as gone now" if forget_missing else "; note them as gone with --forget-missing"
    message = f"{len(gone)} of {looked_at} pictures and clips are not there (for example {gone[0].object_key}){noted}"
    return (Finding("object_missing", message, len(gone)),)


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
