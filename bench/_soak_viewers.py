"""Live views that are opened and closed for a long time, in every way, through the whole product on SQLite.

A handful of programs watch a few simulated cameras; each closes its view by its button, by leaving, by a network that
goes, or never opens what it was admitted to; some read by segments. Now and then the worker is killed. When all have
gone, nothing may be left of any view: no viewer, stream, feed, row, connection to a camera, process or file; and
memory, descriptors and threads must be what they were.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench._soak_watch import JUDGED_FROM_SEC, Sample, course, sample
from camserver.services.simulator.cameras import CameraAsked
from tests.e2e.audience import Audience, Left, nobody
from tests.e2e.installation import installation, seen, signed_in
from tests.rig.ports import free_port
from tests.rig.processes import Launcher
from tests.rig.simulated import simulated
from tests.rig.video_files import video_file

CAMERAS = 3
VIEWERS = 8
# Every so many rounds of all viewers, the worker dies while they watch.
KILL_EVERY_ROUNDS = 10
TOLD_EVERY_ROUNDS = 10
SAMPLES = 120
ADMISSION: dict[str, object] = {
    "cpu_reject_percent": 100,
    "memory_reject_percent": 100,
    "swap_reject_mb": 1_000_000,
    "heartbeat_grace_sec": 300,
}


@dataclass(slots=True)
class ViewersReport:
    views: int = 0
    kills: int = 0
    before: Left | None = None
    after: Left | None = None
    course: str = ""
    violations: list[str] = field(default_factory=list)

    def summary(self) -> str:
        return (
            f"{self.views} live views opened and closed, the worker killed {self.kills} times; "
            f"before: {self.before}; after: {self.after}; {self.course}; {len(self.violations)} violations"
        )


class ViewersSoak:
    """`run` once."""

    def __init__(self, folder: Path, seconds: float, seed: int, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._seconds = seconds
        self._chance = random.Random(seed)
        self._say = say
        self._report = ViewersReport()
        self._samples: list[Sample] = []

    async def run(self) -> ViewersReport:
        try:
            async with AsyncExitStack() as stack:
                await self._watch(await self._open(stack))
        except* (AssertionError, OSError, RuntimeError, TimeoutError) as errors:
            self._report.violations += [f"{type(error).__name__}: {error}" for error in errors.exceptions]
        return self._report

    async def _open(self, stack: AsyncExitStack) -> Audience:
        film = video_file(self._folder / "film.mp4", size=(320, 180), fps=10, seconds=4, keyframes_apart=5, bf="0")
        names = tuple(f"cam_{number}" for number in range(CAMERAS))
        asked = [CameraAsked(name, str(film)) for name in names]
        simulator = await stack.enter_async_context(simulated(self._folder / "cache", *asked, with_login=False))
        launcher = Launcher(self._folder)
        stack.push_async_callback(launcher.close)
        house = installation(
            launcher,
            self._folder / "data",
            analyzer={"url": "http://127.0.0.1:9"},
            looks={"polling_interval_sec": 3600},
            streamer={"port": free_port()},
            admission=ADMISSION,
        )
        up = await house.ready()
        for name in names:
            await house.command("camera", "add", name, simulator.url(name, "main"))
        browser = await stack.enter_async_context(signed_in(house, house.setup_token))
        plain = await stack.enter_async_context(nobody())
        await seen(
            browser, "/api/leases", lambda body: [one["state"] for one in body["leases"]] == ["ACTIVE"] * CAMERAS
        )
        audience = Audience(house, up, simulator, names, browser, plain)
        await audience.grow(VIEWERS)
        return audience

    async def _watch(self, audience: Audience) -> None:
        report = self._report
        await self._round(audience, kill=False)
        report.before = await audience.nothing_left()
        end_sec = time.monotonic() + self._seconds
        next_sample_sec, number = 0.0, 0
        while time.monotonic() < end_sec:
            number += 1
            await self._round(audience, kill=number % KILL_EVERY_ROUNDS == 0)
            if time.monotonic() >= next_sample_sec:
                next_sample_sec = time.monotonic() + self._seconds / SAMPLES
                self._samples.append(await asyncio.to_thread(sample, audience.up.pid))
            if number % TOLD_EVERY_ROUNDS == 0:
                self._say(f"viewers: {report.views} views; {await audience.left()}")
        report.after = await audience.nothing_left()
        self._judge()

    async def _round(self, audience: Audience, kill: bool) -> None:
        if kill:
            audience.house.kill("worker")
            self._report.kills += 1
        await audience.come_and_go(1, self._chance)
        self._report.views += len(audience.viewers)

    def _judge(self) -> None:
        report = self._report
        assert report.before is not None
        assert report.after is not None
        report.violations += [f"{name} grew" for name in report.after.grown(report.before, most=VIEWERS)]
        if self._samples:
            taken = course(self._samples)
            report.course = str(taken)
            if self._seconds >= JUDGED_FROM_SEC:
                report.violations += taken.growth("the product")
