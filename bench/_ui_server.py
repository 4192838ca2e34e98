"""The web service alone in a process, over a house of 200 cameras on SQLite whose looks come in with pictures.

Told by lines: what is asked of it, then `looks ROUNDS PAUSE_MS`: so many rounds in which every camera looks once, the
looks of a round spread over the pause; or `calm SECONDS`: looks at the pace of one a camera and minute. It answers
with the number of looks.
"""

import asyncio
import json
import math
import random
import secrets
import sys
from pathlib import Path
from typing import Any

import uvloop

from bench import _api_rows, _search_fill, _ui_rows
from camserver.base import log, ports
from camserver.base.clock import StoreClock
from camserver.base.ready import Ready
from camserver.config import load
from camserver.objects.keys import Kind, frame_key
from camserver.objects.local import LocalObjects
from camserver.services.web import service
from camserver.store import Store, open_store
from tests.rig.pictures import jpeg
from tests.rig.polling import until
from tests.store.scenery import NOW_MS

HOUR_MS = 3_600_000
# The day's looks are in the figures by hour; of frames the last half hour is enough.
LOOKS = _search_fill.CAMERAS * 30
# A tile shows a picture only near the screen; the cameras behind these are never asked for one.
WITH_PICTURES = 60
EVENTS_SHOWN = 8
# A round's looks come in so many parts.
PARTS = 20


class House:
    """A store with cameras, and the pictures of their looks."""

    def __init__(self, store: Store, objects: LocalObjects, clock: StoreClock, tenant_id: int) -> None:
        self.store, self.objects, self.clock, self.tenant_id = store, objects, clock, tenant_id
        self._places: tuple[_ui_rows.Place, ...] = ()
        self._pictures = [jpeg(scene=number * 31, size=(640, 360)) for number in range(8)]
        self._round = 0

    async def prepare(self) -> None:
        by_ms = math.ceil((NOW_MS - self.clock.now_ms()) / HOUR_MS) * HOUR_MS
        await self.store.write(_ui_rows.bring_to, by_ms)
        self._places = await self.store.read(_ui_rows.places_of, self.tenant_id)
        for uuid, at, epoch_id, camera_key in await self.store.read(
            _ui_rows.best_pictures, self.tenant_id, EVENTS_SHOWN
        ):
            await self._keep(uuid, at, epoch_id, camera_key)
        await self.look(0)

    async def look(self, pause_ms: int) -> int:
        """Every camera looks once, within the pause."""
        self._round += 1
        step = -(-len(self._places) // PARTS)
        for begin in range(0, len(self._places), step):
            await self._look_of(begin, self._places[begin : begin + step])
            await asyncio.sleep(pause_ms / 1000 / PARTS)
        return len(self._places)

    async def calm(self, seconds: int) -> int:
        """For so long, every second those cameras whose minute is over."""
        self._round += 1
        each = -(-len(self._places) // 60)
        for second in range(seconds):
            begin = second * each % len(self._places)
            await self._look_of(begin, self._places[begin : begin + each])
            await asyncio.sleep(1)
        return seconds * each

    async def _look_of(self, begin: int, part: tuple[_ui_rows.Place, ...]) -> None:
        now_ms = self.clock.now_ms()
        made = await self.store.write(_ui_rows.look, self.tenant_id, part, self._round, now_ms)
        for number, (place, uuid) in enumerate(zip(part, made, strict=True), begin):
            if number < WITH_PICTURES:
                await self._keep(uuid, now_ms, place.epoch_id, place.camera_key)

    async def _keep(self, uuid: str, at_ms: int, epoch_id: int, camera_key: int) -> None:
        key = frame_key(epoch_id, self.tenant_id, camera_key, at_ms, uuid, Kind.INFER)
        await self.objects.put(key, self._pictures[(self._round + camera_key) % len(self._pictures)])


async def obey(house: House) -> None:
    while line := (await asyncio.to_thread(sys.stdin.readline)).split():
        if line[0] == "calm":
            print(await house.calm(int(line[1])), flush=True)
            continue
        rounds, pause_ms = int(line[1]), int(line[2])
        print(sum([await house.look(pause_ms) for _ in range(rounds)]), flush=True)


async def main(asked: dict[str, Any]) -> None:
    folder = Path(asked["folder"])
    log.configure("web", level="error")
    store = await open_store(f"sqlite:///{folder}/house.db")
    clock = StoreClock()
    settings = load(None, {"CAMSERVER_WEB_PORT": str(asked["port"])}, folder)
    objects = LocalObjects(settings.objects.dir)
    filled = await _search_fill.build(store)
    await _search_fill.fill(store, filled, 0, LOOKS, random.Random(5))
    token = secrets.token_urlsafe(32)
    await store.write(_api_rows.sign_in_people, filled.scene.tenant_id, filled.sites, [token], clock.now_ms())
    house = House(store, objects, clock, filled.scene.tenant_id)
    await house.prepare()
    ready = Ready()
    ready.expect("web")
    with ports.listen("127.0.0.1", asked["port"], "web.port") as sock:
        serving = asyncio.create_task(service.run(store, objects, clock, settings, ready, sock))
        await until(lambda: ready.is_ready, "start of the web service")
        print(json.dumps({"token": token}), flush=True)
        await obey(house)
        serving.cancel()
        await asyncio.wait([serving])
    await store.close()


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.stdin.readline())))
