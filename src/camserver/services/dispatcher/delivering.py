"""One delivery after another: claim, hand to the handler of its kind, write how it ended.

Deliveries wait in lanes, one for each receiver and one for each kind that has no receiver yet. A lane has a bound of
its own and a circuit breaker, so a receiver that is slow or away holds up nobody else. What was sent is settled in
batches beside the sending. A store that is away is waited for; the fence tells whether the wait was too long.
"""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Sequence, Set

import uuid_utils

from camserver.base import figures, traces
from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.errors import Retry
from camserver.base.log import get_logger, keep_ids
from camserver.base.secrets import scrub
from camserver.base.traces import Step
from camserver.domain.deliveries import (
    Claimed,
    DeliveryError,
    Done,
    Ending,
    FanOut,
    Suppressed,
    Trouble,
    after_trouble,
    breaker_after,
)
from camserver.domain.facts import DeliveryKind
from camserver.services.dispatcher.delivery_desk import (
    AHEAD,
    HANDLER_MAX_SEC,
    IDLE_SEC,
    KIND_IN_FLIGHT,
    SEVERAL,
    DeliveryDesk,
    Lane,
    LaneKey,
)
from camserver.services.dispatcher.delivery_locks import renew_delivery_locks, sweep_deliveries
from camserver.services.dispatcher.turns import STORE_PAUSE_SEC, patiently, until_set
from camserver.store import deliveries
from camserver.store.deliveries import Wanted
from camserver.store.delivery_endings import Failed, Settled

log = get_logger(__name__)

__all__ = ["DeliveryDesk", "claim_and_deliver", "run_deliveries"]


async def claim_and_deliver(desk: DeliveryDesk) -> None:
    """Claims while there is room, and starts what may be started, each delivery in a task of its own."""
    async with asyncio.TaskGroup() as group:
        try:
            while True:
                await _claim_and_start(desk, group)
        finally:
            # Whoever still ends an attempt now must not begin another one.
            desk.is_stopping = True


async def _claim_and_start(desk: DeliveryDesk, group: asyncio.TaskGroup) -> None:
    desk.hungry.clear()
    now_ms = desk.clock.now_ms()
    asked = {key for key, lane in desk.lanes.items() if lane.room_to_claim(now_ms) >= SEVERAL}
    try:
        claimed = await _claim(desk)
    except Retry as error:
        log.warning("delivery_claim_failed", why=error.message)
        go_on_unless_cancelled()
        await desk.clock.sleep(STORE_PAUSE_SEC)
        return
    _put_in_lanes(desk, claimed, asked)
    # The driver forgets a cancellation that comes while it connects. What was claimed is given back at the end.
    go_on_unless_cancelled()
    _start(desk, group)
    if len(claimed) < AHEAD // 2:
        await until_set(desk.hungry, desk.clock, IDLE_SEC)


def _put_in_lanes(desk: DeliveryDesk, claimed: Sequence[Claimed], asked: Set[LaneKey]) -> None:
    """`asked` are the lanes for which a claim that brought nothing says that there is no more."""
    got = Counter(desk.lane(one).key for one in claimed)
    for one in claimed:
        desk.lane(one).waiting.append(one)
    for lane in desk.lanes.values():
        if lane.key in asked or got[lane.key] >= SEVERAL:
            lane.has_more = got[lane.key] >= SEVERAL


async def _claim(desk: DeliveryDesk) -> tuple[Claimed, ...]:
    now_ms = desk.clock.now_ms()
    for key in [key for key, lane in desk.lanes.items() if lane.is_fresh()]:
        del desk.lanes[key]
    held = len(desk.at_work) + sum(len(lane.waiting) for lane in desk.lanes.values())
    room = desk.held_max - held
    if room <= 0:
        return ()
    wanted = Wanted(
        total=room,
        kinds=tuple((kind, _kind_room(desk, kind, now_ms)) for kind in KIND_IN_FLIGHT if kind in desk.handlers),
        each_receiver=AHEAD,
        receivers=tuple(
            (lane.key, lane.room_to_claim(now_ms)) for lane in desk.lanes.values() if isinstance(lane.key, int)
        ),
        after_receiver=desk.after_receiver,
    )
    until = now_ms + desk.policy.lock_sec * 1000
    claim = await desk.store.write(deliveries.claim, desk.name, str(uuid_utils.uuid7()), wanted, until)
    desk.after_receiver = claim.after_receiver
    desk.counters.claimed += len(claim.deliveries)
    return claim.deliveries


