"""The dispatcher: puts its loops together and runs them until it is cancelled."""

import asyncio
import os
import secrets
import socket
from typing import TYPE_CHECKING

from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.base.ready import Ready
from camserver.clients.analyzer import AnalyzerClient
from camserver.domain import health
from camserver.domain.jobs import Breaker
from camserver.domain.outcomes import Policies
from camserver.objects.local import Objects
from camserver.services.dispatcher.clips import follow_clips
from camserver.services.dispatcher.health import follow_health
from camserver.services.dispatcher.sweeping import Sweeper
from camserver.services.dispatcher.vocabulary import ActiveVocabulary
from camserver.services.dispatcher.working import Desk, claim_and_work, renew_locks
from camserver.store import Store, jobs
from camserver.store.clips import ClipTerms
from camserver.store.health import HealthTerms
from camserver.store.jobs import ClaimTerms

if TYPE_CHECKING:
    from camserver.config import Settings

log = get_logger(__name__)

STORE_PAUSE_SEC = 1.0


async def run(store: Store, objects: Objects, clock: Clock, settings: "Settings", ready: Ready) -> None:
    ready.expect("dispatcher")
    interval_ms = round(settings.looks.polling_interval_sec * 1000)
    analyzer = AnalyzerClient(
        settings.analyzer.url,
        analyze_timeout_sec=settings.analyzer.analyze_timeout_sec,
        schema_timeout_sec=settings.analyzer.schema_timeout_sec,
        health_timeout_sec=settings.analyzer.health_timeout_sec,
    )
    vocabulary = ActiveVocabulary(store, analyzer)
    desk = Desk(
        name=_own_name(),
        store=store,
        objects=objects,
        clock=clock,
        analyzer=analyzer,
        vocabulary=vocabulary,
        terms=ClaimTerms(settings.jobs, settings.events, interval_ms),
        policies=Policies(events=settings.events, incidents=settings.incidents, stationary=settings.stationary),
        breaker=Breaker.new(settings.jobs),
    )
    sweeper = Sweeper(store, objects, clock, settings.jobs, settings.events, interval_ms)
    try:
        await _first_vocabulary(vocabulary, clock)
        ready.set("dispatcher")
        # Before the first claim: an analyzer without it refuses every job.
        await vocabulary.offer()
        async with asyncio.TaskGroup() as group:
            group.create_task(vocabulary.follow(clock))
            group.create_task(claim_and_work(desk))
            group.create_task(renew_locks(desk))
            group.create_task(sweeper.run())
            group.create_task(follow_health(store, clock, _health_terms(settings, interval_ms)))
            group.create_task(follow_clips(store, clock, ClipTerms()))
    finally:
        ready.clear("dispatcher", "stopped")
        await _put_down(desk)
        await analyzer.close()


def _health_terms(settings: "Settings", interval_ms: int) -> HealthTerms:
    return HealthTerms(
        default_interval_ms=interval_ms,
        policies=health.Policies(settings.health, settings.looks),
        events=settings.events,
        incidents=settings.incidents,
        notify=settings.notify,
    )


def _own_name() -> str:
    """Names this dispatcher in its claims. In containers every process may be number 1 of an equally named host."""
    return f"{socket.gethostname()[:80]}:{os.getpid()}:{secrets.token_hex(4)}"


async def _first_vocabulary(vocabulary: ActiveVocabulary, clock: Clock) -> None:
    while vocabulary.current is None:
        try:
            await vocabulary.refresh()
        except Retry as error:
            log.warning("vocabulary_not_read", why=error.message)
            await clock.sleep(STORE_PAUSE_SEC)


async def _put_down(desk: Desk) -> None:
    """Lets the last batches through and gives back what is left, so that nobody waits for its lock to run out."""
    await desk.applier.close()
    await desk.failer.close()
    try:
        await desk.store.write(jobs.release, desk.name)
    except Retry as error:
        log.warning("claims_not_released", why=error.message)
