"""What the delivery loop works with: its bounds, a lane for each receiver, and the desk that holds them."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from camserver.base.batches import Batcher
from camserver.base.clock import Clock
from camserver.domain.deliveries import Claimed, DeliveriesPolicy, Handler, most_in_flight, new_breaker
from camserver.domain.facts import DeliveryKind
from camserver.domain.jobs import Breaker, BreakerState
from camserver.services.dispatcher.receivers import ReceiverBook
from camserver.store import Store, delivery_endings
from camserver.store.delivery_endings import Settled

# How often empty queues are looked at.
IDLE_SEC = 0.3
# Claimed ahead in a lane, so that it need not wait for the store between two deliveries.
AHEAD = 64
# A claim that brings this many of a lane suggests that there are more.
SEVERAL = 4
SETTLED_AT_ONCE = 64
# A handler that hangs gives its place back after this. Uploads of large files take their time.
HANDLER_MAX_SEC = 900
# Deliveries under way at once of kinds that have no receiver.
KIND_IN_FLIGHT: Mapping[DeliveryKind, int] = {
    DeliveryKind.NOTIFY: 32,
    DeliveryKind.ARCHIVE: 16,
    DeliveryKind.SUMMARY: 2,
    DeliveryKind.LLM_REVIEW: 4,
}

LaneKey = int | DeliveryKind  # a receiver, or a kind without one


@dataclass(slots=True)
class Lane:
    key: LaneKey
    most: int  # under way at once
    breaker: Breaker
    waiting: deque[Claimed] = field(default_factory=deque)
    in_flight: int = 0
    has_more: bool = False

    def room_to_start(self, now_ms: int) -> int:
        return min(self.most - self.in_flight, self.breaker.allowance(now_ms, self.in_flight))

    def room_to_claim(self, now_ms: int) -> int:
        """One that is tried again after an outage gets no more than its trial."""
        if self.breaker.state is not BreakerState.CLOSED:
            return max(0, self.breaker.allowance(now_ms) - len(self.waiting) - self.in_flight)
        return max(0, AHEAD - len(self.waiting)) if self.breaker.allowance(now_ms) else 0

    def is_fresh(self) -> bool:
        """Nothing would be forgotten with it."""
        breaker = self.breaker
        idle = not self.waiting and not self.in_flight
        return idle and breaker.state is BreakerState.CLOSED and not breaker.failures and breaker.limit >= self.most


@dataclass(slots=True)
class Tally:
    """What this dispatcher did since it started."""

    claimed: int = 0
    done: int = 0
    suppressed: int = 0
    failed: int = 0
    fences_lost: int = 0


@dataclass(slots=True)
class DeliveryDesk:
    """Everything a delivery needs on its way out."""

    name: str
    store: Store
    clock: Clock
    policy: DeliveriesPolicy
    book: ReceiverBook
    handlers: Mapping[DeliveryKind, Handler]
    lanes: dict[LaneKey, Lane] = field(default_factory=dict)
    # By delivery and fence: one whose claim was lost may be claimed again before its first task has noticed.
    at_work: dict[tuple[int, str], asyncio.Task[None]] = field(default_factory=dict)
    # Of these the end is being written, which lets the claim go: that it is gone is no news about them.
    settling: set[tuple[int, str]] = field(default_factory=set)
    in_flight: int = 0
    after_receiver: int = 0
    hungry: asyncio.Event = field(default_factory=asyncio.Event)
    counters: Tally = field(default_factory=Tally)
    settler: Batcher[Settled, bool] = field(init=False)
    locks_stand_until_boot_ms: int = 0
    is_stopping: bool = False

    def __post_init__(self) -> None:
        self.settler = Batcher(self._settle, size_max=SETTLED_AT_ONCE, waiting_max=100 * SETTLED_AT_ONCE)

    async def _settle(self, settled: tuple[Settled, ...]) -> Sequence[bool]:
        return await self.store.write(delivery_endings.settle, settled, self.clock.now_ms())

    @property
    def held_max(self) -> int:
        """Claimed and not settled, at most."""
        return 4 * self.policy.in_flight

    def lane(self, claimed: Claimed) -> Lane:
        key: LaneKey = claimed.kind if claimed.receiver_id is None else claimed.receiver_id
        found = self.lanes.get(key)
        if found is None:
            most = self._most(key)
            found = self.lanes[key] = Lane(key, most, new_breaker(self.policy, most))
        return found

    def _most(self, key: LaneKey) -> int:
        if isinstance(key, DeliveryKind):
            return KIND_IN_FLIGHT.get(key, 4)
        return most_in_flight(self.book.kind_of(key), self.policy)