def _kind_room(desk: DeliveryDesk, kind: DeliveryKind, now_ms: int) -> int:
    lane = desk.lanes.get(kind)
    return AHEAD if lane is None else lane.room_to_claim(now_ms)


def _start(desk: DeliveryDesk, group: asyncio.TaskGroup) -> None:
    """Starts what is waiting, one of each lane in turn, as far as the bounds let it."""
    if desk.is_stopping:
        return
    now_ms = desk.clock.now_ms()
    ready = deque(lane for lane in desk.lanes.values() if lane.waiting and lane.room_to_start(now_ms) > 0)
    while ready and desk.in_flight < desk.policy.in_flight:
        lane = ready.popleft()
        claimed = lane.waiting.popleft()
        lane.breaker = lane.breaker.claimed(now_ms, 1)
        lane.in_flight += 1
        desk.in_flight += 1
        desk.at_work[claimed.delivery_id, claimed.token] = group.create_task(_deliver(desk, lane, claimed, group))
        if lane.waiting and lane.room_to_start(now_ms) > 0:
            ready.append(lane)


async def _deliver(desk: DeliveryDesk, lane: Lane, claimed: Claimed, group: asyncio.TaskGroup) -> None:
    keep_ids(delivery_id=claimed.delivery_id, tenant_id=claimed.tenant_id)
    if claimed.frame_uuid is not None:
        keep_ids(trace_id=traces.trace_id_of(claimed.frame_uuid))
    started_ns = traces.now_ns()
    try:
        try:
            ending = await _attempt(desk, lane, claimed)
            _trace(claimed, ending, started_ns)
            go_on_unless_cancelled()
        finally:
            # Its place is free while the end is written down.
            lane.in_flight -= 1
            desk.in_flight -= 1
        await _hand_on(desk, lane, group)
        await _settled(desk, claimed, ending)
    except Exception:
        # Not even writing it down worked. Its lock runs out, and the sweep brings it back.
        log.exception("delivery_left")
    finally:
        del desk.at_work[claimed.delivery_id, claimed.token]
        desk.settling.discard((claimed.delivery_id, claimed.token))


def _trace(claimed: Claimed, ending: Ending | Failed, started_ns: int) -> None:
    traces.add(
        Step.DELIVER,
        claimed.frame_uuid,
        started_ns,
        failed=type(ending.follows).__name__.lower() if isinstance(ending, Failed) else None,
        ids={
            "ending": type(ending).__name__.lower(),
            "tenant_id": claimed.tenant_id,
            "site_id": claimed.site_id,
            "camera_key": claimed.camera_key,
            "delivery_id": claimed.delivery_id,
            "receiver_id": claimed.receiver_id,
            "kind": claimed.kind.value,
            "attempt": claimed.attempt,
        },
    )


async def _hand_on(desk: DeliveryDesk, lane: Lane, group: asyncio.TaskGroup) -> None:
    """Starts the next ones, gives back what a lane that is closed now holds, and asks for more when it runs low."""
    now_ms = desk.clock.now_ms()
    if lane.waiting and now_ms < lane.breaker.resume_at:
        waiting = tuple((one.delivery_id, one.token) for one in lane.waiting)
        lane.waiting.clear()
        try:
            await desk.store.write(deliveries.give_back, waiting)
        except Retry as error:
            log.warning("deliveries_not_given_back", why=error.message)
    _start(desk, group)
    if lane.has_more and len(lane.waiting) <= AHEAD // 2:
        desk.hungry.set()


