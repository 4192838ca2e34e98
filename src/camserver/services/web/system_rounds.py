"""Tells open pages that the status of the installation is another one, so that they need not ask for it all the time.

Signs are what people should see a change of: whether live view is healthy, its warnings, budget and viewers, the
health of cameras, and whether analysis stalls. Percentages and counts of jobs are none. They are read from the store,
so every web process tells the same; once for all who reach the same, and not at all while nobody follows the feed.
"""

from dataclasses import dataclass

from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.domain.admission import AdmissionPolicy
from camserver.services.web.feeds import Feeds
from camserver.services.web.live_standing import LiveStanding, live_standing
from camserver.store import Store, counts, streamers
from camserver.store.counts import Signs

log = get_logger(__name__)

EVERY_MS = 3_000
# Where many people reach different things, reading takes no more than this part of the time.
SHARE_MAX = 0.1


@dataclass(frozen=True, slots=True)
class SystemSigns:
    healthy: bool
    load_warnings: tuple[str, ...]
    modal_budget: int
    modal_budget_remaining: int
    within_reach: Signs


async def run(store: Store, clock: Clock, policy: AdmissionPolicy, feeds: Feeds) -> None:
    while True:
        began_boot_ms = clock.boot_ms()
        try:
            await tell(store, clock, policy, feeds)
        except Retry as error:
            log.warning("the status is not told of; tried again later", cause=error.message)
        except Exception:
            log.exception("telling of the status broke; tried again later")
        go_on_unless_cancelled()
        await clock.sleep(pause_ms(clock.boot_ms() - began_boot_ms) / 1000)


def pause_ms(spent_ms: int) -> int:
    return max(EVERY_MS, round(spent_ms / SHARE_MAX))


async def tell(store: Store, clock: Clock, policy: AdmissionPolicy, feeds: Feeds) -> None:
    """One round: reads the signs of each reach that somebody follows the feed with."""
    audiences = feeds.audiences()
    if not audiences:
        return
    now_ms = clock.now_ms()
    live = live_standing(await store.read(streamers.states, now_ms), policy)
    for principal, readers in audiences:
        signs = _signs(live, await store.as_(principal).read(counts.signs, now_ms))
        for reader in readers:
            # Whoever's grants changed since is told with the next round.
            if reader.principal.reach == principal.reach:
                reader.tell_system(signs, clock.boot_ms())


def _signs(live: LiveStanding, within_reach: Signs) -> SystemSigns:
    return SystemSigns(live.healthy, live.load_warnings, live.modal_budget, live.modal_budget_remaining, within_reach)
