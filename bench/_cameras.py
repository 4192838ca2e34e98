"""Simulated cameras in a process of their own, so that what they cost is nobody else's.

    {"count": 50, "videos": ["a.mp4"], "cache": "/tmp/x", "faults_seed": null, "faults_log": null}

is the first line on its standard input. Camera number n is at /cam_n (three digits) and shows the videos in turn.
Prints its port, then serves until its standard input ends. With a seed, something is wrong with some camera at most
times, until another line comes; each fault is a line in the log.
"""

import asyncio
import json
import os
import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Any

import uvloop

from camserver.base import log as logs
from camserver.base.clock import StoreClock
from camserver.base.secrets import Secret
from camserver.media.clips import cache_name, encode_file
from camserver.services.simulator.cameras import SUB, WIDTH_MAX, CameraAsked, Faults, Shows, SimulatedCamera
from camserver.services.simulator.digest import Login
from camserver.services.simulator.service import Simulator
from tests.rig.ports import listening_socket, port_of

USER, PASSWORD = "viewer", "bench"
# How long a fault lasts, and how long until the next one begins.
FAULT_SEC = (2.0, 20.0)
PAUSE_SEC = (0.5, 4.0)


def name_of(number: int) -> str:
    return f"cam_{number:03d}"


def prepare_sub_streams(videos: list[Path], cache: Path) -> None:
    """Encodes them once: cameras that are opened at the same moment would each do it."""
    for video in videos:
        target = cache / cache_name(video, WIDTH_MAX[SUB])
        if not target.exists():
            encode_file(video, WIDTH_MAX[SUB], target)


async def _offline(camera: SimulatedCamera, seconds: float) -> None:
    camera.faults.is_offline = True
    camera.cut_all()
    await asyncio.sleep(seconds)
    camera.faults.is_offline = False


async def _cut(camera: SimulatedCamera, seconds: float) -> None:
    camera.cut_all()


async def _refuses_login(camera: SimulatedCamera, seconds: float) -> None:
    camera.faults.refuses_login = True
    camera.cut_all()
    await asyncio.sleep(seconds)
    camera.faults.refuses_login = False


async def _stalled(camera: SimulatedCamera, seconds: float) -> None:
    camera.faults.is_stalled = True
    await asyncio.sleep(seconds)
    camera.faults.is_stalled = False


async def _slow(camera: SimulatedCamera, seconds: float) -> None:
    camera.faults.slow_sec = 2.0
    camera.cut_all()
    await asyncio.sleep(seconds)
    camera.faults.slow_sec = 0.0


async def _lossy(camera: SimulatedCamera, seconds: float) -> None:
    camera.faults.loss = 0.05
    await asyncio.sleep(seconds)
    camera.faults.loss = 0.0


async def _black(camera: SimulatedCamera, seconds: float) -> None:
    await camera.show(Shows.BLACK)
    await asyncio.sleep(seconds)
    await camera.show(Shows.USUAL)


async def _frozen(camera: SimulatedCamera, seconds: float) -> None:
    await camera.show(Shows.FROZEN)
    await asyncio.sleep(seconds)
    await camera.show(Shows.USUAL)


FAULTS: tuple[Callable[[SimulatedCamera, float], Awaitable[None]], ...] = (
    _offline,
    _cut,
    _refuses_login,
    _stalled,
    _slow,
    _lossy,
    _black,
    _frozen,
)


async def misbehave(cameras: list[SimulatedCamera], seed: int, log: IO[str]) -> None:
    """One fault after the other begins, each at a camera of its own, until cancelled. Now and then all are cut."""
    chance = random.Random(seed)
    free = list(cameras)
    async with asyncio.TaskGroup() as faults:
        while True:
            await asyncio.sleep(chance.uniform(*PAUSE_SEC))
            if chance.random() < 0.01:
                _note(log, "all", "cut")
                for camera in cameras:
                    camera.cut_all()
                continue
            if not free:
                continue
            camera = free.pop(chance.randrange(len(free)))
            fault, seconds = chance.choice(FAULTS), chance.uniform(*FAULT_SEC)
            _note(log, camera.asked.name, fault.__name__.strip("_"))
            task = faults.create_task(_inflict(fault, camera, seconds))
            task.add_done_callback(lambda _, camera=camera: free.append(camera))  # type: ignore[misc]


async def _inflict(
    fault: Callable[[SimulatedCamera, float], Awaitable[None]], camera: SimulatedCamera, seconds: float
) -> None:
    await fault(camera, seconds)


def _note(log: IO[str], camera: str, fault: str) -> None:
    print(json.dumps({"camera": camera, "fault": fault}), file=log, flush=True)


async def main(asked: dict[str, Any], faults_log: IO[str]) -> None:
    videos = [str(video) for video in asked["videos"]]
    names = [name_of(number) for number in range(asked["count"])]
    cameras = [CameraAsked(name, videos[number % len(videos)]) for number, name in enumerate(names)]
    with listening_socket(backlog=1000) as sock:
        sock.setblocking(False)
        login = Login(USER, Secret(PASSWORD))
        async with Simulator(cameras, sock, login, Path(asked["cache"]), StoreClock()) as simulator:
            print(port_of(sock), flush=True)
            if asked["faults_seed"] is not None:
                held = [simulator.camera(name) for name in names]
                await _misbehave_until_told(held, asked["faults_seed"], faults_log)
            await asyncio.to_thread(sys.stdin.read)


async def _misbehave_until_told(cameras: list[SimulatedCamera], seed: int, log: IO[str]) -> None:
    faults = asyncio.create_task(misbehave(cameras, seed, log))
    told = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    await asyncio.wait([faults, told], return_when=asyncio.FIRST_COMPLETED)
    faults.cancel()
    await asyncio.gather(faults, return_exceptions=True)
    for camera in cameras:
        camera.faults = Faults()
        await camera.show(Shows.USUAL)


if __name__ == "__main__":
    logs.configure("cameras", "json", "error")
    what = json.loads(sys.stdin.readline())
    with open(what["faults_log"] or os.devnull, "w") as faults_log:
        uvloop.run(main(what, faults_log))
