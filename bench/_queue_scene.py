"""What the queue benchmarks work on: cameras with open events, and jobs to be done for them."""

import json
from collections.abc import Iterable
from dataclasses import replace
from importlib import resources
from itertools import islice

from camserver.domain.analysis import Analysis, Box
from camserver.domain.events import EventPolicy
from camserver.domain.jobs import JobPolicy
from camserver.domain.leases import LeasePolicy
from camserver.domain.notices import DeliveryPolicy
from camserver.domain.outcomes import Policies, decide
from camserver.domain.vocabulary import SHIPPED_FILE, parse_vocabulary
from camserver.store import Sql, Store, Tx, frames, jobs, outcomes
from camserver.store.jobs import ClaimedJob, ClaimTerms
from camserver.store.outcomes import Finished
from camserver.store.questions import PREVIOUS_MAX_AGE_MS
from camserver.wire.analyzer import result_json
from tests.store.scenery import INTERVAL_MS, NOW_MS, Scene, furnish, look

CAMERAS = 400
BATCH = 16
VOCABULARY = parse_vocabulary(
    json.loads(resources.files("camserver.domain").joinpath(SHIPPED_FILE).read_text(encoding="utf-8"))
)
ANALYSIS = Analysis(
    schema_version=VOCABULARY.version,
    detected=True,
    primary_event="human",
    tags=("carry.bag", "count.single", "behavior.running", "top_color.red"),
    severity=1,
    unknown_flag=False,
    confidence=0.8,
    count_hint=1,
    boxes=(Box(0.1, 0.2, 0.3, 0.9, "person", 0.8),),
    model_name="bench",
    model_version="1",
)
TAG_GROUPS = tuple((tag, VOCABULARY.group_of(tag)) for tag in ANALYSIS.tags)
RESULT_JSON = result_json(ANALYSIS)
# A backlog is no reason for another order here: every contender works front to back.
TERMS = ClaimTerms(
    JobPolicy(backlog_jobs=1000, backlog_age_sec=86_400), EventPolicy(), INTERVAL_MS, PREVIOUS_MAX_AGE_MS
)
# As with receivers and an archive: what is detected is written down for the archive, too.
POLICIES = Policies(deliveries=DeliveryPolicy(archive=True, notify=True))


def finished(job: ClaimedJob, policies: Policies = POLICIES) -> Finished:
    outcome = decide(job.frame, ANALYSIS, job.view, VOCABULARY, policies, NOW_MS)
    return Finished(job.job_id, job.token, outcome, TAG_GROUPS, RESULT_JSON)


async def queue_jobs(store: Store, scene: Scene, count: int, first_seq: int = 1) -> None:
    """Records looks of all cameras in turn, a second apart, through the product's own path."""
    cameras = len(scene.camera_keys)
    looks = (
        look(
            scene,
            index % cameras,
            seq=first_seq + index // cameras,
            at_ms=NOW_MS + (first_seq + index // cameras) * 1000,
        )
        for index in range(count)
    )
    while batch := tuple(islice(looks, 256)):
        await store.write(frames.record, tuple(replace(one, received_at=NOW_MS) for one in batch), LeasePolicy())


async def open_events(store: Store, scene: Scene, policies: Policies = POLICIES) -> None:
    """One open event a camera, so that what is measured is the common case: a merge."""
    await queue_jobs(store, scene, len(scene.camera_keys))
    while claimed := await store.write(jobs.claim, "bench", "opening", BATCH, NOW_MS, TERMS):
        await store.write(outcomes.apply, tuple(finished(job, policies) for job in claimed), NOW_MS)


async def new_scene(store: Store, count: int) -> Scene:
    scene = await furnish(store, CAMERAS)
    await open_events(store, scene)
    await queue_jobs(store, scene, count, first_seq=2)
    return scene


async def add_finished(tx: Tx, scene: Scene, count: int, status: str, first: int) -> None:
    """Rows of the jobs table alone, made by the database itself: only the queue's own size matters for them."""
    numbers = Sql(
        sqlite=f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count - 1}) {_INSERT} n",
        postgres=f"{_INSERT} generate_series(0, {count - 1}) AS n(i)",
        mariadb=f"{_INSERT} (SELECT seq AS i FROM seq_0_to_{count - 1}) AS n",
    )
    await tx.run(
        numbers,
        tenant_id=scene.tenant_id,
        first=first,
        first_camera=scene.camera_keys[0],
        cameras=len(scene.camera_keys),
        status=status,
        now_ms=NOW_MS,
    )


_INSERT = """
INSERT INTO inference_jobs (tenant_id, frame_id, camera_key, captured_at, status, priority, lap, available_at,
  created_at)
SELECT :tenant_id, :first + i, :first_camera + i % :cameras, :now_ms, :status, 100, i / :cameras, :now_ms,
  :now_ms FROM"""


async def analyze_tables(tx: Tx) -> None:
    await tx.run(Sql("ANALYZE", mariadb="ANALYZE TABLE inference_jobs"))


async def take_queued(tx: Tx) -> list[int]:
    rows = await tx.all("SELECT frame_id FROM inference_jobs WHERE status = 'queued' ORDER BY job_id")
    await tx.run("UPDATE inference_jobs SET status = 'done' WHERE status = 'queued'")
    return [row["frame_id"] for row in rows]


async def analyzed(tx: Tx) -> int:
    row = await tx.one("SELECT count(*) AS n FROM frames WHERE analyzed = 1")
    return 0 if row is None else int(row["n"])


async def claim_only(tx: Tx, token: str) -> int:
    return len(await jobs.claim(tx, "bench", token, BATCH, NOW_MS, TERMS))


async def raise_version(tx: Tx, camera_key: int) -> None:
    await tx.run(
        "UPDATE camera_state SET version = version + 1 WHERE camera_key = :camera_key", camera_key=camera_key
    )


def percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
