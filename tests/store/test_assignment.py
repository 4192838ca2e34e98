"""What an assignment is decided on, and moves, on all three databases."""

import asyncio

from camserver.domain.assignment_types import Load, Quota
from camserver.store import Store
from camserver.store.assignment import ALL_SITES, Flag, Move, assigning, begin_moves, rebalancing
from camserver.store.intents import pending, starts_sent
from camserver.store.leases import Want, take_all
from tests.store.singles import acked, take
from tests.store.stage import NOW_MS, TTL_MS, Stage, build, session, statement


async def taken(store: Store, stage: Stage, camera: int = 0, worker: int = 0) -> None:
    want = Want(stage.cameras[camera].key, stage.workers[worker].worker_key, 0, Load(0.5, 0.0, 2e6))
    lease = await store.write(take, want, TTL_MS, NOW_MS)
    assert lease is not None
    await store.write(starts_sent, (lease.intent_id,), NOW_MS)
    await store.write(acked, want.worker_key, lease.intent_id, NOW_MS)


async def test_what_is_free_and_what_is_not_in_its_place_is_read(store: Store) -> None:
    stage = await build(store, cameras=3)
    first, second = (worker.worker_key for worker in stage.workers)
    keys = [camera.key for camera in stage.cameras]
    await taken(store, stage)
    await taken(store, stage, camera=1)
    args = ((stage.site_id,), NOW_MS, 60.0, NOW_MS)
    found = await store.read(assigning, *args)
    assert found is not None
    assert [need.camera_key for need in found.snapshot.cameras] == [keys[2]], "who is well placed is not read"
    offer, other = found.snapshot.workers
    assert (offer.used, offer.load, offer.slots, offer.is_present) == (2, Load(1.0, 0.0, 4e6), 10, True)
    assert (offer.capacity, offer.labels) == (Load(4.0, 0.0, 8e9), frozenset({("room", "attic")}))
    assert other.used == 0
    pin = "UPDATE cameras SET pinned_worker_key = :worker, needs_labels = :labels WHERE camera_key = :key"
    await store.write(statement, pin, {"worker": second, "labels": '{"gpu": "yes"}', "key": keys[0]})
    await store.write(
        statement, "UPDATE tenants SET cameras_running_max = 7 WHERE tenant_id = :t", {"t": stage.tenant_id}
    )
    insert = "INSERT INTO feature_flags (tenant_id, site_id, name, value, updated_at) VALUES (:t, :s, 'x', :v, 0)"
    await store.write(statement, insert, {"t": stage.tenant_id, "s": ALL_SITES, "v": "all"})
    await store.write(statement, insert, {"t": stage.tenant_id, "s": stage.site_id, "v": "own"})
    found = await store.read(assigning, *args)
    assert found is not None
    pinned, free = sorted(found.snapshot.cameras, key=lambda need: need.camera_key)
    assert (pinned.holder_key, pinned.pinned_worker_key, pinned.held_since) == (first, second, NOW_MS)
    assert pinned.labels == frozenset({("gpu", "yes")})
    assert free.holder_key is None
    assert found.snapshot.quotas == (Quota(stage.tenant_id, 2, 7),)
    assert Flag(stage.tenant_id, stage.site_id, "x", "own") in found.flags
    assert found.flag((stage.tenant_id, stage.site_id), "x") == "own"
    assert found.flag((stage.tenant_id, 0), "x") == "all"
    late = await store.read(assigning, (stage.site_id,), NOW_MS + 1, 60.0, NOW_MS)
    assert late is None or not any(offer.is_present for offer in late.snapshot.workers)


async def test_where_the_cameras_of_a_device_are_is_read(store: Store) -> None:
    stage = await build(store, cameras=3)
    _, second = (worker.worker_key for worker in stage.workers)
    args = ((stage.site_id,), NOW_MS, 60.0, NOW_MS)
    await taken(store, stage, camera=1, worker=1)
    found = await store.read(assigning, *args)
    assert found is not None
    assert {need.device for need in found.snapshot.cameras} == {None}
    assert found.snapshot.homes == {}
    names = (
        "INSERT INTO camera_overrides (camera_key, tenant_id, updated_at, device) VALUES (:key, :tenant, 0, 'nvr')"
    )
    bound = (
        "INSERT INTO camera_overrides (camera_key, tenant_id, updated_at, streams_max) VALUES (:key, :tenant, 0, 1)"
    )
    await store.write(statement, "UPDATE camera_streams SET url = 'rtsp://192.0.2.1/ch3'", {})
    for number, insert in enumerate((names, names, bound)):
        await store.write(statement, insert, {"key": stage.cameras[number].key, "tenant": stage.tenant_id})
    found = await store.read(assigning, *args)
    assert found is not None
    named, address = (need.device for need in found.snapshot.cameras)
    assert (named, address) == ("nvr", "192.0.2.1:554")
    assert found.snapshot.homes == {((stage.tenant_id, stage.site_id), "nvr"): second}


async def test_a_move_stops_the_holder_once_and_remembers_where_to(store: Store) -> None:
    stage = await build(store)
    first, second = (worker.worker_key for worker in stage.workers)
    await taken(store, stage)
    key = stage.cameras[0].key
    move = Move(key, first, 1, second, "moved: rebalanced")
    stale = Move(key, first, 9, second, "moved")
    assert await store.write(begin_moves, (stale,), NOW_MS + 1) == ()
    assert await store.write(begin_moves, (move,), NOW_MS + 1) == (move,)
    assert await store.write(begin_moves, (move,), NOW_MS + 2) == (), "it is on its way"
    row = await session(store, key)
    assert (row["stop_wanted"], row["reason"]) == (1, "moved: rebalanced")
    assert [intent.camera_key for intent in await store.read(pending, (first,))] == [key]
    found = await store.read(rebalancing, (stage.site_id,), (first,), NOW_MS, 60.0, NOW_MS)
    (need,) = found.snapshot.cameras
    assert (need.is_stopping, need.wanted_worker_key, need.holder_key) == (True, second, first)


async def test_nobody_takes_what_is_pinned_elsewhere_or_for_a_drained_worker(store: Store) -> None:
    stage = await build(store)
    first, second = (worker.worker_key for worker in stage.workers)
    one, two = (camera.key for camera in stage.cameras)
    pin = "UPDATE cameras SET pinned_worker_key = :worker WHERE camera_key = :key"
    await store.write(statement, pin, {"worker": second, "key": one})
    await store.write(statement, "UPDATE workers SET drain_wanted = 1 WHERE worker_key = :key", {"key": first})
    wants = (Want(one, first, 0), Want(two, first, 0))
    assert await store.write(take_all, wants, TTL_MS, NOW_MS) == ()
    assert len(await store.write(take_all, (Want(one, second, 0),), TTL_MS, NOW_MS)) == 1


async def test_takes_that_race_keep_the_quota(two_stores: tuple[Store, Store]) -> None:
    stage = await build(two_stores[0], workers=2, cameras=12)
    quota = "UPDATE tenants SET cameras_running_max = 5 WHERE tenant_id = :t"
    await two_stores[0].write(statement, quota, {"t": stage.tenant_id})
    batches = [
        tuple(Want(camera.key, stage.workers[half].worker_key, 0) for camera in stage.cameras[half::2])
        for half in (0, 1)
    ]
    leases = await asyncio.gather(
        *(store.write(take_all, batch, TTL_MS, NOW_MS) for store, batch in zip(two_stores, batches, strict=True))
    )
    assert sum(map(len, leases)) == 5
