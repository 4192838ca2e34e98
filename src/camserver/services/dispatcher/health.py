"""Follows what becomes of cameras: looks through new looks every few seconds, for ever.

What is decided is in domain/health.py, how it is written in store/health.py. Any number of dispatchers may do it.
"""

from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.store import Store
from camserver.store.health import HealthTerms, sweep

log = get_logger(__name__)

EVERY_MS = 2_000
# Transactions a turn, so that a flood of looks is worked off without holding the store for long.
ROUNDS_MAX = 50


async def follow_health(store: Store, clock: Clock, terms: HealthTerms) -> None:
    """Sweeps until cancelled. A store that is away is waited for: the looks wait in it."""
    due_boot_ms = 0
    while True:
        started_boot_ms = clock.boot_ms()
        if started_boot_ms >= due_boot_ms:
            due_boot_ms = started_boot_ms + EVERY_MS
            try:
                await _turn(store, clock, terms)
            except Retry as error:
                log.warning("health_put_off", why=error.message)
            except Exception:
                # What is broken here must not keep the analysis from going on.
                log.exception("health_broke")
        await clock.sleep(1.0)


async def _turn(store: Store, clock: Clock, terms: HealthTerms) -> None:
    for _ in range(ROUNDS_MAX):
        swept = await store.write(sweep, clock.now_ms(), terms)
        if swept.changed:
            log.info("camera_health_changed", cameras=swept.changed)
        if not swept.more:
            return
    log.warning("health_is_behind", rounds=ROUNDS_MAX)
