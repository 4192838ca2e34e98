"""What viewings need to be fed, on each database: said by their streamer, read for their cameras' holders."""

import pytest

from camserver.store import Store, Tx, live_feeds, viewings
from camserver.store.admissions import Admitted
from camserver.store.workers import register
from camserver.wire.live import Load, Sync, Synced, Watched
from tests.store.stage import NOW_MS, registration, statement
from tests.store.viewing_rows import POLICY, House, ask, furnish

pytestmark = pytest.mark.asyncio(loop_scope="module")
WORKER = 77


def sync(**values: object) -> Sync:
    said = {"streamer_id": "streamer-1", "port": 8082, "feed_url": "ws://10.0.0.1:8082/v1/feed", "total_units": 50}
    return Sync.model_validate({**said, **values})


async def synced(store: Store, **values: object) -> Synced:
    return await live_feeds.sync(store, sync(**values), POLICY, NOW_MS)


async def test_a_viewing_is_wanted_then_fed_then_idle(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    admitted = await ask(fresh_store, house.people[0])
    assert isinstance(admitted, Admitted)
    lease_id = admitted.lease_id
    assert await fresh_store.read(live_feeds.is_any_wanted)
    [viewing] = (await synced(fresh_store)).viewings
    assert (viewing.lease_id, viewing.camera_id, viewing.feed, viewing.is_held) == (
        lease_id,
        "cam_0",
        "wanted",
        False,
    )
    for feed in ("fed", "idle", "wanted"):
        answer = await synced(fresh_store, watched=(Watched(lease_id=lease_id, feed=feed),))
        assert [one.feed for one in answer.viewings] == [feed]
        assert await fresh_store.read(live_feeds.is_any_wanted) == (feed == "wanted")
    # Another streamer says nothing about it.
    await synced(fresh_store, streamer_id="another", watched=(Watched(lease_id=lease_id, feed="idle"),))
    assert await fresh_store.read(live_feeds.is_any_wanted)


async def test_what_turns_out_to_need_a_transcode_gets_it_where_there_is_room(fresh_store: Store) -> None:
    house = await furnish(fresh_store, people=2, units=19)  # four are left: one transcode
    first, second = [await ask(fresh_store, person, camera) for camera, person in enumerate(house.people[:2])]
    assert isinstance(first, Admitted)
    assert isinstance(second, Admitted)
    answer = await synced(fresh_store, unplayable=(second.lease_id, "unknown"))
    assert answer.no_room == (second.lease_id,)  # three more than its one, and another one watches
    await fresh_store.as_(house.people[0]).write(viewings.release, first.lease_id)
    answer = await synced(fresh_store, unplayable=(second.lease_id,))
    assert ([one.transcode for one in answer.viewings], answer.no_room) == ([True], ())
    again = await synced(fresh_store, unplayable=(second.lease_id,))
    assert again.no_room == ()


async def test_what_is_not_valid_is_named_with_its_reason(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    admitted = await ask(fresh_store, house.people[0])
    assert isinstance(admitted, Admitted)
    late = await live_feeds.sync(fresh_store, sync(asked=(admitted.lease_id, "unknown")), POLICY, NOW_MS + 3_600_000)
    assert late.viewings == ()
    assert {one.lease_id for one in late.gone} == {admitted.lease_id, "unknown"}


async def test_a_report_keeps_the_streamer_and_its_end_ends_its_viewings(fresh_store: Store) -> None:
    house = await furnish(fresh_store, units=None)
    await synced(fresh_store, load=Load(cpu_percent=5.0, memory_percent=20.0, swap_mb=0.0))
    assert isinstance(await ask(fresh_store, house.people[0]), Admitted)
    assert (await synced(fresh_store, is_stopping=True)).viewings == ()
    assert (await synced(fresh_store)).viewings == ()


async def test_the_holder_of_the_camera_is_asked(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    for person in house.people[:2]:
        assert isinstance(await ask(fresh_store, person), Admitted)
    assert await fresh_store.read(live_feeds.wanted_feeds, (WORKER,), NOW_MS) == ()
    worker_key = await held(fresh_store, house)
    [wanted] = await fresh_store.read(live_feeds.wanted_feeds, (worker_key,), NOW_MS)
    assert (wanted.camera_id, wanted.generation, wanted.quality, wanted.worker_key) == ("cam_0", 3, "sub", worker_key)
    assert await fresh_store.read(live_feeds.wanted_feeds, (worker_key + 1,), NOW_MS) == ()
    await fresh_store.write(live_feeds.refused, wanted, "shed: the line is short")
    answer = await synced(fresh_store)
    assert [(one.feed_reason, one.generation, one.is_held) for one in answer.viewings] == [
        ("shed: the line is short", 3, True)
    ] * 2


async def test_whoever_comes_to_a_stream_that_is_fed_has_nobody_asked(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    first = await ask(fresh_store, house.people[0])
    assert isinstance(first, Admitted)
    worker_key = await held(fresh_store, house)
    await synced(fresh_store, watched=(Watched(lease_id=first.lease_id, feed="fed"),))
    second = await ask(fresh_store, house.people[1])
    assert isinstance(second, Admitted)
    assert await fresh_store.read(live_feeds.is_any_wanted)
    assert await fresh_store.read(live_feeds.wanted_feeds, (worker_key,), NOW_MS) == ()
    # When the first one has gone without a word, the second is on its own.
    long_after_ms = first.expires_at + 1
    await fresh_store.write(
        statement,
        "UPDATE modal_leases SET valid_until = :later WHERE lease_id = :lease_id",
        {"later": long_after_ms, "lease_id": second.lease_id},
    )
    [wanted] = await fresh_store.read(live_feeds.wanted_feeds, (worker_key,), long_after_ms)
    assert wanted.camera_id == "cam_0"


async def held(store: Store, house: House) -> int:
    """The key of the worker that holds the camera which is asked for."""
    worker_key = await store.write(add_worker, house.tenant_id)
    await store.write(
        statement,
        "UPDATE camera_sessions SET worker_key = :worker_key, generation = 3, state = 'ACTIVE' "
        "WHERE camera_key = :camera_key",
        {"worker_key": worker_key, "camera_key": house.cameras[0]},
    )
    return worker_key


async def add_worker(tx: Tx, tenant_id: int) -> int:
    return (await register(tx, tenant_id, registration("worker-1"), NOW_MS)).worker_key
