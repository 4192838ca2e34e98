"""The dispatcher: puts its loops together and runs them until it is cancelled."""

import asyncio
import os
import secrets
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from camserver.base import figures
from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.base.ready import Ready
from camserver.domain import health
from camserver.domain.jobs import Breaker, ErrorKind
from camserver.domain.outcomes import Policies
from camserver.objects.local import Objects
from camserver.services.dispatcher.analyzers import open_pool
from camserver.services.dispatcher.clips import follow_clips
from camserver.services.dispatcher.health import follow_health
from camserver.services.dispatcher.outbox import Outbox, open_outbox
from camserver.services.dispatcher.pictures import Pictures
from camserver.services.dispatcher.sweeping import Sweeper
from camserver.services.dispatcher.turns import patiently
from camserver.services.dispatcher.vocabulary import ActiveVocabulary
from camserver.services.dispatcher.working import AskingTerms, Desk, claim_and_work, renew_locks
from camserver.store import Store, jobs
from camserver.store.clips import ClipTerms
from camserver.store.health import HealthTerms
from camserver.store.jobs import ClaimTerms
from camserver.store.questions import PREVIOUS_MAX_AGE_MS

if TYPE_CHECKING:
    from camserver.config import Settings

log = get_logger(__name__)


async def run(store: Store, objects: Objects, clock: Clock, settings: "Settings", ready: Ready) -> None:
    ready.expect("dispatcher")
    figures.begin_at_zero(figures.job_failures, *[kind.value for kind in ErrorKind])
    interval_ms = round(settings.looks.polling_interval_sec * 1000)
    name = _own_name()
    pool = open_pool(name, store, clock, settings.analyzer, settings.jobs)
    desk = Desk(
        name=name,
        store=store,
        clock=clock,
        pool=pool,
        pictures=Pictures(objects, clock, Breaker.new(settings.jobs)),
        terms=_claim_terms(settings, interval_ms),
        policies=_policies(settings),
        asking=_asking_terms(settings),
    )
    outbox = open_outbox(name, store, objects, clock, settings, lambda: pool.vocabulary.current)
    outbox.book.on_change = lambda: _take_in(desk, outbox)
    sweeper = Sweeper(store, objects, clock, settings.jobs, settings.events, interval_ms)
    try:
        await _first_vocabulary(pool.vocabulary, clock)
        await outbox.get_ready()
        ready.set("dispatcher")
        # Before the first claim: an analyzer without it refuses every job.
        await pool.offer_vocabulary()
        async with asyncio.TaskGroup() as group:
            group.create_task(pool.follow_vocabulary())
            group.create_task(pool.watch())
            group.create_task(claim_and_work(desk))
            group.create_task(renew_locks(desk))
            group.create_task(sweeper.run())
            group.create_task(follow_health(store, clock, lambda: _health_terms(settings, interval_ms, outbox)))
            group.create_task(follow_clips(store, clock, ClipTerms(archives=settings.archive.clips)))
            group.create_task(outbox.run())
    finally:
        ready.clear("dispatcher", "stopped")
        await _put_down(desk)
        await outbox.close()
        await pool.close()


def _take_in(desk: Desk, outbox: Outbox) -> None:
    """Outcomes make rows only for what somebody receives."""
    desk.policies = replace(desk.policies, deliveries=outbox.book.sinks)


def _policies(settings: "Settings") -> Policies:
    return Policies(
        events=settings.events,
        incidents=settings.incidents,
        stationary=settings.stationary,
        notify=settings.notify,
        llm_review=settings.llm_review,
    )


def _asking_terms(settings: "Settings") -> AskingTerms:
    chosen = settings.analyzer
    return AskingTerms(chosen.night_from_hour, chosen.night_until_hour)


def _claim_terms(settings: "Settings", interval_ms: int) -> ClaimTerms:
    max_age_ms = PREVIOUS_MAX_AGE_MS if settings.analyzer.send_previous else None
    return ClaimTerms(settings.jobs, settings.events, interval_ms, max_age_ms)


def _health_terms(settings: "Settings", interval_ms: int, outbox: Outbox) -> HealthTerms:
    return HealthTerms(
        default_interval_ms=interval_ms,
        policies=health.Policies(settings.health, settings.looks),
        events=settings.events,
        incidents=settings.incidents,
        notify=settings.notify,
        deliveries=outbox.book.sinks,
    )


def _own_name() -> str:
    """Names this dispatcher in its claims. In containers every process may be number 1 of an equally named host."""
    return f"{socket.gethostname()[:80]}:{os.getpid()}:{secrets.token_hex(4)}"


async def _first_vocabulary(vocabulary: ActiveVocabulary, clock: Clock) -> None:
    while vocabulary.current is None:
        await patiently(clock, vocabulary.refresh)


async def _put_down(desk: Desk) -> None:
    """Lets the last batches through and gives back what is left, so that nobody waits for its lock to run out."""
    await desk.applier.close()
    await desk.failer.close()
    await desk.rereader.close()
    try:
        await desk.store.write(jobs.release, desk.name)
    except Retry as error:
        log.warning("claims_not_released", why=error.message)
