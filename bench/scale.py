"""The control plane of a large fleet, simulated: 10,000 workers and 100,000 cameras in 500 sites, in virtual time.

    make bench-scale                                  the whole fleet, some minutes
    QUICK=1 make bench-scale                          a tenth of it
    BENCH_ARGS="--workers 2000 --processes 2" make bench-scale

Rules, rounds and store are the real ones (four processes of control on PostgreSQL, which does not sync its log here);
workers are data, and a second of the fleet takes as long as its work (bench/_scale_world.py). Scenes:

    storm      every worker connects, then every camera is there at once
    steady     nothing happens
    control    the processes of control are replaced one after the other: no camera moves
    failures   a whole site dies, whose cameras wait for it; half the workers of others are killed, and some are cut
               off: the other workers of their sites take over, and nobody looks twice
    rolling    workers stop in order and come back, a few at a time

After each scene: no camera was held twice at any moment, none is forgotten, rows and workers say the same, and no
more cameras were started than had to be. It ends with exit code 1 when one of these does not hold.
"""

import argparse
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
import uvloop

from bench._control_rows import WORKERS_A_SITE, add_cameras, add_workers, site_of
from bench._cpu import CpuUsed, cpu_seconds
from bench._report import QUICK, Row, figure, less_is_better, report, say
from bench._scale_world import Process, Tally, VirtualClock, Worker, World
from camserver.base import log as logs
from camserver.base.clock import wall_time_ms
from camserver.config import load, make_secrets
from camserver.domain.leases import LeasePolicy
from camserver.store import open_store
from camserver.store.first_start import prepare_store
from tests.rig.databases import PostgresServer, postgres_server

WORKERS = 1_000 if QUICK else 10_000
CAMERAS_A_WORKER = 10
SLOTS = 24  # room for the cameras of a neighbour that is gone, and some
PROCESSES = 2 if QUICK else 4
# A scene that is not over by then is a failure.
SCENE_MAX_SEC = 300


@dataclass(frozen=True, slots=True)
class Told:
    """What a scene came to. `had_to` is how many cameras had to be started."""

    name: str
    tally: Tally
    settled_sec: int
    had_to: int
    forgotten: int
    differ: int
    real_sec: float
    cpu: CpuUsed  # seconds: of control, which is this process, and of PostgreSQL
    fullest: int  # most cameras of a worker
    emptiest: int

    @property
    def is_well(self) -> bool:
        tally = self.tally
        # What is moved from a full worker to an empty one is stopped here and started there.
        few = tally.starts <= self.had_to + tally.stops
        return few and not (self.forgotten or self.differ or tally.twice or tally.backwards)


