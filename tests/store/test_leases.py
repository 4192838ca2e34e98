"""Leases on all three databases, with racing users."""

import asyncio
from dataclasses import replace

from camserver.domain.leases import FrameStanding, LeasePolicy
from camserver.store import Store
from camserver.store.assignment import free_cameras, offers
from camserver.store.frames import Look, record
from camserver.store.leases import Claim, Want, reclaim, release, take_all
from camserver.store.renewals import Renewal, renew
from tests.store.scenery import Scene, look
from tests.store.singles import take
from tests.store.stage import NOW_MS, TTL_MS, Stage, build, check_history, session, spans, statement


def want(stage: Stage, worker: int = 0, camera: int = 0, expected: int = 0) -> Want:
    return Want(stage.cameras[camera].key, stage.workers[worker].worker_key, expected)


async def renewed(store: Store, stage: Stage, worker: int, now_ms: int, *held: tuple[str, int]) -> Renewal:
    return await store.write(renew, stage.tenant_id, stage.workers[worker].worker_key, held, TTL_MS, now_ms)


async def test_take_starts_a_generation_and_its_history(store: Store) -> None:
    stage = await build(store)
    lease = await store.write(take, want(stage), TTL_MS, NOW_MS)
    assert lease is not None
    assert (lease.generation, lease.expires_at) == (1, NOW_MS + TTL_MS)
    row = await session(store, stage.cameras[0].key)
    assert row["state"] == "PENDING"
    assert row["intent_id"] == lease.intent_id
    assert await spans(store, stage.cameras[0].key) == [(1, stage.workers[0].worker_key, NOW_MS, None, "")]


async def test_take_is_refused_while_another_holds_the_camera(store: Store) -> None:
    stage = await build(store)
    await store.write(take, want(stage), TTL_MS, NOW_MS)
    assert await store.write(take, want(stage, worker=1, expected=1), TTL_MS, NOW_MS) is None
    # Expired, but nobody declared it orphaned: right after a restart silence proves nothing.
    after = NOW_MS + TTL_MS + 1
    assert await store.write(take, want(stage, worker=1, expected=1), TTL_MS, after) is None
    await check_history(store, stage.cameras[0].key)


async def test_take_needs_the_expected_generation_and_an_enabled_camera(store: Store) -> None:
    stage = await build(store)
    assert await store.write(take, want(stage, expected=1), TTL_MS, NOW_MS) is None
    await store.write(
        statement,
        "UPDATE cameras SET enabled = 0 WHERE camera_key = :key",
        {"key": stage.cameras[0].key},
    )
    assert await store.write(take, want(stage), TTL_MS, NOW_MS) is None


async def test_racing_takes_have_one_winner(two_stores: tuple[Store, Store]) -> None:
    stage = await build(two_stores[0], workers=8, cameras=1)
    camera_key = stage.cameras[0].key
    for generation in range(4):
        now_ms = NOW_MS + generation * 1000
        leases = await asyncio.gather(
            *(
                two_stores[worker % 2].write(take, want(stage, worker, 0, generation), TTL_MS, now_ms)
                for worker in range(8)
            )
        )
        won = [lease for lease in leases if lease is not None]
        assert len(won) == 1
        assert won[0].generation == generation + 1
        worker = next(i for i, w in enumerate(stage.workers) if w.worker_key == won[0].worker_key)
        assert await two_stores[0].write(release, stage.claim(worker, 0, generation + 1), "done", now_ms + 500)
        await check_history(two_stores[0], camera_key)


