"""The worker's part of live view: pushes cameras to a streamer, by the product's own code.

    {"feed_url": "ws://…", "cameras": {"cam_000": "rtsp://…"}}

is the first line on standard input. Prints a line when it is ready, pushes after the next line it gets, and ends with
its standard input.
"""

import asyncio
import json
import sys
import uuid
from types import SimpleNamespace
from typing import Any, cast

import uvloop

from bench._cameras import PASSWORD, USER
from bench._live_keys import KEYS, STREAMER, TENANT
from camserver.base import log as logs
from camserver.base.clock import StoreClock
from camserver.base.memory import keep_freed
from camserver.base.secrets import Secret
from camserver.domain.live_links import TICKET_LIFE_MS, Ticket, sign_ticket
from camserver.domain.looks import LookPolicy
from camserver.media.addresses import AddressPolicy
from camserver.media.rtsp_address import Login
from camserver.media.rtsp_lean.pump import shared_pump
from camserver.media.sources import SourceWanted, open_source
from camserver.services.worker.camera import Camera
from camserver.services.worker.doors import Doors, place_of
from camserver.services.worker.feed_line import connect
from camserver.services.worker.push import Push
from camserver.services.worker.streams import Stream

PATIENCE_SEC = 60.0


async def main(asked: dict[str, Any]) -> None:
    keep_freed()  # as the worker's service does
    clock = StoreClock()
    doors = Doors(clock, LookPolicy(opening_max=100, opening_subnet_max=100))
    print("ready", flush=True)
    if not await asyncio.to_thread(sys.stdin.readline):
        return
    with shared_pump().hurried():
        pushes = [
            asyncio.ensure_future(_push(camera_id, url, asked["feed_url"], doors, clock))
            for camera_id, url in asked["cameras"].items()
        ]
        await asyncio.to_thread(sys.stdin.read)
        for one in pushes:
            one.cancel()
        await asyncio.gather(*pushes, return_exceptions=True)


async def _push(camera_id: str, url: str, feed_url: str, doors: Doors, clock: StoreClock) -> None:
    here = AddressPolicy(allow_loopback=True)
    login = Login(USER, Secret(PASSWORD))
    source = open_source(SourceWanted("rtsp", url, login, connect_timeout_sec=PATIENCE_SEC, addresses=here))
    held = Stream("main", source, doors.door(place_of("rtsp", url)), clock, PATIENCE_SEC)
    # Of a camera, live view needs no more than this.
    camera = SimpleNamespace(
        hold=SimpleNamespace(is_covered=True),
        over=asyncio.Event(),
        is_locked_out=False,
        ring=None,
        live_failed=lambda miss: None,
        start=SimpleNamespace(params=SimpleNamespace(connect_timeout_sec=PATIENCE_SEC)),
    )
    until = clock.now_ms() + TICKET_LIFE_MS
    ticket = Ticket(STREAMER, TENANT, camera_id, 1, "main", False, "worker", until, uuid.uuid4().hex)
    line = await connect(feed_url, sign_ticket(KEYS, ticket), None)
    await Push(cast(Camera, camera), held, line, clock, lambda: 0.5).run()


if __name__ == "__main__":
    logs.configure("live", "json", "error")
    uvloop.run(main(json.loads(sys.stdin.readline())))
