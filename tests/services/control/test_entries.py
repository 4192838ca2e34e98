"""What workers say at the same time is written together, and answered each for itself."""

import asyncio
from collections import Counter

import pytest

from camserver.services.control.connections import Connections
from camserver.services.control.entries import Entries
from camserver.services.control.epoch import Epoch
from camserver.store import Store
from camserver.store.leases import Lease, Want, take_all
from camserver.store.workers import Heard
from tests.rig.clock import ManualClock
from tests.store.stage import TTL_MS, Stage, build, session

WORKERS = 5


@pytest.fixture
async def stage(sqlite_store: Store) -> Stage:
    return await build(sqlite_store, workers=WORKERS, cameras=WORKERS)


@pytest.fixture
async def entries(sqlite_store: Store, stage: Stage, clock: ManualClock) -> Entries:
    epoch = Epoch(sqlite_store, clock, "entries")
    await epoch.open()
    return Entries(sqlite_store, clock, Connections(), epoch, TTL_MS)


@pytest.fixture
def writes(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each operation was written."""
    original, counts = sqlite_store.write, Counter[str]()

    async def write(operation: object, *args: object, **kwargs: object) -> object:
        counts[getattr(operation, "__name__", "")] += 1
        return await original(operation, *args, **kwargs)  # type: ignore[arg-type]  # passed through

    monkeypatch.setattr(sqlite_store, "write", write)
    return counts


async def taken(store: Store, stage: Stage, clock: ManualClock) -> tuple[Lease, ...]:
    """The camera of each worker's number."""
    wants = tuple(
        Want(camera.key, worker.worker_key, 0) for camera, worker in zip(stage.cameras, stage.workers, strict=True)
    )
    return await store.write(take_all, wants, TTL_MS, clock.now_ms())


async def test_heartbeats_that_come_together_are_written_together(
    entries: Entries, stage: Stage, sqlite_store: Store, clock: ManualClock, writes: Counter[str]
) -> None:
    await taken(sqlite_store, stage, clock)
    # The last one claims a generation that it never had.
    heard = [
        Heard(worker, "RUNNING", ((camera.id, 1 if index < WORKERS - 1 else 9),), 0)
        for index, (camera, worker) in enumerate(zip(stage.cameras, stage.workers, strict=True))
    ]
    beats = await asyncio.gather(*(entries.beat(one) for one in heard))
    assert [beat.renewal.renewed for beat in beats[:-1]] == [one.held for one in heard[:-1]]
    assert beats[-1].renewal.lost == ((f"cam_{WORKERS - 1}", 9, "superseded"),)
    assert writes["heartbeats"] == 1


async def test_acknowledgements_and_ready_cameras_are_written_together(
    entries: Entries, stage: Stage, sqlite_store: Store, clock: ManualClock, writes: Counter[str]
) -> None:
    leases = await taken(sqlite_store, stage, clock)
    acks = await asyncio.gather(*(entries.ack(lease.worker_key, lease.intent_id) for lease in leases))
    ready = await asyncio.gather(*(entries.ready(stage.claim(index, index, 1)) for index in range(WORKERS)))
    assert (acks, ready) == ([True] * WORKERS, [True] * WORKERS)
    states = [(await session(sqlite_store, camera.key))["state"] for camera in stage.cameras]
    assert states == ["ACTIVE"] * WORKERS
    assert (writes["acked_all"], writes["set_all_active"]) == (1, 1)


async def test_one_kind_is_written_at_a_time(
    entries: Entries, stage: Stage, sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lease, *_) = await taken(sqlite_store, stage, clock)
    original, under_way, most = sqlite_store.write, 0, 0

    async def write(operation: object, *args: object, **kwargs: object) -> object:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            return await original(operation, *args, **kwargs)  # type: ignore[arg-type]  # passed through
        finally:
            under_way -= 1

    monkeypatch.setattr(sqlite_store, "write", write)
    await asyncio.gather(
        entries.beat(Heard(stage.workers[0], "RUNNING", (("cam_0", 1),), 0)),
        entries.ack(lease.worker_key, lease.intent_id),
        entries.ready(stage.claim(0, 0, 1)),
    )
    await entries.close()
    assert most == 1
