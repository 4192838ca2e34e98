"""Whole jobs a second: claim and full completion on each database, beside two peers and beside the limit.

The peers run on the same PostgreSQL and do the same completion. `ratio` above 1 means that we are better.
"""

import asyncio
import threading
import time
from dataclasses import dataclass

import uuid_utils
import uvloop

from bench import _queue_peers, _queue_pgbench
from bench import _queue_scene as scene_ops
from bench._databases import Database, database
from bench._queue_scene import (
    BATCH,
    CAMERAS,
    TERMS,
    add_finished,
    analyze_tables,
    finished,
    new_scene,
    percentile,
)
from bench._report import QUICK, Row, figure, less_is_better, more_is_better, report, say
from camserver.store import Store, jobs, open_store, outcomes
from camserver.store.outcomes import Applied
from tests.store.scenery import NOW_MS, furnish

JOBS = 3_200 if QUICK else 9_600
PEER_JOBS = 400 if QUICK else 1_200
WORKERS = (16,) if QUICK else (1, 4, 16)
DONE_ROWS, QUEUED_ROWS = (50_000, 10_000) if QUICK else (1_000_000, 100_000)
CLAIMS = 300
BUSY_SEC = 1.0 if QUICK else 5.0
POOL = 20


@dataclass(frozen=True, slots=True)
class Speed:
    jobs_per_sec: float
    client_cpu_ms: float  # of our process and the SQLite writer, a job
    all_cpu_ms: float  # with the database server's


async def work(store: Store) -> int:
    """One worker: claims and finishes until nothing is left."""
    done = 0
    while claimed := await store.write(jobs.claim, "bench", str(uuid_utils.uuid7()), BATCH, NOW_MS, TERMS):
        while claimed:
            answers = await store.write(outcomes.apply, tuple(finished(job) for job in claimed), NOW_MS)
            done += answers.count(Applied.DONE)
            moved = [job for job, answer in zip(claimed, answers, strict=True) if answer is Applied.STATE_MOVED]
            claimed = ()
            if moved:
                ids, tokens = tuple(job.job_id for job in moved), tuple({job.token for job in moved})
                claimed = await store.read(jobs.claimed, ids, tokens, TERMS)
    return done


async def measure_ours(base: Database, workers: int) -> Speed:
    store = await open_store(base.url(f"ours_{workers}"), pool_size=POOL)
    try:
        await new_scene(store, JOBS)
        await store.write(analyze_tables)
        before = base.cpu()
        started = time.perf_counter()
        done = sum(await asyncio.gather(*(work(store) for _ in range(workers))))
        took = time.perf_counter() - started
        used = base.cpu() - before
        if done != JOBS:
            raise RuntimeError(f"{done} jobs were done of {JOBS}")
    finally:
        await store.close()
    say(f"  {base.name}, {workers} workers: {done / took:,.0f} jobs/s")
    return Speed(done / took, used.client / done * 1000, used.total / done * 1000)


async def measure_peer(base: Database, peer: str) -> Speed:
    url = base.url(f"peer_{peer}")
    # A peer may start all its tasks at once; they wait for a connection as long as it takes.
    store = await open_store(url, pool_size=POOL, acquire_timeout_sec=600.0)
    run = {"pgqueuer": _queue_peers.run_pgqueuer, "procrastinate": _queue_peers.run_procrastinate}[peer]
    try:
        await new_scene(store, PEER_JOBS)
        await store.write(analyze_tables)
        frame_ids = await store.write(scene_ops.take_queued)
        before = base.cpu()
        took = await run(url, store, frame_ids, 16)
        used = base.cpu() - before
        finished_count = await store.read(scene_ops.analyzed)
        if finished_count != PEER_JOBS + CAMERAS:
            raise RuntimeError(f"{peer} finished {finished_count - CAMERAS} jobs of {PEER_JOBS}")
    finally:
        await store.close()
    say(f"  {peer}: {PEER_JOBS / took:,.0f} jobs/s")
    return Speed(PEER_JOBS / took, used.client / PEER_JOBS * 1000, used.total / PEER_JOBS * 1000)