async def _attempt(desk: DeliveryDesk, lane: Lane, claimed: Claimed) -> Ending | Failed:
    """Does it, whatever happens. What goes wrong says something about the receiver, unless the fault is our own."""
    try:
        async with asyncio.timeout(HANDLER_MAX_SEC):
            ending = await _handled(desk, claimed)
    except DeliveryError as error:
        lane.breaker = breaker_after(lane.breaker, error, desk.clock.now_ms(), random.random())
        if claimed.receiver_id is not None:
            desk.book.note_error(claimed.receiver_id, scrub(error.message))
        return _failed(desk, claimed, error)
    except Retry as error:
        return _failed(desk, claimed, DeliveryError(Trouble.RETRY, error.message))
    except TimeoutError:
        return _failed(desk, claimed, DeliveryError(Trouble.FAILED, f"not done within {HANDLER_MAX_SEC} s"))
    except Exception as error:
        # A fault of our own with this one. The attempt counts, so that it can't go round for ever.
        log.exception("delivery_failed")
        return _failed(desk, claimed, DeliveryError(Trouble.FAILED, f"{type(error).__name__}: {error}"))
    lane.breaker = lane.breaker.succeeded()
    if claimed.receiver_id is not None and isinstance(ending, Done):
        desk.book.note_ok(claimed.receiver_id)
    return ending


async def _handled(desk: DeliveryDesk, claimed: Claimed) -> Ending:
    handler = desk.handlers.get(claimed.kind)
    if handler is None:
        raise DeliveryError(Trouble.REFUSED, f"nothing here does a {claimed.kind.value}")
    if claimed.receiver_id is not None:
        receiver = await desk.book.receiver_of(claimed)
        if receiver is None:
            raise DeliveryError(Trouble.REFUSED, "the receiver was removed")
        if not receiver.enabled:
            return Suppressed("the receiver is switched off")
    return await handler(claimed)


def _failed(desk: DeliveryDesk, claimed: Claimed, error: DeliveryError) -> Failed:
    follows = after_trouble(
        error.kind,
        attempt=claimed.attempt,
        created_at=claimed.created_at,
        now_ms=desk.clock.now_ms(),
        policy=desk.policy,
        jitter=random.random(),
        retry_after_sec=error.retry_after_sec,
    )
    desk.counters.failed += 1
    figures.deliveries.labels(claimed.kind.value, "failed").inc()
    log.info(
        "delivery_attempt_failed",
        trouble=error.kind.value,
        attempt=claimed.attempt,
        follows=str(follows),
        why=error.message,
    )
    # Receivers may say their secrets back to us.
    return Failed(follows, scrub(error.message), error.progress, error.along)


async def _settled(desk: DeliveryDesk, claimed: Claimed, ending: Ending | Failed) -> None:
    settled = Settled(claimed.delivery_id, claimed.token, ending)
    desk.settling.add((claimed.delivery_id, claimed.token))
    is_kept = await patiently(desk.clock, desk.settler.submit, settled)
    if not is_kept:
        desk.counters.fences_lost += 1
        figures.fences_lost.labels("delivery").inc()
        log.warning("delivery_fence_lost", attempt=claimed.attempt)
    elif isinstance(ending, Suppressed):
        desk.counters.suppressed += 1
        figures.deliveries.labels(claimed.kind.value, "suppressed").inc()
    elif isinstance(ending, Done | FanOut):
        desk.counters.done += 1
        figures.deliveries.labels(claimed.kind.value, "done").inc()
        if isinstance(ending, FanOut):
            desk.hungry.set()


async def put_down(desk: DeliveryDesk) -> None:
    """Lets the last batch through and gives back what is left, so that nobody waits for its lock to run out."""
    await desk.settler.close()
    try:
        await desk.store.write(deliveries.release, desk.name)
        await desk.book.write_reports()
    except Retry as error:
        log.warning("deliveries_not_released", why=error.message)


async def run_deliveries(desk: DeliveryDesk) -> None:
    """All loops of the deliveries, until cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(claim_and_deliver(desk))
            group.create_task(renew_delivery_locks(desk))
            group.create_task(sweep_deliveries(desk))
            group.create_task(desk.book.follow())
            group.create_task(desk.book.follow_reports())
    finally:
        await put_down(desk)
