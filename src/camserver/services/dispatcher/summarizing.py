"""Makes the daily summary of each site at its time, once, and hands it to those who want it.

What a summary says is in domain/summaries.py. One dispatcher at a time looks for due ones (a duty); the row of the
summary keeps it single whatever happens. After a downtime the newest one is made late and says so; older ones are
not made.
"""

import json
from typing import TYPE_CHECKING

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.base.zones import zone_of
from camserver.domain.deliveries import Child, Claimed, Ending, FanOut, Suppressed
from camserver.domain.facts import DeliveryKind
from camserver.domain.summaries import SummaryPolicy, body, last_period
from camserver.services.dispatcher.duty import on_duty
from camserver.services.dispatcher.turns import take_turns
from camserver.store import Store, summaries
from camserver.store.summaries import Site

if TYPE_CHECKING:
    from camserver.domain.deliveries import Handler

log = get_logger(__name__)

EVERY_MS = 60_000
DUTY = "summaries"
# Looks of the last minute are analyzed, and their events written, by then.
SETTLE_MS = 120_000


async def follow_summaries(store: Store, clock: Clock, policy: SummaryPolicy, owner: str) -> None:
    """Until cancelled. A store that is away is waited for."""
    await take_turns(clock, EVERY_MS, "summaries", lambda: summarize(store, clock, policy, owner))


async def summarize(store: Store, clock: Clock, policy: SummaryPolicy, owner: str) -> None:
    """Makes what is due now."""
    if not policy.enabled:
        return
    async with on_duty(store, clock, DUTY, owner) as is_ours:
        if is_ours:
            for site in await store.read(summaries.sites):
                await _make(store, clock, policy, site)


async def _make(store: Store, clock: Clock, policy: SummaryPolicy, site: Site) -> None:
    zone = zone_of(site.timezone)
    now_ms = clock.now_ms()
    period = last_period(now_ms - SETTLE_MS, policy.at, zone)
    if (site.newest_day is not None and site.newest_day >= period.day) or site.created_at >= period.to_ms:
        return
    if site.removed_at is not None and site.removed_at <= period.from_ms:
        return
    facts = await store.read(summaries.facts, site, period, now_ms)
    told = json.dumps(body(facts, zone), ensure_ascii=False)
    if await store.write(summaries.keep, site, period.day, told, now_ms):
        log.info("summary_made", site_id=site.site_id, day=period.day, late=facts.is_late)


def summary_handler(store: Store) -> "Handler":
    """The handler of `summary`: a message for each receiver that wants summaries, its text ready in all languages."""

    async def handle(claimed: Claimed) -> Ending:
        kept = None
        day = str(claimed.request.get("day", ""))
        if claimed.site_id is not None:
            kept = await store.read(summaries.find, claimed.tenant_id, claimed.site_id, day)
        if kept is None:
            return Suppressed("the summary is gone")
        request = {"texts": kept["texts"], "body": {"kind": "summary", "day": day, "facts": kept["facts"]}}
        receivers = await store.read(summaries.told_to, claimed.tenant_id)
        return FanOut(
            tuple(Child(DeliveryKind.MESSAGE, receiver_id, request) for receiver_id in receivers),
            {"receivers": len(receivers)},
        )

    return handle
