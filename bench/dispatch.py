"""Jobs a second from the queue to their events, beside what the analyzer itself can do; an outage; deliveries.

The dispatcher as it is, with all its loops, on jobs with pictures of 50 kB; a real analyzer in a process of its own
that takes 20 ms for each and works on so many at once as are in flight. Beside it, as the limit, a bare loop of the
same requests with as many at once. Then an hour in which the analyzer refuses connections while 100,000 jobs wait:
the clock is moved, nobody waits for it.
"""

import asyncio
import gc
import os
import time
from dataclasses import dataclass

import aiohttp
import psutil
import uvloop

from bench._child import child
from bench._databases import Database, database
from bench._dispatch_deliveries import measure_deliveries
from bench._dispatch_stage import CAMERA_JOBS_MAX, PICTURE, Stage
from bench._report import QUICK, Row, figure, less_is_better, more_is_better, report, say
from camserver.base.collecting import collect_seldom
from camserver.clients.analyzer import Question, form_parts
from camserver.domain.vocabulary import SHIPPED_VERSION
from camserver.store import open_store
from tests.rig.ports import free_port
from tests.store.scenery import NOW_MS

TOOK_MS = 20
IN_FLIGHT = (1, 4, 16)
# As much as the analyzer does in so many seconds.
MEASURE_SEC = 2.0 if QUICK else 8.0
CAMERAS = 400
OUTAGE_JOBS = 2_000 if QUICK else 100_000
OUTAGE_SEC = 3_600
OUTAGE_STEP_SEC = 25
PATIENCE_SEC = 1_800
AIM = 0.9
# Memory may grow so much while the queue is drained, once the caches are full.
FLAT = 0.8
WARM_JOBS = 1_000 if QUICK else 10_000


@dataclass(frozen=True, slots=True)
class Speed:
    per_sec: float
    cpu_ms: float  # of this process, a job; of the store's writer or server nothing


async def bare_speed(url: str, in_flight: int) -> Speed:
    """What the analyzer can do: the same requests in a loop, nothing else."""
    boundary = "b" * 32
    question = Question(
        "cam_1", NOW_MS, "0198c0de-0000-7000-8000-000000000001", PICTURE, PICTURE, {"time_band": "day"}
    )
    body = b"".join(form_parts(question, SHIPPED_VERSION, boundary))
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    deadline = time.perf_counter() + MEASURE_SEC

    async def loop(session: aiohttp.ClientSession) -> int:
        count = 0
        while time.perf_counter() < deadline:
            async with session.post(f"{url}/v1/analyze", data=body, headers=headers) as answer:
                await answer.read()
            count += 1
        return count

    started, cpu = time.perf_counter(), time.process_time()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        done = sum(await asyncio.gather(*(loop(session) for _ in range(in_flight))))
    return Speed(done / (time.perf_counter() - started), (time.process_time() - cpu) * 1000 / done)


async def our_speed(base: Database, url: str, in_flight: int, with_sinks: bool = False) -> Speed:
    name = f"sinks_{in_flight}" if with_sinks else f"flight_{in_flight}"
    store = await open_store(base.url(name), pool_size=20)
    try:
        folder = base.folder / name
        stage = await Stage.open(store, folder, url, CAMERAS, batch=in_flight, camera_bound=1_000_000)
        if with_sinks:
            await stage.add_sinks(base.folder / "archive")
        await stage.queue(max(40, round(MEASURE_SEC * in_flight * 1000 / TOOK_MS)))
        cpu = time.process_time()
        async with stage.dispatcher():
            await asyncio.wait_for(stage.store.finished.wait(), PATIENCE_SEC)
            cpu_ms = (time.process_time() - cpu) * 1000 / stage.store.done
        return Speed(stage.store.jobs_per_sec(), cpu_ms)
    finally:
        await store.close()


