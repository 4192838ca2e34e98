"""Messages a second to a local webhook: claimed, signed, sent and written down, by the delivery loop as it is.

The webhook is a process of its own and answers at once. One receiver shows what its own bound costs; of several each
takes its share.
"""

import asyncio
import json
import time

import uuid_utils

from bench._child import child
from bench._databases import Database
from bench._report import QUICK, Row, more_is_better, say
from camserver.base.clock import StoreClock
from camserver.base.credentials import seal
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.clients.webhook import WebhookSender
from camserver.domain.deliveries import Claimed, DeliveriesPolicy, Ending, Outgoing
from camserver.domain.facts import DeliveryKind
from camserver.domain.messages import Language, Text
from camserver.domain.people import Principal, Role
from camserver.services.dispatcher.delivering import DeliveryDesk, run_deliveries
from camserver.services.dispatcher.receivers import ReceiverBook
from camserver.store import Store, deliveries, open_store, receivers
from camserver.store.deliveries import NewDelivery
from camserver.store.receivers import NewReceiver, secrets_of
from tests.rig.ports import free_port
from tests.store.scenery import furnish

MESSAGES = 1_500 if QUICK else 5_000
AIM_PER_SEC = 500
SEVERAL = 8
PATIENCE_SEC = 600
KEY = bytes(32)
POLICY = DeliveriesPolicy(allow_loopback=True)
TEXT = Text(Language.JA, "門に人がいます", ("人 1", "12:34:56 JST"), "https://cams.example/events/1")


async def measure_deliveries(base: Database) -> list[Row]:
    """The rows of this bench for one database."""
    one = await _per_sec(base, 1)
    several = await _per_sec(base, SEVERAL)
    return [
        more_is_better(
            f"deliveries to a local webhook, {base.name}, {name}", speed, AIM_PER_SEC, "wanted", "/s", aim=1.0
        )
        for name, speed in (("1 receiver", one), (f"{SEVERAL} receivers", several))
    ]


async def _per_sec(base: Database, count: int) -> float:
    port = free_port()
    store = await open_store(base.url(f"deliveries_{count}"))
    try:
        with child("_dispatch_webhook", port=port) as hook:
            hook.hear()
            desk, http = await _desk(store, count, f"http://127.0.0.1:{port}/hook")
            started = time.perf_counter()
            task = asyncio.create_task(run_deliveries(desk))
            while desk.counters.done < MESSAGES and time.perf_counter() - started < PATIENCE_SEC:
                await clock_tick()
            took = time.perf_counter() - started
            task.cancel()
            await asyncio.wait([task])
            await http.close()
            hook.tell()
            taken = int(hook.hear())
        done = (await store.read(deliveries.count_by_status)).get("done", 0)
        if not done == taken == MESSAGES:
            raise RuntimeError(f"{MESSAGES} messages: {done} are done, {taken} arrived")
    finally:
        await store.close()
    say(f"  {base.name}, {count} receivers: {MESSAGES / took:,.0f} deliveries/s")
    return MESSAGES / took


async def clock_tick() -> None:
    await asyncio.sleep(0.01)


async def _desk(store: Store, count: int, url: str) -> tuple[DeliveryDesk, OutgoingHttp]:
    clock = StoreClock()
    scene = await furnish(store)
    scoped = store.as_(Principal(scene.tenant_id, None, Role.SYSTEM_ADMIN))
    ids: list[int] = []
    for number in range(count):
        uuid = str(uuid_utils.uuid7())
        plain = json.dumps({"url": url, "signing_key": "a key of some length"}).encode()
        sealed = seal(KEY, scene.tenant_id, secrets_of(uuid), plain)
        new = NewReceiver(uuid, f"hook {number}", "webhook", "{}", sealed, "ja", None)
        ids.append((await scoped.write(receivers.add, new, "", clock.now_ms())).receiver_id)
    for first in range(0, MESSAGES, 1_000):
        new_ones = tuple(
            NewDelivery(
                str(uuid_utils.uuid7()),
                scene.tenant_id,
                DeliveryKind.MESSAGE,
                "continues",
                {"event": "human", "severity": 2},
                receiver_id=ids[number % count],
            )
            for number in range(first, min(first + 1_000, MESSAGES))
        )
        await store.write(deliveries.add, new_ones, clock.now_ms())
    http = OutgoingHttp(OutgoingPolicy(allow_loopback=True))
    book = ReceiverBook(store, clock, KEY)
    sender = WebhookSender(http, clock)

    async def message(claimed: Claimed) -> Ending:
        receiver = await book.get(claimed.receiver_id or 0)
        assert receiver is not None
        return await sender.send(receiver, Outgoing(claimed.delivery_uuid, TEXT, claimed.request))

    return DeliveryDesk("bench", store, clock, POLICY, book, {DeliveryKind.MESSAGE: message}), http
