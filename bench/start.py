"""What a start costs: from `camserver up --demo` to ready and to the first event, and the memory at rest.

The whole product in its own processes with its four demo cameras and the real detector, in an empty data folder;
then once more in the same folder, as after a restart of the machine. CPU seconds are compared and not seconds, which
depend on what else the machine does. The simulator that plays the cameras stands outside the product and has its own
rows.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench._report import QUICK, Row, figure, less_is_better, report, say
from bench._start_processes import SIMULATOR, SUPERVISOR, DemoProcesses, product
from camserver.base import assets
from camserver.config.secret_files import LOCAL_ADMIN_TOKEN
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher, Running

STARTS = 1 if QUICK else 3
# Caches, pools and the decoders of all cameras are warm by then.
SETTLE_SEC = 5.0 if QUICK else 60.0
MEMORY_SAMPLES = 5
SAMPLE_SEC = 0.2
EVENT_TIMEOUT_SEC = 120.0
EVENT_POLL_SEC = 0.25
CPU_AIM_SEC = 5.0
MEMORY_AIM_MB = 600.0
SEEN_EVENTS = frozenset({"human", "animal", "vehicle"})


@dataclass(frozen=True, slots=True)
class Moment:
    """After so many seconds the processes had used so much CPU."""

    sec: float
    cpu_sec: dict[str, float]


@dataclass(frozen=True, slots=True)
class Start:
    ready: Moment
    event: Moment
    memory_mb: dict[str, float]
    ready_again: Moment


@dataclass(frozen=True, slots=True)
class Demo:
    """One data folder with its ports, in which the demo is started."""

    launcher: Launcher
    settings: dict[str, dict[str, object]]

    @property
    def data(self) -> Path:
        return self.launcher.folder / "data"

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.settings['web']['port']}"

    async def start(self) -> tuple[Running, float, Moment]:
        """The running product, when it was started, and the moment it was ready."""
        started_at = time.perf_counter()
        up = self.launcher.camserver("up", "--demo", settings=self.settings)
        await up.until_ready(f"{self.address}/readyz")
        return up, started_at, moment(up, started_at)


def demo_in(folder: Path) -> Demo:
    settings: dict[str, dict[str, object]] = {
        name: {"port": free_port()} for name in ("web", "control", "streamer", "analyzer", "demo")
    }
    return Demo(Launcher(folder), {"server": {"data_dir": str(folder / "data")}, **settings})


def moment(up: Running, started_at: float) -> Moment:
    return Moment(time.perf_counter() - started_at, DemoProcesses(up.pid).cpu_sec())


async def first_event(demo: Demo) -> None:
    """Waits for an event that the detector found."""
    token = (demo.data / "secrets" / LOCAL_ADMIN_TOKEN).read_text().strip()
    deadline = time.monotonic() + EVENT_TIMEOUT_SEC
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
        while time.monotonic() < deadline:
            async with session.get(f"{demo.address}/api/events") as answer:
                answer.raise_for_status()
                if any(event["primary_event"] in SEEN_EVENTS for event in (await answer.json())["events"]):
                    return
            await asyncio.sleep(EVENT_POLL_SEC)
    raise SystemExit(f"error: the detector found nothing within {EVENT_TIMEOUT_SEC:g} s")


async def memory_at_rest(up: Running) -> dict[str, float]:
    """The median of several samples, each process group by itself."""
    await asyncio.sleep(SETTLE_SEC)
    samples = []
    for _ in range(MEMORY_SAMPLES):
        samples.append(DemoProcesses(up.pid).memory_mb())
        await asyncio.sleep(SAMPLE_SEC)
    return {name: statistics.median(sample[name] for sample in samples) for name in samples[0]}


async def measure(folder: Path) -> Start:
    demo = demo_in(folder)
    try:
        up, started_at, ready = await demo.start()
        await first_event(demo)
        event = moment(up, started_at)
        memory_mb = await memory_at_rest(up)
        await up.stop()
        up, _, ready_again = await demo.start()
        await up.stop()
    finally:
        await demo.launcher.close()
    return Start(ready, event, memory_mb, ready_again)


def rows_of(starts: list[Start]) -> list[Row]:
    median = statistics.median
    # What other programs add to our CPU by sharing caches and cores is not ours.
    best = min(starts, key=lambda start: product(start.ready.cpu_sec))
    parts = (SUPERVISOR, "server", "worker", "analyzer", SIMULATOR)
    memory_mb = {name: median([start.memory_mb.get(name, 0.0) for start in starts]) for name in parts}
    return [
        less_is_better("CPU until ready, first start", product(best.ready.cpu_sec), CPU_AIM_SEC, "aim", "s", aim=1.0),
        *(figure(f"CPU until ready, {name}", best.ready.cpu_sec.get(name, 0.0), "s") for name in parts),
        figure("CPU until ready, later start", min(product(start.ready_again.cpu_sec) for start in starts), "s"),
        figure("CPU until the first event", product(best.event.cpu_sec), "s"),
        figure(f"CPU until the first event, {SIMULATOR}", best.event.cpu_sec.get(SIMULATOR, 0.0), "s"),
        figure("time until ready, first start", median([start.ready.sec for start in starts]), "s"),
        figure("time until ready, later start", median([start.ready_again.sec for start in starts]), "s"),
        figure("time until the first event", median([start.event.sec for start in starts]), "s"),
        less_is_better("memory at rest", product(memory_mb), MEMORY_AIM_MB, "aim", "MB", aim=1.0),
        *(figure(f"memory at rest, {name}", held, "MB") for name, held in memory_mb.items()),
    ]


async def main() -> None:
    starts = []
    for number in range(STARTS):
        with tempfile.TemporaryDirectory(prefix="camserver-start-") as folder:
            if assets.find(assets.MODEL, Path(folder)) is None:
                sys.exit(f"error: {assets.no_model(Path(folder))}")
            starts.append(await measure(Path(folder)))
        say(
            f"start {number + 1} of {STARTS}: {product(starts[-1].ready.cpu_sec):.2f} s of CPU until ready, "
            f"first event after {starts[-1].event.sec:.1f} s, {product(starts[-1].memory_mb):.0f} MB at rest"
        )
    report("start", rows_of(starts))


if __name__ == "__main__":
    asyncio.run(main())