async def measure_speed(base: Database, in_flight: int, with_sinks: bool = False) -> list[Row]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with child("_dispatch_analyzer", port=port, parallel=in_flight, took_ms=TOOK_MS) as analyzer:
        analyzer.hear()
        ours = await our_speed(base, url, in_flight, with_sinks)
        bare = await bare_speed(url, in_flight)
    name = f"{base.name}, {in_flight} in flight{', every picture copied to an archive' if with_sinks else ''}"
    say(f"  {name}: {ours.per_sec:,.0f} jobs/s, the analyzer alone {bare.per_sec:,.0f}")
    return [
        more_is_better(name, ours.per_sec, bare.per_sec, "the analyzer alone", "jobs/s", None if with_sinks else AIM),
        less_is_better(f"{name}, CPU a job", ours.cpu_ms, bare.cpu_ms, "asking alone", "ms"),
    ]


def memory_mb() -> float:
    """Of this process, its threads' heaps included, and of the store's writer."""
    gc.collect()
    process = psutil.Process(os.getpid())
    writers = [one for one in process.children() if "dispatch_analyzer" not in " ".join(one.cmdline())]
    return float(sum(one.memory_info().rss for one in [process, *writers])) / 1e6


async def measure_outage(base: Database) -> list[Row]:
    port = free_port()
    store = await open_store(base.url("outage"), pool_size=20)
    try:
        cameras = max(CAMERAS, OUTAGE_JOBS // CAMERA_JOBS_MAX)
        stage = await Stage.open(store, base.folder / "outage", f"http://127.0.0.1:{port}", cameras)
        await stage.queue(OUTAGE_JOBS)
        async with stage.dispatcher():
            for _ in range(0, OUTAGE_SEC, OUTAGE_STEP_SEC):
                stage.clock.move(OUTAGE_STEP_SEC * 1000)
                # Time for what the step brings: renewals, checks of health, jobs that come back.
                await asyncio.sleep(0.03)
            counts = await stage.counts()
            lost = counts.get("dead", 0) + counts.get("skipped", 0)
            say(f"  after an hour without analyzer: {counts}")
            with child("_dispatch_analyzer", port=port, parallel=16, took_ms=1) as analyzer:
                analyzer.hear()
                return [figure("Outage of an hour, jobs dead or skipped", lost, "jobs"), *await _drained(stage)]
    finally:
        await store.close()


async def _drained(stage: Stage) -> list[Row]:
    stage.clock.move(60_000)
    early_mb, late_mb = 0.0, 0.0
    started = time.perf_counter()
    while not stage.store.finished.is_set():
        await asyncio.sleep(0.2)
        if stage.store.done > WARM_JOBS:
            early_mb = early_mb or memory_mb()
        # Once: looking takes as long as many jobs do.
        if stage.store.done > 0.9 * OUTAGE_JOBS:
            late_mb = late_mb or memory_mb()
        if time.perf_counter() - started > PATIENCE_SEC:
            raise RuntimeError(f"{stage.store.done} jobs are done of {OUTAGE_JOBS}: {await stage.counts()}")
    late_mb = max(late_mb, memory_mb())
    took = time.perf_counter() - started
    attempts = await stage.counts()
    say(f"  drained in {took:.1f} s: {attempts}; {early_mb:.0f} MB early, {late_mb:.0f} MB late")
    done = attempts.get("done", 0)
    return [
        more_is_better("Outage of an hour, jobs done afterwards", done, OUTAGE_JOBS, "queued", "jobs", 1.0),
        figure("Outage of an hour, drained at", done / took, "jobs/s"),
        less_is_better(
            "Outage of an hour, memory late in the drain", late_mb, early_mb or late_mb, "early", "MB", FLAT
        ),
    ]


async def main() -> None:
    # As the processes of the product do.
    collect_seldom()
    rows: list[Row] = []
    for name in ("SQLite",) if QUICK else ("SQLite", "PostgreSQL", "MariaDB"):
        say(name)
        with database(name) as base:
            for in_flight in IN_FLIGHT:
                rows += await measure_speed(base, in_flight)
            rows += await measure_speed(base, IN_FLIGHT[-1], with_sinks=True)
            rows += await measure_deliveries(base)
            if name == "SQLite":
                rows += await measure_outage(base)
    report("dispatch", rows)


if __name__ == "__main__":
    uvloop.run(main())
