"""The web service alone in a process, over a house of 200 cameras on SQLite.

Told by lines: what is asked of it, then `changes COUNT`, so many at 50 a second; it answers with their number.
"""

import asyncio
import json
import os
import random
import secrets
import sys
from pathlib import Path
from typing import Any

import uvloop

from bench import _api_rows, _search_fill
from camserver.base import log, ports
from camserver.base.clock import StoreClock
from camserver.base.collecting import collect_seldom
from camserver.base.ready import Ready
from camserver.config import load
from camserver.objects.keys import Kind, frame_key
from camserver.objects.local import LocalObjects
from camserver.services.web import service
from camserver.store import Store, open_store
from tests.rig.polling import until

CHANGES_PER_SEC = 50
PICTURE_BYTES = 24_000


async def fill(store: Store, objects: LocalObjects, asked: dict[str, Any], now_ms: int) -> dict[str, Any]:
    house = await _search_fill.build(store)
    await _search_fill.fill(store, house, 0, asked["looks"], random.Random(5))
    tenant_id = house.scene.tenant_id
    tokens = [secrets.token_urlsafe(32) for _ in range(asked["people"])]
    await store.write(_api_rows.sign_in_people, tenant_id, house.sites, tokens, now_ms)
    event, frame, captured_at, epoch_id, camera_key = await store.read(_api_rows.newest_of, tenant_id)
    key = frame_key(epoch_id, tenant_id, camera_key, captured_at, frame, Kind.INFER)
    await objects.put(key, os.urandom(PICTURE_BYTES))
    return {"tenant": tenant_id, "tokens": tokens, "event": event, "frame": frame}


async def change(store: Store, clock: StoreClock, tenant_id: int, count: int) -> None:
    """At their rate, each in a transaction of its own, whatever they take."""
    places = await store.read(_api_rows.places_of, tenant_id)
    loop = asyncio.get_running_loop()
    started = loop.time()
    for number in range(count):
        await asyncio.sleep(max(0.0, started + number / CHANGES_PER_SEC - loop.time()))
        place = places[number % len(places)]
        await store.write(_api_rows.change, tenant_id, place, _search_fill.TOP - number, number, clock.now_ms())


async def obey(store: Store, clock: StoreClock, tenant_id: int) -> None:
    while line := (await asyncio.to_thread(sys.stdin.readline)).split():
        await change(store, clock, tenant_id, int(line[1]))
        print(line[1], flush=True)


async def main(asked: dict[str, Any]) -> None:
    folder = Path(asked["folder"])
    log.configure("web", level="error")
    store = await open_store(f"sqlite:///{folder}/house.db")
    clock = StoreClock()
    settings = load(None, {"CAMSERVER_WEB_PORT": str(asked["port"])}, folder)
    objects = LocalObjects(settings.objects.dir)
    made = await fill(store, objects, asked, clock.now_ms())
    ready = Ready()
    ready.expect("web")
    collect_seldom()  # as parts.py does for every process
    with ports.listen("127.0.0.1", asked["port"], "web.port") as sock:
        serving = asyncio.create_task(service.run(store, objects, clock, settings, ready, sock))
        await until(lambda: ready.is_ready, "start of the web service")
        print(json.dumps(made), flush=True)
        await obey(store, clock, made["tenant"])
        serving.cancel()
        await asyncio.wait([serving])
    await store.close()


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.stdin.readline())))
