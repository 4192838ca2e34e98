"""What time does to live view: viewings that are over go, and the camera to watch is brought up to now.

Every web process makes these rounds; each step repeats nothing and writes only where there is something to write.
"""

import asyncio
from collections.abc import Awaitable

from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import Conflict, Retry
from camserver.base.log import get_logger
from camserver.config import Settings
from camserver.domain.admission import METRICS_PRUNED_EVERY_MS
from camserver.domain.people import Principal, Role
from camserver.services.web.feeds import Feeds
from camserver.store import Store, prewarming, streamers, suggestions, viewings

log = get_logger(__name__)

SUGGEST_EVERY_SEC = 1.0


async def run(store: Store, clock: Clock, settings: Settings, feeds: Feeds) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_clean_up(store, clock, settings.admission.cleanup_interval_sec))
        group.create_task(_suggest(store, clock, settings, feeds))


async def _clean_up(store: Store, clock: Clock, every_sec: float) -> None:
    prune_at = clock.boot_ms()
    while True:
        await _tried(clean(store, clock.now_ms()), "viewings that are over")
        if clock.boot_ms() >= prune_at:
            await _tried(_prune(store, clock.now_ms()), "what admission measured")
            prune_at = clock.boot_ms() + METRICS_PRUNED_EVERY_MS
        await clock.sleep(every_sec)


async def clean(store: Store, now_ms: int) -> None:
    """Deletes viewings that are over, and those whose login, grants or camera do not allow them any more."""
    if await store.read(viewings.any_over, now_ms):
        while await store.write(viewings.forget_over, now_ms) == viewings.BATCH:
            pass
    after = ""
    while True:
        gone, after = await store.read(viewings.not_allowed, after, now_ms)
        if gone:
            log.info("live views ended that are not allowed any more", count=len(gone))
            await store.write(viewings.forget, gone)
        if not after:
            return


async def _prune(store: Store, now_ms: int) -> None:
    while await store.write(streamers.prune, now_ms) == streamers.PRUNE_BATCH:
        pass


async def _suggest(store: Store, clock: Clock, settings: Settings, feeds: Feeds) -> None:
    """For the tenants whose pages are open: where nobody looks, there is nobody to suggest something to."""
    while True:
        for tenant_id in feeds.tenant_ids():
            await _tried(advance(store, tenant_id, settings, clock.now_ms()), "the suggested camera")
        await clock.sleep(SUGGEST_EVERY_SEC)


async def advance(store: Store, tenant_id: int, settings: Settings, now_ms: int) -> None:
    mine = store.as_(Principal(tenant_id, None, Role.VIEWER))
    if await mine.read(suggestions.is_due, settings.suggest, now_ms):
        await mine.write(suggestions.advance, settings.suggest, now_ms)
    if await store.read(prewarming.is_due, tenant_id, now_ms):
        await store.write(prewarming.prewarm, tenant_id, settings.admission, now_ms)


async def _tried(work: Awaitable[None], what: str) -> None:
    """A round that fails is made again with the next one; it takes nothing else with it."""
    try:
        await work
    except (Retry, Conflict) as error:
        log.warning("a round of live view failed; tried again later", what=what, cause=error.message)
    except Exception:
        log.exception("a round of live view broke", what=what)
    go_on_unless_cancelled()
