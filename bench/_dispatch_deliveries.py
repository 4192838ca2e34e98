"""Messages a second to a local webhook, the way that the product sends them.

Notices of real events are fanned out to the receivers; each message is told what its event is now, held against
rules, snoozes, caps and cooldowns, reserved, worded, signed, sent and written down. The webhook is a process of its
own and answers at once. One receiver shows what its own bound costs; of several each takes its share. Messages carry
no picture.
"""

import asyncio
import json
import time
from dataclasses import replace

import uuid_utils

from bench import _queue_scene as queue_scene
from bench._child import child
from bench._databases import Database
from bench._report import QUICK, Row, more_is_better, say
from camserver.base.clock import StoreClock
from camserver.base.credentials import seal
from camserver.config import load
from camserver.config.secret_files import make_secrets
from camserver.domain.facts import DeliveryKind
from camserver.domain.notices import SEVERITY_ROSE
from camserver.domain.outcomes import Policies
from camserver.domain.people import Principal, Role
from camserver.objects.local import LocalObjects
from camserver.services.dispatcher.delivering import run_deliveries
from camserver.services.dispatcher.outbox import Outbox, open_outbox
from camserver.store import Store, Tx, deliveries, open_store, receivers
from camserver.store.deliveries import NewDelivery
from camserver.store.receivers import NewReceiver, secrets_of
from tests.rig.polling import until
from tests.rig.ports import free_port
from tests.store.scenery import Scene, furnish

MESSAGES = 1_200 if QUICK else 5_000
CAMERAS = 200
AIM_PER_SEC = 500
SEVERAL = 8
PATIENCE_SEC = 600


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
    store = await open_store(base.url(f"deliveries_{count}"), pool_size=20)
    try:
        with child("_dispatch_webhook", port=port) as hook:
            hook.hear()
            outbox = await _outbox(store, base, count, f"http://127.0.0.1:{port}/hook")
            wanted = MESSAGES + MESSAGES // count
            await outbox.get_ready()
            started = time.perf_counter()
            task = asyncio.create_task(run_deliveries(outbox.desk))
            counters = outbox.desk.counters
            await until(lambda: counters.done >= wanted, f"{wanted} deliveries", PATIENCE_SEC)
            took = time.perf_counter() - started
            task.cancel()
            await asyncio.wait([task])
            await outbox.close()
            hook.tell()
            taken = int(hook.hear())
        done = (await store.read(deliveries.count_by_status)).get("done", 0)
        if done != wanted or taken != MESSAGES:
            raise RuntimeError(f"{MESSAGES} messages: {done} of {wanted} deliveries are done, {taken} arrived")
    finally:
        await store.close()
    say(f"  {base.name}, {count} receivers: {MESSAGES / took:,.0f} deliveries/s")
    return MESSAGES / took


async def _outbox(store: Store, base: Database, count: int, url: str) -> Outbox:
    """The product's own, with its receivers made and its notices queued."""
    clock = StoreClock()
    folder = base.folder / f"deliveries_{count}"
    folder.mkdir()
    settings = load(None, {}, folder)
    settings = replace(settings, deliveries=replace(settings.deliveries, allow_loopback=True))
    scene = await furnish(store, CAMERAS)
    await queue_scene.open_events(store, scene, Policies())
    await _add_receivers(store, scene, make_secrets(settings).credential_key_bytes(), count, url, clock.now_ms())
    events = await store.read(_events)
    notices = MESSAGES // count
    for first in range(0, notices, 1_000):
        new_ones = tuple(
            # What holds back no message and starts every cooldown: there are more notices than cameras.
            replace(events[number % len(events)], delivery_uuid=str(uuid_utils.uuid7()))
            for number in range(first, min(first + 1_000, notices))
        )
        await store.write(deliveries.add, new_ones, clock.now_ms())
    await store.write(queue_scene.analyze_tables)
    objects = LocalObjects(folder / "objects")
    return open_outbox("bench", store, objects, clock, settings, lambda: queue_scene.VOCABULARY)


async def _add_receivers(store: Store, scene: Scene, key: bytes, count: int, url: str, now_ms: int) -> None:
    scoped = store.as_(Principal(scene.tenant_id, None, Role.SYSTEM_ADMIN))
    for number in range(count):
        uuid = str(uuid_utils.uuid7())
        plain = json.dumps({"url": url, "signing_key": "a key of some length"}).encode()
        sealed = seal(key, scene.tenant_id, secrets_of(uuid), plain)
        new = NewReceiver(uuid, f"hook {number}", "webhook", json.dumps({"picture": False}), sealed, "ja", None)
        await scoped.write(receivers.add, new, "", now_ms)


async def _events(tx: Tx) -> list[NewDelivery]:
    """A notice of each event, to be given an id."""
    rows = await tx.all("SELECT event_id, incident_id, tenant_id, site_id, camera_key, best_frame_id FROM events")
    return [
        NewDelivery(
            "",
            row["tenant_id"],
            DeliveryKind.NOTIFY,
            SEVERITY_ROSE,
            {},
            site_id=row["site_id"],
            camera_key=row["camera_key"],
            frame_id=row["best_frame_id"],
            event_id=row["event_id"],
            incident_id=row["incident_id"],
        )
        for row in rows
    ]
