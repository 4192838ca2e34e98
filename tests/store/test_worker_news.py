"""What workers say for people to see: metrics, and streams that fail beside one that works."""

import pytest

from camserver.domain.people import Principal, Role
from camserver.domain.phrases import WATCHED_LIVE
from camserver.store import Store, cameras, delegation, look_pauses
from camserver.store.leases import Want, release
from camserver.store.starts import set_all_active
from camserver.store.worker_news import StreamFault, stream_back, stream_failed
from camserver.store.workers import Heard, heartbeats
from tests.store.singles import take
from tests.store.stage import NOW_MS, TTL_MS, build

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_newest_metrics_of_a_worker_are_kept(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    mine = fresh_store.as_(Principal(stage.tenant_id, None, Role.SYSTEM_ADMIN))
    assert [(one.metrics, one.metrics_at) for one in await mine.read(delegation.workers)] == [({}, None)] * 2
    beats = [
        Heard(worker, "RUNNING", (), 0, metrics)
        for worker, metrics in zip(stage.workers * 2, ('{"spool": 1}', "", '{"spool": 2.5}', ""), strict=True)
    ]
    for at_ms, heard in ((NOW_MS, beats[:2]), (NOW_MS + 1, beats[2:])):
        await fresh_store.write(heartbeats, tuple(heard), stage.epoch_id, TTL_MS, at_ms)
    first, second = await mine.read(delegation.workers)
    assert (first.metrics, first.metrics_at) == ({"spool": 2.5}, NOW_MS + 1)
    assert (second.metrics, second.metrics_at) == ({}, None)
    both = tuple(Heard(worker, "RUNNING", (), 0, '{"spool": 3}') for worker in stage.workers)
    await fresh_store.write(heartbeats, both, stage.epoch_id, TTL_MS, NOW_MS + 2)
    found = await mine.read(delegation.workers)
    assert [(one.metrics, one.metrics_at) for one in found] == [({"spool": 3}, NOW_MS + 2)] * 2
    # Of a worker that another process speaks with, nothing is noted here.
    await fresh_store.write(heartbeats, both, stage.epoch_id + 1, TTL_MS, NOW_MS + 3)
    assert [one.metrics_at for one in await mine.read(delegation.workers)] == [NOW_MS + 2] * 2


async def test_the_last_fault_of_a_stream_is_kept_and_told_to_be_over(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    mine = fresh_store.as_(Principal(stage.tenant_id, None, Role.SYSTEM_ADMIN))
    want = Want(stage.cameras[0].key, stage.workers[0].worker_key, 0)
    assert await fresh_store.write(take, want, TTL_MS, NOW_MS) is not None
    holder, stranger = stage.claim(0, 0, 1), stage.claim(1, 0, 1)
    assert not await fresh_store.write(stream_failed, stranger, "sub", "no_video", "", NOW_MS)
    assert (await mine.read(cameras.get, "cam_0")).stream_fault is None
    assert await fresh_store.write(stream_failed, holder, "sub", "no_video", "x" * 300, NOW_MS + 1)
    lasting = StreamFault("sub", "no_video", "x" * 255, NOW_MS + 1)
    found = await mine.read(cameras.get, "cam_0")
    assert (found.stream_fault, found.worker_id) == (lasting, "worker-0")
    facts = await mine.read(delegation.why_facts, "cam_0", 0, 60.0)
    assert facts.camera.stream_fault == ("sub", "no_video")
    # The other stream's return says nothing about this one.
    assert await fresh_store.write(stream_back, holder, "main", NOW_MS + 2)
    assert (await mine.read(cameras.get, "cam_0")).stream_fault == lasting
    assert await fresh_store.write(stream_back, holder, "sub", NOW_MS + 3)
    over = (await mine.read(cameras.get, "cam_0")).stream_fault
    assert over is not None
    assert (over.at, over.over_at) == (NOW_MS + 1, NOW_MS + 3)
    assert (await mine.read(delegation.why_facts, "cam_0", 0, 60.0)).camera.stream_fault is None


async def test_looks_that_wait_for_somebody_who_watches_are_a_pause(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    mine = fresh_store.as_(Principal(stage.tenant_id, None, Role.VIEWER))
    key = stage.cameras[0].key
    assert await fresh_store.write(take, Want(key, stage.workers[0].worker_key, 0), TTL_MS, NOW_MS) is not None
    holder = stage.claim(0, 0, 1)
    to_ms = NOW_MS + 1_000_000

    async def pauses(from_ms: int = NOW_MS, now_ms: int = to_ms) -> list[tuple[int, int]]:
        found = await mine.read(look_pauses.within, [key], from_ms, to_ms, now_ms)
        return [
            (one.start_at - NOW_MS, one.end_at - NOW_MS) for one in found.get(key, ()) if one.cause == WATCHED_LIVE
        ]

    assert await pauses() == []
    # Another fault is none.
    assert await fresh_store.write(stream_failed, holder, "sub", "no_video", "", NOW_MS + 5)
    assert await pauses() == []
    for _ in range(2):  # a report may come again
        assert await fresh_store.write(stream_failed, holder, "sub", WATCHED_LIVE, "", NOW_MS + 10)
    assert await pauses(now_ms=NOW_MS + 50) == [(10, 50)], "it lasts"
    assert await fresh_store.write(stream_back, holder, "sub", NOW_MS + 100)
    assert await pauses() == [(10, 100)]
    assert await pauses(from_ms=NOW_MS + 60) == [(60, 100)]
    assert await pauses(from_ms=NOW_MS + 100) == []
    # Two in the same moment, and one that ends with a pipeline that was begun anew.
    assert await fresh_store.write(stream_failed, holder, "sub", WATCHED_LIVE, "", NOW_MS + 10)
    assert await fresh_store.write(set_all_active, (holder,), NOW_MS + 200) == (True,)
    assert await pauses() == [(10, 100), (11, 200)]
    # Its holder never ended this one.
    assert await fresh_store.write(stream_failed, holder, "sub", WATCHED_LIVE, "", NOW_MS + 300)
    assert await fresh_store.write(release, holder, "stopped", NOW_MS + 400, None)
    assert await pauses() == [(10, 100), (11, 200), (300, 400)]
    elsewhere = fresh_store.as_(Principal(stage.tenant_id + 1, None, Role.VIEWER))
    assert await elsewhere.read(look_pauses.within, [key], NOW_MS, to_ms, to_ms) == {}
    assert await fresh_store.write(look_pauses.forget, key, NOW_MS + 300) == 2
    assert await pauses() == [(300, 400)]
