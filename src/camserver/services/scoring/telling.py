"""Tells how a run gets on while it is worked on: how long, how many questions at once, how slow the sheet is."""

import asyncio
from contextlib import suppress

from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.services.scoring.pipeline import ScoringPipeline
from camserver.store import Store, scoring_runs

TELL_EVERY_SEC = 2.0


async def tell(store: Store, clock: Clock, run_id: int, pipeline: ScoringPipeline) -> None:
    """Until cancelled; the last time then."""
    told_ms = clock.boot_ms()
    try:
        while True:
            await clock.sleep(TELL_EVERY_SEC)
            told_ms = await _told(store, clock, run_id, pipeline, told_ms)
    except asyncio.CancelledError:
        await _told(store, clock, run_id, pipeline, told_ms)
        raise


async def _told(store: Store, clock: Clock, run_id: int, pipeline: ScoringPipeline, since_ms: int) -> int:
    now_ms, standing = clock.boot_ms(), pipeline.standing
    with suppress(Retry):
        await store.write(
            scoring_runs.tell,
            run_id,
            now_ms - since_ms,
            round(standing.limit, 2),
            round(1000 * standing.write_delay_sec),
        )
        return now_ms
    return since_ms
