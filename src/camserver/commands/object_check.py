"""`camserver db check --objects`: is every picture and clip there that a row names?"""

from typing import TYPE_CHECKING

from camserver.base.clock import StoreClock
from camserver.base.errors import Conflict
from camserver.care import object_checks

if TYPE_CHECKING:
    from camserver.config import Settings
    from camserver.objects.interface import Objects
    from camserver.store import Store
    from camserver.store.check import Finding


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

    gone, looked_at = await object_checks.missing_objects(store, objects)
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
