"""Follows what becomes of cameras: looks through new looks every few seconds, for ever.

What is decided is in domain/health.py, how it is written in store/health.py. Any number of dispatchers may do it.
"""

from collections.abc import Callable

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.services.dispatcher.turns import take_turns
from camserver.store import Store
from camserver.store.health import HealthTerms, sweep

log = get_logger(__name__)

EVERY_MS = 2_000
# Transactions a turn, so that a flood of looks is worked off without holding the store for long.
ROUNDS_MAX = 50


async def follow_health(store: Store, clock: Clock, terms: Callable[[], HealthTerms]) -> None:
    """Sweeps until cancelled. A store that is away is waited for: the looks wait in it."""
    await take_turns(clock, EVERY_MS, "health", lambda: _turn(store, clock, terms()))


async def _turn(store: Store, clock: Clock, terms: HealthTerms) -> None:
    for _ in range(ROUNDS_MAX):
        swept = await store.write(sweep, clock.now_ms(), terms)
        if swept.changed:
            log.info("camera_health_changed", cameras=swept.changed)
        if not swept.more:
            return
    log.warning("health_is_behind", rounds=ROUNDS_MAX)
