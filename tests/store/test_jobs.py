"""The queue's order, its fences and races; test_jobs_machine.py holds it against a model."""

import asyncio
import json

import pytest

from camserver.domain.events import EventPolicy
from camserver.domain.jobs import Dead, Delay, JobPolicy, Skip
from camserver.store import Store, Tx
from camserver.store.jobs import (
    ClaimedJob,
    ClaimTerms,
    Failure,
    claim,
    claimed,
    count_by_status,
    fail,
    promote_delayed,
    release,
    return_expired,
    skip_beyond_bound,
    skip_old,
)
from tests.store.scenery import INTERVAL_MS, NOW_MS, Scene, furnish, look, recorded

pytestmark = pytest.mark.asyncio(loop_scope="module")

POLICY = JobPolicy()
TERMS = ClaimTerms(POLICY, EventPolicy(), INTERVAL_MS)
DAY_MS = 86_400_000


async def queue(store: Store, scene: Scene, camera: int, seqs: range, priority: int = 100) -> None:
    for seq in seqs:
        await recorded(store, look(scene, camera, seq, NOW_MS + seq, priority=priority))


async def take(store: Store, count: int = 1, token: str = "t", now_ms: int = NOW_MS) -> tuple[ClaimedJob, ...]:
    return await store.write(claim, "d", token, count, now_ms, TERMS)


def which(scene: Scene, jobs: tuple[ClaimedJob, ...]) -> list[tuple[int, int]]:
    """(camera, seq) of each job."""
    return [(scene.camera_keys.index(job.frame.camera_key), job.frame.captured_at - NOW_MS) for job in jobs]


async def job_columns(tx: Tx, names: str) -> list[tuple[object, ...]]:
    rows = await tx.all(f"SELECT {names} FROM inference_jobs ORDER BY job_id")
    return [tuple(row[name.strip()] for name in names.split(",")) for row in rows]


# Order


