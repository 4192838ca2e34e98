"""The first picture of a camera that nobody has open, through the whole product, beside go2rtc.

Ours is `camserver up`: from asking for the viewing (a request, with its admission) to the first fragment on the
socket that the answer names. go2rtc's is from opening its socket. Both begin at the same moment, at any place between
two keyframes, which are 2 s apart: whoever opens the camera later may miss one that the other gets. Neither has the
camera open before.

There are two cameras. The simulated one sends keyframes when it is their time, so mostly both wait for the same one
and get it within a millisecond of each other. GStreamer's, which another program watches all the while, also sends
one when asked to (RFC 4585), as many cameras do. A keyframe that one of the two asked for would be the other's too,
so this camera they get in turns.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import aiohttp

from bench import _capture_video
from bench._live_viewers import Viewer, view
from bench._report import QUICK, Row, less_is_better, say
from camserver.media.addresses import AddressPolicy
from camserver.media.packets import Hub, Miss, Packet
from camserver.media.rtsp_address import RtspAddress
from camserver.media.rtsp_lean.reader import LeanPackets
from camserver.services.simulator.cameras import CameraAsked, SimulatedCamera
from tests.e2e.installation import ROOM_FOR_ONE, installation, seen, signed_in
from tests.fakes.gstreamer import clock
from tests.fakes.gstreamer.camera import gstreamer_pipelines
from tests.rig.polling import until
from tests.rig.ports import free_port
from tests.rig.processes import Launcher
from tests.rig.simulated import simulated

TRIES = 2 if QUICK else 10
KEYFRAMES_APART_SEC = 2.0
PATIENCE_SEC = 60.0
AIM = 1.0
# Where both wait for the same keyframe they are equal but for noise.
SAME = 0.99
# A look opens the camera too, and would make it warm; one an hour does not fall into this.
LOOK_EVERY_SEC = 3600
# Pictures that a worker still has of a moment ago would be shown at once; by then they are too old.
FORGOTTEN_SEC = 4.0
# By then each has closed its connection to a camera that nobody watches through it.
LETS_GO_SEC = 6.0
SIMULATED, ASKED = "waits", "asks"

Peer = Callable[[dict[str, str], Path], AbstractContextManager[tuple[object, str]]]


@dataclass(slots=True)
class Sides:
    """The two that are compared, ready to be asked for a camera."""

    browser: aiohttp.ClientSession
    their_origin: str

    async def ours(self, camera_id: str) -> float:
        began = time.perf_counter()
        async with self.browser.post("/api/modal/lease", json={"camera_id": camera_id}) as answer:
            lease = await answer.json()
            assert answer.status == 200, lease
        viewer = await view(lease["stream_url"], False)
        took_ms = await _until_first(viewer, began)
        viewer.close()
        async with self.browser.delete(f"/api/modal/lease/{lease['lease_id']}") as answer:
            assert answer.status == 200
        return took_ms

    async def theirs(self, camera_id: str) -> float:
        began = time.perf_counter()
        viewer = await view(f"{self.their_origin}/api/ws?src={camera_id}", True)
        took_ms = await _until_first(viewer, began)
        viewer.close()
        return took_ms


async def _until_first(viewer: Viewer, began: float) -> float:
    async with asyncio.timeout(PATIENCE_SEC):
        await viewer.first
    return (time.perf_counter() - began) * 1000


class _Passing:
    """Another program that watches a camera; what it sees does not matter."""

    def offer(self, packet: Packet) -> None:
        pass

    def ended(self, miss: Miss) -> None:
        say(f"  the other program that watches was cut off: {miss.message}")


@asynccontextmanager
async def watched_elsewhere(url: str) -> AsyncIterator[None]:
    here = AddressPolicy(allow_loopback=True)
    hub = Hub(LeanPackets(RtspAddress(url, None, here), PATIENCE_SEC, PATIENCE_SEC, lambda: 0))
    taker = _Passing()
    hub.add(taker)
    try:
        yield
    finally:
        hub.remove(taker)
        await hub.until_closed(PATIENCE_SEC)


@asynccontextmanager
async def at_work(cameras: dict[str, str], folder: Path, go2rtc: Peer) -> AsyncIterator[Sides]:
    launcher = Launcher(folder)
    house = installation(
        launcher,
        folder / "data",
        analyzer={"url": "http://127.0.0.1:9"},
        looks={"polling_interval_sec": LOOK_EVERY_SEC},
        streamer={"port": free_port()},
        admission=ROOM_FOR_ONE,
    )
    try:
        await house.ready()
        for name, url in cameras.items():
            await house.command("camera", "add", name, url)
        with go2rtc(cameras, folder) as (_, their_origin):
            async with signed_in(house, house.setup_token) as browser:
                # The first look is over; the next one is far away.
                for name in cameras:
                    await seen(browser, f"/api/cameras/{name}/latest", lambda body: body["status"] == "ok")
                yield Sides(browser, their_origin)
    finally:
        await launcher.close()


Tries = list[tuple[float, float]]


async def at_the_same_moment(sides: Sides, camera: SimulatedCamera) -> Tries:
    chance = random.Random(1)
    tries = []
    for number in range(TRIES):
        await until(lambda: not camera.clients, "everybody has left the camera")
        await asyncio.sleep(FORGOTTEN_SEC + chance.uniform(0, KEYFRAMES_APART_SEC))
        # Whoever is called first is a moment ahead.
        if number % 2:
            mine, theirs = await asyncio.gather(sides.ours(SIMULATED), sides.theirs(SIMULATED))
        else:
            theirs, mine = await asyncio.gather(sides.theirs(SIMULATED), sides.ours(SIMULATED))
        tries.append((mine, theirs))
    return tries


async def in_turns(sides: Sides) -> Tries:
    chance = random.Random(2)

    async def alone(ask: Callable[[str], Awaitable[float]]) -> float:
        await asyncio.sleep(LETS_GO_SEC + chance.uniform(0, KEYFRAMES_APART_SEC))
        return await ask(ASKED)

    return [(await alone(sides.ours), await alone(sides.theirs)) for _ in range(TRIES)]


def _row(name: str, tries: Tries, aim: float) -> Row:
    mine, theirs = zip(*tries, strict=True)
    for whose, times in (("ours", mine), ("go2rtc", theirs)):
        say(f"  {name}, ms, {whose}: {' '.join(f'{one:.0f}' for one in times)}")
    # The median: one keyframe that was missed by a few milliseconds would outweigh nine that were not.
    return less_is_better(name, median(mine), median(theirs), "go2rtc", "ms", aim)


async def _measure(folder: Path, go2rtc: Peer) -> list[Row]:
    video = str(_capture_video.videos()[0])
    with gstreamer_pipelines({"/cam": clock.PIPELINE}) as served:
        async with (
            simulated(folder / "cache", CameraAsked(SIMULATED, video), with_login=False) as simulator,
            watched_elsewhere(f"{served}/cam"),
            at_work({SIMULATED: simulator.url(SIMULATED, "main"), ASKED: f"{served}/cam"}, folder, go2rtc) as sides,
        ):
            together = await at_the_same_moment(sides, simulator.camera(SIMULATED))
            apart = await in_turns(sides)
    return [
        _row("first picture cold", together, SAME),
        _row("first picture cold, of a camera that can be asked", apart, AIM),
    ]


def cold_rows(folder: Path, go2rtc: Peer) -> list[Row]:
    return asyncio.run(_measure(folder, go2rtc))