async def test_renewing_extends_what_is_held_and_names_what_is_lost(store: Store) -> None:
    stage = await build(store, cameras=3)
    await store.write(take_all, tuple(want(stage, 0, camera) for camera in range(2)), TTL_MS, NOW_MS)
    await store.write(take, want(stage, 1, 2), TTL_MS, NOW_MS)
    later = NOW_MS + 10_000
    answer = await renewed(store, stage, 0, later, ("cam_0", 1), ("cam_1", 7), ("cam_2", 1), ("cam_9", 1))
    assert answer.renewed == (("cam_0", 1),)
    assert answer.lost == (
        ("cam_1", 7, "superseded"),
        ("cam_2", 1, "not_holder"),
        ("cam_9", 1, "unknown_camera"),
    )
    assert (await session(store, stage.cameras[0].key))["lease_expires_at"] == later + TTL_MS
    assert (await session(store, stage.cameras[1].key))["lease_expires_at"] == NOW_MS + TTL_MS
    assert (await session(store, stage.cameras[2].key))["lease_expires_at"] == NOW_MS + TTL_MS
    assert await renewed(store, stage, 0, later) == Renewal((), ())


async def test_renewing_stays_within_the_tenant(store: Store) -> None:
    mine = await build(store, workers=1, cameras=1, name="mine")
    other = await build(store, workers=1, cameras=1, name="other")
    await store.write(take, want(other), TTL_MS, NOW_MS)
    answer = await renewed(store, mine, 0, NOW_MS + 1, ("cam_0", 1))
    assert answer.renewed == ()
    assert (await session(store, other.cameras[0].key))["lease_expires_at"] == NOW_MS + TTL_MS


async def test_an_expired_lease_that_nobody_took_is_renewed_at_its_generation(store: Store) -> None:
    stage = await build(store)
    await store.write(take, want(stage), TTL_MS, NOW_MS)
    expired = NOW_MS + TTL_MS + 1
    assert await store.write(reclaim, expired - 1) == ()
    (reclaimed,) = await store.write(reclaim, expired)
    assert (reclaimed.camera_key, reclaimed.generation) == (stage.cameras[0].key, 1)
    assert (await session(store, stage.cameras[0].key))["state"] == "ORPHANED"
    assert await store.write(reclaim, expired + 1) == ()
    answer = await renewed(store, stage, 0, expired + 5, ("cam_0", 1))
    assert answer.renewed == (("cam_0", 1),)
    row = await session(store, stage.cameras[0].key)
    assert (row["state"], row["generation"], row["reason"]) == ("PENDING", 1, "")
    await check_history(store, stage.cameras[0].key)


async def test_a_reclaimed_camera_goes_to_another_worker_and_the_old_one_hears_of_it(store: Store) -> None:
    stage = await build(store)
    await store.write(take, want(stage), TTL_MS, NOW_MS)
    expired = NOW_MS + TTL_MS + 1
    await store.write(reclaim, expired)
    free = await store.read(free_cameras, (stage.site_id,), 60.0, expired)
    assert {(camera.camera_key, camera.generation) for camera in free} == {
        (stage.cameras[0].key, 1),
        (stage.cameras[1].key, 0),
    }
    lease = await store.write(take, want(stage, 1, 0, 1), TTL_MS, expired + 10)
    assert lease is not None
    assert lease.generation == 2
    answer = await renewed(store, stage, 0, expired + 20, ("cam_0", 1))
    assert answer.lost == (("cam_0", 1, "superseded"),)
    first, second = await spans(store, stage.cameras[0].key)
    assert first[3:] == (expired + 10, "taken")
    assert second[2:4] == (expired + 10, None)
    used = {one.worker_key: one.used for one in await store.read(offers, (stage.site_id,), NOW_MS)}
    assert used == {stage.workers[0].worker_key: 0, stage.workers[1].worker_key: 1}


async def test_renewal_and_take_of_an_orphan_race_to_one_holder(two_stores: tuple[Store, Store]) -> None:
    stage = await build(two_stores[0], cameras=6)
    first, second = two_stores
    wants = tuple(want(stage, 0, camera) for camera in range(6))
    await first.write(take_all, wants, TTL_MS, NOW_MS)
    expired = NOW_MS + TTL_MS + 1
    await first.write(reclaim, expired)
    held = tuple((camera.id, 1) for camera in stage.cameras)
    renewing = asyncio.create_task(renewed(first, stage, 0, expired + 1, *held))
    takes = await asyncio.gather(
        *(second.write(take, want(stage, 1, camera, 1), TTL_MS, expired + 1) for camera in range(6))
    )
    renewal = await renewing
    kept = {camera_id for camera_id, _ in renewal.renewed}
    taken = {stage.cameras[i].id for i, lease in enumerate(takes) if lease is not None}
    assert kept | taken == {camera.id for camera in stage.cameras}
    assert kept & taken == set()
    for camera in stage.cameras:
        await check_history(first, camera.key)