async def test_higher_priority_comes_first(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    await queue(fresh_store, scene, 0, range(1, 2), priority=10)
    await queue(fresh_store, scene, 1, range(1, 2), priority=200)
    await queue(fresh_store, scene, 2, range(1, 2), priority=100)
    order = [which(scene, await take(fresh_store, token=str(turn)))[0][0] for turn in range(3)]
    assert order == [1, 2, 0]


async def test_a_camera_with_a_long_queue_starves_nobody(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    await queue(fresh_store, scene, 0, range(1, 30))
    await queue(fresh_store, scene, 1, range(1, 2))
    await queue(fresh_store, scene, 2, range(1, 2))
    found = which(scene, await take(fresh_store, 3))
    assert {camera for camera, _ in found} == {0, 1, 2}


async def test_a_camera_that_keeps_up_is_served_oldest_first(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    await queue(fresh_store, scene, 0, range(1, POLICY.backlog_jobs + 1))
    assert which(scene, await take(fresh_store)) == [(0, 1)]


async def test_a_camera_with_many_waiting_jobs_is_served_newest_first(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    await queue(fresh_store, scene, 0, range(1, POLICY.backlog_jobs + 2))
    assert which(scene, await take(fresh_store)) == [(0, POLICY.backlog_jobs + 1)]


async def test_a_drained_spool_is_a_backlog_too(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    await recorded(fresh_store, *(look(scene, 0, seq, NOW_MS + seq) for seq in range(1, 9)))
    assert which(scene, await take(fresh_store, 16)) == [(0, 8)]


async def test_a_camera_whose_oldest_job_waited_long_is_served_newest_first(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    await queue(fresh_store, scene, 0, range(1, 3))
    later = NOW_MS + POLICY.backlog_age_sec * 1000 + 2
    assert which(scene, await take(fresh_store, now_ms=later)) == [(0, 2)]


async def test_a_claim_takes_at_most_one_job_of_a_camera(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=2)
    await queue(fresh_store, scene, 0, range(1, 10))
    await queue(fresh_store, scene, 1, range(1, 10))
    assert sorted(camera for camera, _ in which(scene, await take(fresh_store, 16))) == [0, 1]
    assert await take(fresh_store, 16, "next") != ()


async def test_an_empty_queue_has_nothing(fresh_store: Store) -> None:
    assert await take(fresh_store, 16) == ()


async def test_a_claim_brings_what_deciding_takes(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    sent = look(scene, 0, 1, NOW_MS, blur_score=12.125)
    await recorded(fresh_store, sent)
    await fresh_store.write(prepare_camera, scene.camera_keys[0], scene.tenant_id)
    (job,) = await take(fresh_store)
    assert (job.frame_uuid, job.camera_id, job.epoch_id) == (sent.frame_uuid, "cam_0", scene.epoch_id)
    assert (job.attempt, job.token, job.created_at) == (1, "t", NOW_MS)
    assert (job.frame.blur_score, job.frame.late, job.frame.interval_ms) == (12.125, False, 2500)
    assert (job.view.version, job.view.open_event, job.view.incident) == (0, None, None)
    (still,) = job.view.stills
    assert (still.label, still.x1, still.seen) == ("car", 0.1, 3)
    assert (job.frame.is_watched, job.view.seems_covered) == (False, False)


async def prepare_camera(tx: Tx, camera_key: int, tenant_id: int) -> None:
    stills = json.dumps([["car", 0.1, 0.2, 0.3, 0.4, 1, 2, 3, 0]])
    await tx.run("UPDATE camera_state SET stills = :stills WHERE camera_key = :key", stills=stills, key=camera_key)
    await tx.run(
        "INSERT INTO camera_overrides (camera_key, tenant_id, polling_interval_sec, updated_at) "
        "VALUES (:key, :tenant_id, 2.5, 0)",
        key=camera_key,
        tenant_id=tenant_id,
    )


# Races


async def test_racing_claims_never_hand_out_a_job_twice(fresh_pair: tuple[Store, Store]) -> None:
    scene = await furnish(fresh_pair[0], cameras=10)
    for seq in range(1, 7):
        await recorded(fresh_pair[0], *(look(scene, camera, seq, NOW_MS + seq) for camera in range(10)))
    taken: list[int] = []

    async def dispatch(number: int) -> None:
        empty, turn = 0, 0
        # A claim may come back empty while others hold the locks; only several in a row mean that all is gone.
        while empty < 5:
            turn += 1
            jobs = await take(fresh_pair[number % 2], 4, f"{number}.{turn}")
            cameras = [job.frame.camera_key for job in jobs]
            assert len(cameras) == len(set(cameras))
            taken.extend(job.job_id for job in jobs)
            empty = 0 if jobs else empty + 1

    await asyncio.gather(*(dispatch(number) for number in range(8)))
    assert len(taken) == len(set(taken))
    # Whatever a race left over is still there for the next claim.
    while jobs := await take(fresh_pair[0], 16, f"rest {len(taken)}"):
        taken.extend(job.job_id for job in jobs)
    assert len(taken) == len(set(taken)) == 60


async def test_racing_sweeps_and_claims_agree(fresh_pair: tuple[Store, Store]) -> None:
    first, second = fresh_pair
    scene = await furnish(first, cameras=6)
    await recorded(first, *(look(scene, camera, 1, NOW_MS) for camera in range(6)))
    jobs = await take(first, 6)
    assert len(jobs) == 6
    later = NOW_MS + POLICY.lock_sec * 1000 + 1
    counts = await asyncio.gather(
        *(store.write(return_expired, later, POLICY, 0.0) for store in (first, second, first, second))
    )
    assert sum(counts) == 6
    assert await first.read(job_columns, "status, attempt") == [("delayed", 1)] * 6
    due = later + 10_000
    counts = await asyncio.gather(*(store.write(promote_delayed, due) for store in (first, second)))
    assert sum(counts) == 6


# Fences


async def test_whoever_lost_its_fence_changes_nothing(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    await queue(fresh_store, scene, 0, range(1, 2))
    (stale,) = await take(fresh_store, token="first")
    later = NOW_MS + POLICY.lock_sec * 1000 + 1
    await fresh_store.write(return_expired, later, POLICY, 0.0)
    await fresh_store.write(promote_delayed, later + 600_000)
    (mine,) = await take(fresh_store, token="second", now_ms=later)
    assert (mine.job_id, mine.attempt) == (stale.job_id, 2)
    before = await fresh_store.read(job_columns, "status, attempt, locked_token, locked_until, last_error")
    for follows in (Dead("x"), Skip("x"), Delay(0, refund=True)):
        await fresh_store.write(fail, (Failure(stale.job_id, "first", follows, "late"),), later)
    assert await fresh_store.read(job_columns, "status, attempt, locked_token, locked_until, last_error") == before
    assert await fresh_store.read(claimed, (stale.job_id,), ("first",), TERMS) == ()
    assert [job.job_id for job in await fresh_store.read(claimed, (mine.job_id,), ("second",), TERMS)] == [
        mine.job_id
    ]


async def test_an_outage_of_an_hour_costs_no_attempt(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    await queue(fresh_store, scene, 0, range(1, 2))
    now_ms = NOW_MS
    for turn in range(30):
        (job,) = await take(fresh_store, token=str(turn), now_ms=now_ms)
        assert job.attempt == 1
        now_ms += 120_000
        await fresh_store.write(fail, (Failure(job.job_id, job.token, Delay(now_ms, True), "away"),), now_ms)
        assert await fresh_store.write(promote_delayed, now_ms) == 1
    assert await fresh_store.read(job_columns, "status, attempt") == [("queued", 0)]


async def test_a_stopping_dispatcher_gives_back_its_own_only(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=2)
    await queue(fresh_store, scene, 0, range(1, 2))
    await queue(fresh_store, scene, 1, range(1, 2))
    await fresh_store.write(claim, "mine", "a", 1, NOW_MS, TERMS)
    await fresh_store.write(claim, "theirs", "b", 1, NOW_MS, TERMS)
    assert await fresh_store.write(release, "mine") == 1
    assert await fresh_store.read(job_columns, "status, attempt, locked_by") == [
        ("queued", 0, None),
        ("running", 1, "theirs"),
    ]


async def test_a_long_reason_is_cut_to_its_column(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    await queue(fresh_store, scene, 0, range(1, 2))
    (job,) = await take(fresh_store)
    await fresh_store.write(fail, (Failure(job.job_id, job.token, Dead("why"), "日" * 1000),), NOW_MS)
    ((status, finished_at, error),) = await fresh_store.read(job_columns, "status, finished_at, last_error")
    assert (status, finished_at) == ("dead", NOW_MS)
    assert str(error).startswith("why: 日")
    assert len(str(error)) == 255


# Giving up


async def test_jobs_older_than_a_day_are_skipped_but_not_running_ones(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=3)
    await recorded(fresh_store, *(look(scene, camera, 1, NOW_MS) for camera in range(2)))
    await recorded(fresh_store, look(scene, 2, 1, NOW_MS + 1))
    await take(fresh_store)
    assert await fresh_store.write(skip_old, NOW_MS + DAY_MS, POLICY) == 0
    assert await fresh_store.write(skip_old, NOW_MS + DAY_MS + 1, POLICY) == 1
    assert await fresh_store.read(job_columns, "status, last_error") == [
        ("running", None),
        ("skipped", "older than 86400 s"),
        ("queued", None),
    ]


async def test_beyond_a_cameras_bound_the_oldest_are_skipped_with_a_reason(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=2)
    policy = JobPolicy(camera_bound=3)
    await recorded(fresh_store, *(look(scene, 0, seq, NOW_MS + seq) for seq in range(1, 7)))
    await recorded(fresh_store, *(look(scene, 1, seq, NOW_MS + seq) for seq in range(1, 4)))
    assert await fresh_store.write(skip_beyond_bound, NOW_MS, policy) == 3
    assert await fresh_store.write(skip_beyond_bound, NOW_MS, policy) == 0
    found = await fresh_store.read(job_columns, "status, last_error")
    assert found[:3] == [("skipped", "more than 3 waiting jobs of this camera")] * 3
    assert {status for status, _ in found[3:]} == {"queued"}
    assert await fresh_store.read(count_by_status) == {"queued": 6, "skipped": 3}


async def test_cameras_that_are_behind_take_turns(fresh_store: Store) -> None:
    """Each camera's newest first, but no camera a second time before all others had their turn."""
    scene = await furnish(fresh_store, cameras=6)
    for seq in range(1, 6):
        await recorded(fresh_store, *(look(scene, camera, seq, NOW_MS + seq) for camera in range(6)))
    taken = []
    for number in range(15):
        claimed = await fresh_store.write(claim, "dispatcher", f"token {number}", 2, NOW_MS + 3_600_000, TERMS)
        taken += [(job.frame.camera_key, job.frame.captured_at - NOW_MS) for job in claimed]
    for turn in range(5):
        served = taken[turn * 6 : turn * 6 + 6]
        assert sorted(camera for camera, _ in served) == sorted(scene.camera_keys)
        assert {seq for _, seq in served} == {5 - turn}, "the newest of each"
