"""Sees to the clips of events: asks for those of new ones every second, and takes over what workers brought.

Which, and what becomes of them, is in store/clips.py. Any number of dispatchers may do it.
"""

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.services.dispatcher.turns import take_turns
from camserver.store import Store, clips
from camserver.store.clips import ClipTerms

log = get_logger(__name__)

# Often, because the worker's memory of what it has seen is short.
EVERY_MS = 1_000
# Transactions a turn.
ROUNDS_MAX = 20


async def follow_clips(store: Store, clock: Clock, terms: ClipTerms) -> None:
    """Until cancelled. A store that is away is waited for; events that began long before are not asked about."""
    await take_turns(clock, EVERY_MS, "clips", lambda: _turn(store, clock, terms))


async def _turn(store: Store, clock: Clock, terms: ClipTerms) -> None:
    asked = await store.write(clips.ask, clock.now_ms(), terms)
    if asked:
        log.info("clips_asked", count=asked)
    for _ in range(ROUNDS_MAX):
        settled = await store.write(clips.settle, clock.now_ms(), terms.archives)
        if settled.ready or settled.none:
            log.info("clips_settled", ready=settled.ready, none=settled.none)
        if not settled.more:
            return
    log.warning("clips_are_behind", rounds=ROUNDS_MAX)
