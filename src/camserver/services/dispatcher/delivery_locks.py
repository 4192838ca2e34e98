"""Keeps the claims of deliveries alive, and takes back those of dispatchers that died."""

import random
from collections import deque

from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.services.dispatcher.delivery_desk import DeliveryDesk
from camserver.services.dispatcher.turns import STORE_PAUSE_SEC, take_turns
from camserver.store import deliveries, delivery_endings

log = get_logger(__name__)

SWEEP_EVERY_MS = 1_000
# How much longer than a renewal takes locks stand after the store was away.
RENEWAL_MARGIN_SEC = 5


async def renew_delivery_locks(desk: DeliveryDesk) -> None:
    """Keeps the claims of what is waiting or under way; one whose claim is gone is dropped at once."""
    pause_sec: float = desk.policy.renew_every_sec
    while True:
        await desk.clock.sleep(pause_sec)
        try:
            await _renew(desk)
            pause_sec = desk.policy.renew_every_sec
        except Retry as error:
            log.warning("delivery_renew_failed", why=error.message)
            go_on_unless_cancelled()
            pause_sec = STORE_PAUSE_SEC


async def _renew(desk: DeliveryDesk) -> None:
    at_work = dict(desk.at_work)
    waiting = {one.delivery_id for lane in desk.lanes.values() for one in lane.waiting}
    mine = waiting | {delivery_id for delivery_id, _ in at_work}
    if not mine:
        return
    until = desk.clock.now_ms() + desk.policy.lock_sec * 1000
    held = await desk.store.write(deliveries.renew, desk.name, tuple(sorted(mine)), until)
    for (delivery_id, token), task in at_work.items():
        if delivery_id not in held and (delivery_id, token) not in desk.settling:
            task.cancel()
    for lane in desk.lanes.values():
        kept = [one for one in lane.waiting if one.delivery_id in held or one.delivery_id not in waiting]
        lane.waiting = deque(kept)


async def sweep_deliveries(desk: DeliveryDesk) -> None:
    """Queues what was put off, and takes back what dead dispatchers held, until cancelled."""
    await take_turns(desk.clock, SWEEP_EVERY_MS, "delivery_sweep", lambda: _sweep(desk))


async def _sweep(desk: DeliveryDesk) -> None:
    try:
        now_ms = desk.clock.now_ms()
        if await desk.store.write(deliveries.promote_delayed, now_ms):
            desk.hungry.set()
        if desk.clock.boot_ms() >= desk.locks_stand_until_boot_ms:
            returned = await desk.store.write(delivery_endings.return_expired, now_ms, desk.policy, random.random())
            if returned:
                log.info("delivery_locks_returned", count=returned)
    except Retry:
        # While the store was away nobody could renew a lock, so nobody is thought dead before they had time to.
        rest_ms = (desk.policy.renew_every_sec + RENEWAL_MARGIN_SEC) * 1000
        desk.locks_stand_until_boot_ms = desk.clock.boot_ms() + rest_ms
        raise
