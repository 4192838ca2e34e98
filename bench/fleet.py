"""What a whole fleet costs, how that grows, and how long cameras are without a worker when one is killed.

    make bench-fleet                                        about eight minutes
    QUICK=1 make bench-fleet                                below a minute: fewer cameras, few kills
    BENCH_ARGS="kills --kills 10" make bench-fleet          one part of it: cost or kills

*cost*: simulated cameras (1080p, 15 pictures a second, 3 Mbit/s, one of five with somebody in it) in a process of
their own, two workers, control, dispatcher, web and PostgreSQL, each a process; somebody has the wall open and gets
every camera's picture once an interval. CPU is counted for each process by /proc over a window in which looks come by
the grid. An analyzer that answers at once stands in for the model, and neither it nor the cameras are counted. Then
there are ten times as many cameras.

*kills*: ten real workers, two at each of five sites, with cameras that are drawn; leases of 10 s and heartbeats of
1 s instead of 90 and 10, so everything is about nine times as quick as usual. One worker of each site is killed by
kill -9, all at moments of their own; what counts is the time until a look of each of its cameras by another worker is
recorded. The worker starts anew, and the next round kills whoever has most cameras by then.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import uvloop

from bench import _capture_video
from bench._cameras import name_of
from bench._child import child
from bench._databases import database
from bench._fleet import Fleet, add_sites, difference, fleet, watched
from bench._report import QUICK, Row, figure, less_is_better, report, say
from tests.rig.polling import poll_async

PARTS = ("cost", "kills")
SMALL, LARGE = (5, 50) if QUICK else (50, 500)
INTERVAL_SEC = 5 if QUICK else 30
WINDOW_SEC = 7.0 if QUICK else 60.0
WORKERS, SLOTS = 2, 300

SITES = 2 if QUICK else 5
CAMERAS_A_SITE = 4
KILLS = 2 if QUICK else 50
TTL_SEC, HEARTBEAT_SEC, MARGIN_SEC = 10, 1, 1
# Whoever was killed right after a heartbeat is missed for a whole lease; upkeep looks every 5 s, a start and a look
# take their time.
KILL_BOUND_SEC = 20.0


@dataclass(frozen=True, slots=True)
class Cost:
    cameras: int
    looks: int
    seconds: float
    cpu: dict[str, float]

    @property
    def cores(self) -> float:
        return sum(self.cpu.values()) / self.seconds

    @property
    def cameras_per_core(self) -> float:
        return INTERVAL_SEC * 1000 / self.cpu_ms_a_look

    def share(self, name: str) -> float:
        return self.cpu[name] / sum(self.cpu.values()) * 100

    @property
    def cpu_ms_a_look(self) -> float:
        return sum(self.cpu.values()) * 1000 / max(self.looks, 1)


async def measure(made: Fleet, cameras: int, window_sec: float) -> Cost:
    await made.until_looked(cameras)
    names = [name_of(number) for number in range(cameras)]
    async with watched(made, names, INTERVAL_SEC):
        # The first looks were due at once, and some by the grid right after them: one interval until all go by it.
        await asyncio.sleep(INTERVAL_SEC)
        looks, before, began = await made.count("frames"), made.cpu(), time.monotonic()
        await asyncio.sleep(window_sec)
        took, after = time.monotonic() - began, made.cpu()
        looks = await made.count("frames") - looks
    cost = Cost(cameras, looks, took, difference(after, before))
    made.must_run()
    failed = await made.count("frames WHERE collector_status <> 'ok'")
    say(
        f"{cameras} cameras: {looks} looks in {took:.1f} s ({cameras / INTERVAL_SEC * took:.0f} due), "
        f"{cost.cores:.2f} cores; {failed} looks failed so far"
    )
    return cost


async def cost(window_sec: float) -> list[Row]:
    videos = [str(path) for path in _capture_video.videos()]
    looks: dict[str, dict[str, object]] = {"looks": {"polling_interval_sec": INTERVAL_SEC}}
    with database("PostgreSQL") as base:
        cache = base.folder / "videos"
        cache.mkdir()
        asked = {"count": LARGE, "videos": videos, "cache": str(cache), "faults_seed": None, "faults_log": None}
        with child("_cameras", **asked) as cameras:
            port = int(await asyncio.to_thread(cameras.hear))
            async with fleet(base, looks) as made:
                for number in range(WORKERS):
                    made.start_worker(f"worker-{number}", SLOTS)
                await made.add_cameras(port, range(SMALL))
                small = await measure(made, SMALL, window_sec)
                await made.add_cameras(port, range(SMALL, LARGE))
                large = await measure(made, LARGE, window_sec)
                kept = await kept_rows(made)
    return [*cost_rows(small, large), *kept]


async def kept_rows(made: Fleet) -> list[Row]:
    """What a look leaves behind; tables are young, so their pages are not full yet."""
    looks = max(await made.count("frames"), 1)
    passed = await made.count("frames WHERE verdict <> 'skip'")
    frames = await made.rows.fetchval("SELECT pg_total_relation_size('frames')")
    jobs = await made.rows.fetchval("SELECT pg_total_relation_size('inference_jobs')")
    pictures = await made.rows.fetchval("SELECT sum(coalesce(infer_bytes, 0) + coalesce(full_bytes, 0)) FROM frames")
    return [
        figure("of all looks, those that the gate passed on", passed / looks * 100, "%"),
        figure("a look in the database, with indexes", frames / looks, "bytes"),
        figure("a job in the database, with indexes", jobs / max(passed, 1), "bytes"),
        figure("a look's pictures", float(pictures or 0) / looks / 1000, "kB"),
    ]


def cost_rows(small: Cost, large: Cost) -> list[Row]:
    scene = f"{large.cameras} cameras every {INTERVAL_SEC} s"
    grown, growth = large.cameras / small.cameras, large.cores / small.cores
    # What each further camera takes, without what the processes take by themselves.
    further = (large.cores - small.cores) / (large.cameras - small.cameras)
    rows = [
        figure(f"{scene}, cameras a core, everything but analysis", large.cameras_per_core, ""),
        figure(f"{scene}, CPU a look, everything but analysis", large.cpu_ms_a_look, "ms"),
        *[figure(f"{scene}, share of {name}", large.share(name), "%") for name in large.cpu],
        less_is_better(
            f"from {small.cameras} to {large.cameras} cameras, CPU grows by",
            growth,
            grown,
            "as cameras do",
            "times",
            1.0,
        ),
        figure(f"{small.cameras} cameras, cores", small.cores, ""),
        figure(f"{large.cameras} cameras, cores", large.cores, ""),
        figure("CPU of each further camera", further * 100, "% of a core"),
    ]
    return rows


# ---------------------------------------------------------------------------------------------------------------
# Kills
# ---------------------------------------------------------------------------------------------------------------


class Kills:
    def __init__(self, made: Fleet, chance: random.Random, wanted: int) -> None:
        self._made = made
        self._wanted = wanted
        self._chance = chance
        self.took_sec: list[float] = []

    async def round(self) -> None:
        """One worker of each site, each at a moment of its own; those that were killed come back afterwards."""
        victims = [await self._fullest(site) for site in range(SITES)][: self._wanted - len(self.took_sec)]
        await asyncio.gather(*(self._kill(name) for name in victims))
        if len(self.took_sec) >= self._wanted:
            return
        for name in victims:
            if self._made.workers[name].exit_code is not None:
                self._made.start_worker(name, CAMERAS_A_SITE, site_of(name))
        await self._all_connected()
        await self._going()

    async def _fullest(self, site: int) -> str:
        """Of the site's workers the one with most cameras: one without any would be missed by nobody."""
        names = [f"site-{site}-worker-{number}" for number in range(2)]
        held = [len(await self._held(name)) for name in names]
        return names[held.index(max(held))]

    async def _kill(self, name: str) -> None:
        await asyncio.sleep(self._chance.uniform(0, 2 * HEARTBEAT_SEC))
        held = await self._held(name)
        self._made.workers[name].kill()
        began = time.monotonic()
        left = {row["camera_key"]: row["generation"] for row in held}

        async def all_seen() -> bool:
            rows = await self._made.rows.fetch(
                "SELECT camera_key, max(generation) AS generation FROM frames "
                "WHERE camera_key = ANY($1::bigint[]) AND collector_status = 'ok' GROUP BY camera_key",
                list(left),
            )
            seen = {row["camera_key"]: row["generation"] for row in rows}
            return all(seen.get(key, 0) > generation for key, generation in left.items())

        await poll_async(all_seen, f"looks of the cameras of {name}", 120.0)
        took = time.monotonic() - began
        self.took_sec.append(took)
        say(f"{name} killed with {len(left)} cameras: {took:.1f} s")

    async def _held(self, name: str) -> Sequence[Mapping[str, int]]:
        found = await self._made.rows.fetch(
            "SELECT s.camera_key, s.generation FROM camera_sessions s JOIN workers w ON w.worker_key = s.worker_key "
            "WHERE w.worker_id = $1 AND s.state = 'ACTIVE'",
            name,
        )
        return list(found)

    async def _all_connected(self) -> None:
        async def connected() -> bool:
            self._made.must_run()
            return await self._made.count("workers WHERE connected_epoch IS NOT NULL") == 2 * SITES

        await poll_async(connected, "every worker", 120.0)

    async def _going(self) -> None:
        async def going() -> bool:
            return await self._made.count("camera_sessions WHERE state = 'ACTIVE'") == SITES * CAMERAS_A_SITE

        await poll_async(going, "every camera", 120.0)