class Scenes:
    def __init__(self, world: World, server: PostgresServer, renew: Callable[[int], Awaitable[Process]]) -> None:
        self.world = world
        self._server = server
        self._renew = renew
        self.cameras = len(world.workers) * CAMERAS_A_WORKER
        self.told: list[Told] = []

    async def play(self, name: str, scene: Callable[[], Awaitable[tuple[int, int, int]]]) -> None:
        """A scene answers how many seconds it took to settle, how many cameras had to start and how many wait."""
        began, cpu = time.perf_counter(), self._cpu()
        settled_sec, had_to, waiting = await scene()
        # A camera that is on its way from one worker to another is nobody's for a second.
        await self._until_held(self.cameras - waiting)
        forgotten = self.cameras - waiting - self.world.held
        loads = self.world.loads()
        told = Told(
            name,
            self.world.take_tally(),
            settled_sec,
            had_to,
            forgotten,
            await self.world.agrees(),
            time.perf_counter() - began,
            self._cpu() - cpu,
            max(loads),
            min(loads),
        )
        self.told.append(told)
        _say(told)

    def _cpu(self) -> CpuUsed:
        """Of this process, which is control and the workers' side, and of PostgreSQL, which is its child."""
        database = cpu_seconds(self._server.process.pid)
        return CpuUsed(cpu_seconds(os.getpid()) - database, database)

    async def _until_held(self, count: int) -> int:
        for second in range(SCENE_MAX_SEC):
            if self.world.held == count:
                return second
            await self.world.seconds(1)
        return SCENE_MAX_SEC

    async def _until_elsewhere(self, lost: dict[str, Worker]) -> int:
        """Until each of these was held by another worker. What is moved for the load's sake does not count."""
        waiting = set(lost)
        for second in range(1, SCENE_MAX_SEC + 1):
            await self.world.seconds(1)
            waiting = {one for one in waiting if self.world.holder(one) in (None, lost[one])}
            if not waiting:
                return second
        return SCENE_MAX_SEC

    def _of_site(self, *numbers: int) -> list[Worker]:
        names = {f"site-{number}" for number in numbers}
        return [worker for worker in self.world.workers if worker.site in names]

    async def storm(self) -> tuple[int, int, int]:
        world = self.world
        for number, worker in enumerate(world.workers):
            await world.connect(worker, world.processes[number % len(world.processes)])
        return await self._until_held(self.cameras), self.cameras, 0

    async def steady(self) -> tuple[int, int, int]:
        await self.world.seconds(2 * self.world.policy.heartbeat_sec)
        return 0, 0, 0

    async def failures(self) -> tuple[int, int, int]:
        """All at once: a site dies, half the workers of three others are killed, some of two more are cut off."""
        world = self.world
        dead = self._of_site(0)
        killed = [worker for worker in self._of_site(1, 2, 3) if worker.turn % 2]
        cut = [worker for worker in self._of_site(4, 5) if worker.turn < 3]
        had_to = sum(len(worker.held) for worker in (*dead, *killed, *cut))
        lost = {camera_id: worker for worker in (*killed, *cut) for camera_id in worker.held}
        for worker in (*dead, *killed):
            await world.kill(worker)
        for worker in cut:
            worker.is_cut = True
            await world.disconnect(worker)
        settled = await self._until_elsewhere(lost)
        # Longer than a lease lasts: whoever comes back then has nothing any more.
        await world.seconds(max(world.policy.ttl_sec + 15 - settled, 0))
        for worker in cut:
            worker.is_cut = False
        for number, worker in enumerate((*dead, *cut)):
            worker.is_up = True
            await world.connect(worker, world.processes[number % len(world.processes)])
        await self._until_held(self.cameras)
        return settled, had_to, 0

    async def control(self) -> tuple[int, int, int]:
        world = self.world
        for place, old in enumerate(list(world.processes)):
            fresh = await self._renew(len(world.processes) + place)
            world.processes[place] = fresh
            for worker in [one for one in world.workers if one.process is old]:
                await world.disconnect(worker)
                await world.connect(worker, fresh)
            await world.seconds(2)
        return 0, 0, 0

    async def rolling(self) -> tuple[int, int, int]:
        """Three workers at once stop, and come back ten seconds later."""
        chosen = self._of_site(6)[:9]
        had = 0
        for first in range(0, len(chosen), 3):
            few = chosen[first : first + 3]
            had += sum(len(worker.held) for worker in few)
            for worker in few:
                await self.world.stop(worker)
            await self.world.seconds(10)
            for worker in few:
                worker.is_up = True
                await self.world.connect(worker, self.world.processes[0])
            await self.world.seconds(10)
        return await self._until_held(self.cameras), had, 0


SCENES = ("storm", "steady", "control", "failures", "rolling")


def _say(told: Told) -> None:
    tally = told.tally
    cpu = f"{told.cpu.client:.1f} + {told.cpu.server:.1f} s CPU"
    found = f"twice {tally.twice}, forgotten {told.forgotten}, rows differ {told.differ}"
    say(
        f"{told.name:<8} {tally.seconds:>4} s virtual, {told.real_sec:.1f} s real, {cpu}; settled after "
        f"{told.settled_sec} s; {tally.starts:,} starts ({told.had_to:,} had to), {tally.stops:,} moved, "
        f"{tally.beats:,} heartbeats; {found}{'' if told.is_well else '  FAILED'}"
    )


