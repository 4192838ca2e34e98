"""Closing events whose time is up: from where they were last seen, and never before a job that may still join."""

import asyncio

import pytest

from camserver.domain.events import EventPolicy, close_after_ms
from camserver.store import Store, Tx
from camserver.store.events import close_stale
from camserver.store.outcomes import Applied
from tests.domain.build import analysis
from tests.store.analyzing import Held, hold, rows, settle
from tests.store.scenery import INTERVAL_MS, NOW_MS, Scene, furnish, look, recorded

pytestmark = pytest.mark.asyncio(loop_scope="module")

POLICY = EventPolicy()
DUE_MS = NOW_MS + close_after_ms(POLICY, INTERVAL_MS)


async def close(store: Store, now_ms: int) -> int:
    return await store.write(close_stale, now_ms, POLICY, INTERVAL_MS)


async def opened(store: Store, cameras: int = 1) -> Scene:
    scene = await furnish(store, cameras=cameras)
    for camera in range(cameras):
        held = await hold(store, scene, camera, 1, NOW_MS, analysis(), NOW_MS)
        assert await settle(store, held, now_ms=NOW_MS) == (Applied.DONE,)
    return scene


async def test_an_event_closes_when_its_time_is_up_and_not_before(fresh_store: Store) -> None:
    scene = await opened(fresh_store)
    assert await close(fresh_store, DUE_MS) == 0
    assert await close(fresh_store, DUE_MS + 1) == 1
    assert await close(fresh_store, DUE_MS + 2) == 0
    (event,) = await fresh_store.read(rows, "events", "event_id")
    assert (event["state"], event["end_at"], event["open_key"]) == ("closed", NOW_MS, None)
    (state,) = await fresh_store.read(rows, "camera_state", "camera_key")
    assert (state["open_event_id"], state["version"], state["incident_id"]) == (None, 2, event["incident_id"])
    last = (await fresh_store.read(rows, "changes", "seq"))[-1]
    assert (last["kind"], last["object_id"], last["camera_key"]) == ("event", event["event_id"], scene.camera_keys[0])


async def test_stale_events_are_closed_at_start_from_where_they_were_last_seen(fresh_store: Store) -> None:
    """Decisions 22: the server was away for days."""
    await opened(fresh_store, cameras=5)
    assert await close(fresh_store, NOW_MS + 5 * 86_400_000) == 5
    assert {event["end_at"] for event in await fresh_store.read(rows, "events", "event_id")} == {NOW_MS}


@pytest.mark.parametrize("status", ["queued", "delayed", "running"])
async def test_an_unfinished_job_from_before_keeps_the_event_open(fresh_store: Store, status: str) -> None:
    scene = await opened(fresh_store)
    await recorded(fresh_store, look(scene, 0, 2, NOW_MS + 60_000))
    await fresh_store.write(set_status, status)
    assert await close(fresh_store, DUE_MS + 999_999) == 0
    await fresh_store.write(set_status, "dead")
    assert await close(fresh_store, DUE_MS + 999_999) == 1


async def set_status(tx: Tx, status: str) -> None:
    await tx.run("UPDATE inference_jobs SET status = :status WHERE status <> 'done'", status=status)


async def test_a_job_from_after_its_time_or_of_another_camera_does_not(fresh_store: Store) -> None:
    scene = await opened(fresh_store, cameras=2)
    await recorded(fresh_store, look(scene, 0, 2, DUE_MS + 1))
    assert await close(fresh_store, DUE_MS + 2) == 2


async def test_a_long_interval_keeps_events_open_longer(fresh_store: Store) -> None:
    scene = await opened(fresh_store, cameras=2)
    await fresh_store.write(set_interval, scene.camera_keys[0], scene.tenant_id, 600.5)
    assert await close(fresh_store, DUE_MS + 1) == 1
    due_ms = NOW_MS + close_after_ms(POLICY, 600_500)
    assert await close(fresh_store, due_ms) == 0
    assert await close(fresh_store, due_ms + 1) == 1


async def set_interval(tx: Tx, camera_key: int, tenant_id: int, interval_sec: float) -> None:
    await tx.run(
        "INSERT INTO camera_overrides (camera_key, tenant_id, polling_interval_sec, updated_at) "
        "VALUES (:camera_key, :tenant_id, :interval_sec, 0)",
        camera_key=camera_key,
        tenant_id=tenant_id,
        interval_sec=interval_sec,
    )


async def test_a_decision_made_before_the_close_is_made_again(fresh_store: Store) -> None:
    scene = await opened(fresh_store)
    at = DUE_MS + 1
    held = await hold(fresh_store, scene, 0, 2, at, analysis(), at)
    assert held.job.view.open_event is not None
    assert await close(fresh_store, at + 1) == 1
    assert await settle(fresh_store, held, now_ms=at + 1) == (Applied.STATE_MOVED,)


async def test_racing_sweeps_and_merges_close_an_event_once(fresh_pair: tuple[Store, Store]) -> None:
    first, second = fresh_pair
    cameras = 6
    scene = await opened(first, cameras)
    at = DUE_MS + 1
    helds = [await hold(first, scene, camera, 2, at, analysis(), at) for camera in range(cameras)]

    async def merge(store: Store, held: Held) -> Applied:
        (answer,) = await settle(store, held, now_ms=at)
        return answer

    results = await asyncio.gather(
        *(close(store, at + 1) for store in (first, second)),
        *(merge(second, held) for held in helds),
    )
    closed, answers = sum(results[:2]), results[2:]
    assert closed == answers.count(Applied.STATE_MOVED)
    assert closed + answers.count(Applied.DONE) == cameras
    changes = [row for row in await first.read(rows, "changes", "seq") if row["kind"] == "event"]
    # Opened once each; then closed by a sweep, or closed and replaced by a frame that came too late to merge.
    assert len(changes) == cameras + closed + 2 * answers.count(Applied.DONE)
    states = await first.read(rows, "camera_state", "camera_key")
    assert sum(state["open_event_id"] is None for state in states) == closed