def site_of(worker: str) -> str:
    return worker.partition("-worker")[0]


async def kills(wanted: int) -> list[Row]:
    leases = {
        "ttl_sec": TTL_SEC,
        "heartbeat_sec": HEARTBEAT_SEC,
        "margin_sec": MARGIN_SEC,
        "restart_grace_sec": 0,
    }
    chosen: dict[str, dict[str, object]] = {"leases": dict(leases), "looks": {"polling_interval_sec": 1}}
    with database("PostgreSQL") as base:
        async with fleet(base, chosen) as made:
            names = [f"site-{number}" for number in range(SITES)]
            await add_sites(made, names)
            for name in names:
                for number in range(2):
                    made.start_worker(f"{name}-worker-{number}", CAMERAS_A_SITE, name)
            for place, name in enumerate(names):
                for number in range(CAMERAS_A_SITE):
                    camera = name_of(place * CAMERAS_A_SITE + number)
                    await made.api.add_camera(camera, camera, "test://moving", None, None, site=name)
            await made.until_looked(SITES * CAMERAS_A_SITE)
            killing = Kills(made, random.Random(7), wanted)
            while len(killing.took_sec) < wanted:
                await killing.round()
    return kill_rows(sorted(killing.took_sec))


def kill_rows(took: Sequence[float]) -> list[Row]:
    scene = f"{len(took)} kills of a worker, leases of {TTL_SEC} s, until all its cameras are seen"
    return [
        less_is_better(f"{scene}, the longest", took[-1], KILL_BOUND_SEC, "bound", "s", 1.0),
        figure(f"{scene}, the shortest", took[0], "s"),
        figure(f"{scene}, the middle one", median(took), "s"),
        figure(f"{scene}, nine of ten within", took[int(len(took) * 0.9)], "s"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to measure (default: everything)")
    parser.add_argument("--window", type=float, default=WINDOW_SEC, help=f"seconds of cost (default {WINDOW_SEC:g})")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"how many workers are killed (default {KILLS})")
    asked = parser.parse_args()
    parts = asked.parts or PARTS
    rows: list[Row] = []
    if "cost" in parts:
        rows += uvloop.run(cost(asked.window))
    if "kills" in parts:
        rows += uvloop.run(kills(asked.kills))
    report("fleet", rows)


if __name__ == "__main__":
    main()