async def test_release_frees_the_camera_once_and_only_for_its_holder(store: Store) -> None:
    stage = await build(store)
    await store.write(take, want(stage), TTL_MS, NOW_MS)
    stranger = stage.claim(1, 0, 1)
    assert not await store.write(release, stranger, "mine", NOW_MS + 1)
    assert not await store.write(release, replace(stranger, camera_id="nowhere"), "mine", NOW_MS + 1)
    mine = stage.claim(0, 0, 1)
    assert await store.write(release, mine, "stopped", NOW_MS + 2)
    assert not await store.write(release, mine, "stopped", NOW_MS + 3)
    row = await session(store, stage.cameras[0].key)
    assert (row["worker_key"], row["state"], row["generation"]) == (None, "ORPHANED", 1)
    assert (await spans(store, stage.cameras[0].key))[0][3:] == (NOW_MS + 2, "stopped")
    answer = await renewed(store, stage, 0, NOW_MS + 4, ("cam_0", 1))
    assert answer.lost == (("cam_0", 1, "released"),)


async def test_a_span_never_ends_before_it_began_even_when_clocks_differ(store: Store) -> None:
    stage = await build(store)
    await store.write(take, want(stage), TTL_MS, NOW_MS)
    await store.write(release, stage.claim(0, 0, 1), "stopped", NOW_MS - 50)
    lease = await store.write(take, want(stage, 1, 0, 1), TTL_MS, NOW_MS - 40)
    assert lease is not None
    assert lease.granted_at == NOW_MS
    await check_history(store, stage.cameras[0].key)


def a_look(stage: Stage, worker: int, generation: int, seq: int, at_ms: int) -> Look:
    scene = Scene(
        stage.tenant_id,
        stage.site_id,
        stage.workers[worker].worker_key,
        stage.epoch_id,
        (stage.cameras[0].key,),
    )
    return look(scene, seq=seq, at_ms=at_ms, generation=generation)


async def test_recording_and_taking_race_without_a_stale_live_frame(
    two_stores: tuple[Store, Store],
) -> None:
    """A frame of the old generation that arrives while the camera is taken is live before it or late after it."""
    first, second = two_stores
    stage = await build(first, cameras=1)
    await first.write(take, want(stage), TTL_MS, NOW_MS)
    for generation in range(1, 6):
        worker, other = (generation - 1) % 2, generation % 2
        now_ms = NOW_MS + generation * 1_000_000
        await first.write(reclaim, now_ms)
        taking = asyncio.create_task(first.write(take, want(stage, other, 0, generation), TTL_MS, now_ms))
        answers = await asyncio.gather(
            *(
                second.write(record, (a_look(stage, worker, generation, seq, now_ms),), LeasePolicy())
                for seq in range(1, 6)
            )
        )
        lease = await taking
        assert lease is not None
        standings = {answer.standing for (answer,) in answers}
        assert standings <= {FrameStanding.LIVE, FrameStanding.LATE}
        (after,) = await second.write(record, (a_look(stage, worker, generation, 6, now_ms),), LeasePolicy())
        assert after.standing is FrameStanding.LATE
        (stranger,) = await second.write(record, (a_look(stage, worker, generation + 1, 1, now_ms),), LeasePolicy())
        assert stranger.standing is FrameStanding.REFUSED


async def test_claims_of_another_tenant_are_not_honoured(store: Store) -> None:
    mine = await build(store, workers=1, cameras=1, name="mine")
    other = await build(store, workers=1, cameras=1, name="other")
    await store.write(take, want(other), TTL_MS, NOW_MS)
    claim = Claim(mine.tenant_id, other.workers[0].worker_key, "cam_0", 1)
    assert not await store.write(release, claim, "stopped", NOW_MS + 1)
