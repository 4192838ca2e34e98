"""Keeps the hourly figures up to date: every two minutes, for ever.

What is counted is in store/hourly_stats.py. Any number of dispatchers may do it.
"""

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.services.dispatcher.turns import take_turns
from camserver.store import Store, hourly_stats

log = get_logger(__name__)

EVERY_MS = 120_000
# Batches a turn; what is left waits for the next one.
ROUNDS_MAX = 50


async def follow_statistics(store: Store, clock: Clock) -> None:
    """Until cancelled. A store that is away is waited for; what happened meanwhile is behind the cursor."""
    await take_turns(clock, EVERY_MS, "statistics", lambda: count(store, clock))


async def count(store: Store, clock: Clock) -> None:
    for _ in range(ROUNDS_MAX):
        # Counted by a reader: on SQLite the one writer has better things to do.
        batch = await store.read(hourly_stats.look, clock.now_ms())
        if batch.too_old:
            log.info("statistics_too_old", hours=batch.too_old)
        if not batch.is_news or not await store.write(hourly_stats.record, batch) or not batch.more:
            return
    log.info("statistics_are_behind", rounds=ROUNDS_MAX)