async def measure_pgbench(base: Database) -> float:
    url = base.url("pgbench")
    store = await open_store(url, pool_size=POOL)
    scene = await new_scene(store, JOBS)
    await store.close()
    speed = await _queue_pgbench.jobs_per_second(url, scene, JOBS, 16, base.folder)
    say(f"  pgbench: {speed:,.0f} jobs/s")
    return speed


async def claim_p99_ms(base: Database, name: str, done: int, queued: int) -> float:
    store = await open_store(base.url(name), pool_size=POOL)
    try:
        scene = await furnish(store, CAMERAS)
        if done:
            await store.write(add_finished, scene, done, "done", 1)
        await store.write(add_finished, scene, queued, "queued", done + 1)
        await store.write(analyze_tables)
        took = []
        for _ in range(CLAIMS):
            started = time.perf_counter()
            await store.write(scene_ops.claim_only, str(uuid_utils.uuid7()))
            took.append((time.perf_counter() - started) * 1000)
    finally:
        await store.close()
    return percentile(took, 0.99)


async def busy_operations_per_sec() -> float:
    """Writes a second on SQLite while another thread of the same process computes without a pause."""
    stop = threading.Event()

    def compute() -> None:
        number = 0
        while not stop.is_set():
            for _ in range(10_000):
                number += 1

    with database("SQLite") as base:
        store = await open_store(base.url("busy"))
        scene = await furnish(store, 16)
        thread = threading.Thread(target=compute, daemon=True)
        thread.start()
        try:
            deadline = time.perf_counter() + BUSY_SEC
            counts = await asyncio.gather(*(_touch(store, key, deadline) for key in scene.camera_keys))
        finally:
            stop.set()
            thread.join()
            await store.close()
    return sum(counts) / BUSY_SEC


async def _touch(store: Store, camera_key: int, deadline: float) -> int:
    count = 0
    while time.perf_counter() < deadline:
        await store.write(scene_ops.raise_version, camera_key)
        count += 1
    return count


async def main() -> None:
    rows: list[Row] = []
    speeds: dict[str, Speed] = {}
    for name in ("SQLite", "PostgreSQL", "MariaDB"):
        say(name)
        with database(name) as base:
            for workers in WORKERS:
                speed = await measure_ours(base, workers)
                rows.append(figure(f"{name}, {workers} workers", speed.jobs_per_sec, "jobs/s"))
            speeds[name] = speed
            rows.append(figure(f"{name}, CPU of our processes, 16 workers", speed.client_cpu_ms, "ms/job"))
            if name == "PostgreSQL":
                peers = {peer: await measure_peer(base, peer) for peer in ("procrastinate", "pgqueuer")}
                limit = await measure_pgbench(base)
            full = await claim_p99_ms(base, "full", DONE_ROWS, QUEUED_ROWS)
            empty = await claim_p99_ms(base, "empty", 0, CLAIMS * BATCH)
            label = f"{name}, claim p99 with {DONE_ROWS:,} done and {QUEUED_ROWS:,} queued"
            rows.append(less_is_better(label, full, empty, "an empty table", "ms", aim=1 / 3))
    ours = speeds["PostgreSQL"]
    better = max(peers, key=lambda peer: peers[peer].jobs_per_sec)
    for peer, speed in peers.items():
        aim = 2.0 if peer == better else None
        name = f"PostgreSQL, 16 workers, beside {peer}"
        rows.append(more_is_better(name, ours.jobs_per_sec, speed.jobs_per_sec, peer, "jobs/s", aim))
        name = f"PostgreSQL, CPU of program and server, beside {peer}"
        rows.append(less_is_better(name, ours.all_cpu_ms, speed.all_cpu_ms, peer, "ms/job"))
    rows.append(
        more_is_better("PostgreSQL, 16 workers, the limit", ours.jobs_per_sec, limit, "pgbench", "jobs/s", 0.7)
    )
    rows.append(
        more_is_better(
            "SQLite, 16 workers", speeds["SQLite"].jobs_per_sec, ours.jobs_per_sec, "our PostgreSQL", "jobs/s", 2.0
        )
    )
    busy = await busy_operations_per_sec()
    rows.append(more_is_better("SQLite, writes beside a busy thread", busy, 2000.0, "the aim", "operations/s", 1.0))
    report("queue", rows)


if __name__ == "__main__":
    uvloop.run(main())