async def simulate(workers: int, processes: int, folder: Path, server: PostgresServer) -> tuple[list[Told], World]:
    server.create("scale")
    url = server.url("scale")
    store = await open_store(url)
    settings = load(None, {}, data_dir=folder)
    secrets = make_secrets(settings)
    home = await prepare_store(store, None, wall_time_ms())
    connection = await asyncpg.connect(url)
    await add_workers(connection, home, workers, SLOTS)
    say(f"{workers:,} workers and {workers * CAMERAS_A_WORKER:,} cameras in {-(-workers // WORKERS_A_SITE):,} sites")
    clock, policy = VirtualClock(wall_time_ms()), LeasePolicy()

    async def new_process(number: int) -> Process:
        process = Process(number, store, clock, policy, secrets.credential_keys)
        await process.open(clock.now_ms())
        return process

    async def tidy() -> None:
        """The private server has no autovacuum, which would come as often for tables that change as much."""
        await connection.execute("VACUUM (ANALYZE) camera_sessions")
        await connection.execute("VACUUM (ANALYZE) workers")

    own = [await new_process(number) for number in range(processes)]
    world = World(store, clock, policy, own, home.tenant_id, tidy)
    world.workers = [Worker(f"worker-{n}", site_of(n), SLOTS, n % policy.heartbeat_sec) for n in range(workers)]
    key = secrets.credential_key_bytes()
    await add_cameras(connection, home, workers, CAMERAS_A_WORKER, key)
    await connection.execute("ANALYZE")
    scenes = Scenes(world, server, new_process)
    for name in SCENES:
        await scenes.play(name, getattr(scenes, name))
    await connection.close()
    await store.close()
    return scenes.told, world


def rows_of(told: list[Told], workers: int) -> list[Row]:
    cameras = workers * CAMERAS_A_WORKER
    by_name = {one.name: one for one in told}
    storm, steady = by_name["storm"], by_name["steady"]
    policy = LeasePolicy()
    bound = policy.ttl_sec + 10
    beats, seconds = max(steady.tally.beats, 1), max(steady.tally.seconds, 1)
    failed = by_name["failures"]
    return [
        less_is_better(
            f"{cameras:,} cameras at once, all going", storm.settled_sec, SCENE_MAX_SEC, "bound", "s virtual", 1.0
        ),
        figure("the fullest worker then, cameras", float(storm.fullest), ""),
        figure("the emptiest worker then, cameras", float(storm.emptiest), ""),
        figure("a camera that is started, CPU of control", storm.cpu.client * 1000 / cameras, "ms"),
        figure("a camera that is started, CPU of PostgreSQL", storm.cpu.server * 1000 / cameras, "ms"),
        figure("a heartbeat of 10 leases, CPU of control without its socket", steady.cpu.client * 1000 / beats, "ms"),
        figure("a heartbeat of 10 leases, CPU of PostgreSQL", steady.cpu.server * 1000 / beats, "ms"),
        figure("a steady fleet, control without its sockets", steady.cpu.client / seconds, "cores"),
        figure("a steady fleet, PostgreSQL", steady.cpu.server / seconds, "cores"),
        less_is_better(
            "workers killed and cut off, cameras at others", failed.settled_sec, bound, "bound", "s virtual", 1.0
        ),
        figure("the processes of control replaced, cameras started", float(by_name["control"].tally.starts), ""),
        figure("cameras held twice", float(sum(one.tally.twice for one in told)), ""),
        figure("cameras forgotten", float(sum(one.forgotten for one in told)), ""),
        figure("rows that differ from what workers hold", float(sum(one.differ for one in told)), ""),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=WORKERS, help=f"at least 200 (default {WORKERS})")
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"of control (default {PROCESSES})")
    asked = parser.parse_args()
    logs.configure("scale", "json", "error")
    with TemporaryDirectory(prefix="camserver-scale-") as folder, postgres_server() as server:
        told, world = uvloop.run(simulate(max(asked.workers, 200), asked.processes, Path(folder), server))
    for problem in world.problems:
        say(f"  PROBLEM {problem}")
    report("scale", rows_of(told, max(asked.workers, 200)))
    sys.exit(0 if all(one.is_well for one in told) else 1)


if __name__ == "__main__":
    main()
