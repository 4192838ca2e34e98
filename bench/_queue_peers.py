"""procrastinate and pgqueuer on the same PostgreSQL: their queue, the same completion as ours, one job a task."""

import asyncio
import time
from typing import Any

import asyncpg
import pgqueuer
import procrastinate
from pgqueuer.domain.types import QueueExecutionMode

from bench._queue_scene import ANALYSIS, POLICIES, RESULT_JSON, TAG_GROUPS, TERMS, VOCABULARY
from camserver.domain.outcomes import decide
from camserver.store import Store, Tx, jobs, outcomes
from camserver.store.outcomes import Finished, Work
from tests.store.scenery import NOW_MS


async def complete(tx: Tx, frame_id: int) -> None:
    """Everything that finishing a job writes, but for the job itself, which is the peer's."""
    camera = await tx.one("SELECT camera_key FROM frames WHERE frame_id = :frame_id", frame_id=frame_id)
    assert camera is not None
    await tx.one(
        "SELECT version FROM camera_state WHERE camera_key = :camera_key FOR UPDATE", camera_key=camera["camera_key"]
    )
    row = await tx.one(f"{jobs.JOB_FACTS} WHERE j.frame_id = :frame_id", frame_id=frame_id)
    assert row is not None
    (job,) = await jobs.jobs_with_facts(tx, [row], TERMS)
    outcome = decide(job.frame, ANALYSIS, job.view, VOCABULARY, POLICIES, NOW_MS)
    await outcomes.write_results(tx, [Work(Finished(0, "", outcome, TAG_GROUPS, RESULT_JSON))], NOW_MS)


async def run_pgqueuer(url: str, store: Store, frame_ids: list[int], workers: int) -> float:
    """Seconds that pgqueuer took for the jobs, in batches as its documentation advises."""
    pool = await asyncpg.create_pool(url, min_size=1, max_size=workers + 4)
    driver = pgqueuer.AsyncpgPoolDriver(pool)
    queries = pgqueuer.Queries(driver)
    await queries.install()
    await queries.enqueue(["complete"] * len(frame_ids), [str(i).encode() for i in frame_ids], [0] * len(frame_ids))
    manager = pgqueuer.PgQueuer(driver)

    @manager.entrypoint("complete")
    async def _complete(job: pgqueuer.Job) -> None:
        await store.write(complete, int(job.payload or b"0"))

    started = time.perf_counter()
    await manager.run(batch_size=max(10, workers), mode=QueueExecutionMode.drain)
    took = time.perf_counter() - started
    await pool.close()
    return took


async def run_procrastinate(url: str, store: Store, frame_ids: list[int], workers: int) -> float:
    """Seconds that procrastinate took for the jobs."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=workers + 4))

    @app.task(name="complete")
    async def _complete(frame_id: int) -> None:
        await store.write(complete, frame_id)

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        arguments: list[dict[str, Any]] = [{"frame_id": frame_id} for frame_id in frame_ids]
        await _complete.batch_defer_async(*arguments)
        started = time.perf_counter()
        await app.run_worker_async(
            concurrency=workers, wait=False, install_signal_handlers=False, listen_notify=False
        )
        took = time.perf_counter() - started
        await asyncio.sleep(0)
    return took
