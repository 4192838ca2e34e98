"""What time does to rows and objects."""

import asyncio
from dataclasses import replace

import pytest

from camserver.base.errors import Unavailable
from camserver.domain.events import EventPolicy
from camserver.domain.jobs import JobPolicy
from camserver.objects.keys import errand_key
from camserver.objects.local import Keys, LocalObjects
from camserver.services.dispatcher.sweeping import Sweeper
from camserver.store import Tx, errands, garbage
from camserver.store.epochs import open_epoch
from camserver.store.errands import NewErrand
from tests.fakes.analyzer import Seen
from tests.services.dispatcher.stage import Stage
from tests.store.scenery import INTERVAL_MS, NOW_MS

SEC = 1000
DAY_SEC = 86_400
HUMAN = Seen("human", ("count.single",))
on_one_database = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)


def sweeper(stage: Stage) -> Sweeper:
    return Sweeper(stage.store, stage.objects, stage.clock, JobPolicy(), EventPolicy(), INTERVAL_MS)


async def test_stale_open_events_are_closed_at_start_from_when_they_were_last_seen(stage: Stage) -> None:
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, NOW_MS), (1, HUMAN, NOW_MS + 5000 * SEC))
    await stage.clock.advance(5000 * SEC)  # nobody ran meanwhile
    async with stage.dispatcher():

        async def closed() -> bool:
            return [event["state"] for event in await stage.events()] == ["closed", "open"]

        await stage.until(closed, "the stale event is closed, without the clock moving")
    assert [event["end_at"] for event in await stage.events()] == [NOW_MS, None]


async def test_an_event_stays_open_while_a_job_of_its_time_is_unfinished(stage: Stage) -> None:
    async with stage.dispatcher():
        await stage.analyzed((0, HUMAN, NOW_MS))
        await stage.analyzer.refuse()
        await stage.look(0, HUMAN, NOW_MS + 60 * SEC)
        await stage.pass_time(600, 30)
        assert [event["state"] for event in await stage.events()] == ["open"]
        await stage.analyzer.accept()
        await stage.pass_time(150, 30)
        await stage.until_nothing_waits()
    (event,) = await stage.events()
    assert (event["frame_count"], event["last_seen_at"]) == (2, NOW_MS + 60 * SEC)


async def test_orphans_of_dead_epochs_go_and_objects_with_rows_stay(stage: Stage) -> None:
    dead = await stage.store.write(open_epoch, "a writer that dies", NOW_MS)
    alive = stage.scene.epoch_id
    kept = await stage.look(0, None, epoch_id=dead)
    with_row = stage.key(kept, 0, NOW_MS, dead)
    orphan = stage.key("0198c0de-0000-7000-8000-00000000dead", 0, NOW_MS, dead)
    unfinished = f"{stage.key('0198c0de-0000-7000-8000-0000000d4af7', 1, NOW_MS, dead)}.draft-0a1b2c3d"
    of_the_living = stage.key("0198c0de-0000-7000-8000-000000a11fe0", 0, NOW_MS, alive)
    for key in (with_row, orphan, unfinished, of_the_living):
        await stage.objects.put(key, b"picture")
    sweeps = sweeper(stage)
    await stage.clock.advance(60 * SEC)
    assert await sweeps.delete_orphans() == 0, "a writer is not dead before it missed its renewals for a minute"
    await stage.clock.advance(1)
    assert await sweeps.delete_orphans() == 2
    left = [*await stage.objects.list(f"e{dead}/", 100), *await stage.objects.list(f"e{alive}/", 100)]
    assert left == [with_row, of_the_living]
    (epoch,) = await stage.rows("SELECT ended_at, swept_at FROM epochs WHERE epoch_id = :epoch_id", epoch_id=dead)
    assert epoch == {"ended_at": stage.clock.now_ms(), "swept_at": stage.clock.now_ms()}
    assert await sweeps.delete_orphans() == 0


async def test_the_answer_to_an_errand_stays_while_its_row_does(stage: Stage) -> None:
    dead = await stage.store.write(open_epoch, "a writer that dies", NOW_MS)
    tenant_id = stage.scene.tenant_id
    named, orphan = (errand_key(dead, tenant_id, NOW_MS, uuid, "image/jpeg") for uuid in ("errand-1", "errand-2"))
    for key in (named, orphan):
        await stage.objects.put(key, b"picture")
    asked = NewErrand("errand-1", "look", "{}", NOW_MS + 10 * SEC)
    await stage.store.write(errands.add, tenant_id, stage.scene.site_id, None, asked, NOW_MS)
    await stage.store.write(answered_with, named, dead)
    sweeps = sweeper(stage)
    await stage.clock.advance(61 * SEC)
    assert await sweeps.delete_orphans() == 1
    assert await stage.objects.list(f"e{dead}/", 10) == [named]
    # Some time after it was over it goes, row first.
    assert await stage.store.write(errands.prune, NOW_MS + 10 * SEC + errands.KEPT_MS) == 1
    assert await sweeps.delete_garbage() == 1
    assert await stage.objects.list(f"e{dead}/", 10) == []


async def answered_with(tx: Tx, object_key: str, epoch_id: int) -> None:
    await tx.run(
        "UPDATE errands SET state = 'done', object_key = :object_key, epoch_id = :epoch_id",
        object_key=object_key,
        epoch_id=epoch_id,
    )


@on_one_database
async def test_many_orphans_are_deleted_page_by_page(stage: Stage) -> None:
    dead = await stage.store.write(open_epoch, "a writer that dies", NOW_MS)
    assert isinstance(stage.objects, LocalObjects)
    kept = await stage.look(1, None, epoch_id=dead)
    folder = (stage.objects.root / stage.key("x", 1, NOW_MS, dead)).parent
    folder.mkdir(parents=True)
    for number in range(1100):
        (folder / f"0198c0de-0000-7000-8000-{number:012d}.infer.jpg").touch()
    await stage.objects.put(stage.key(kept, 1, NOW_MS, dead), b"picture")
    await stage.clock.advance(61 * SEC)
    assert await sweeper(stage).delete_orphans() == 1100
    assert await stage.objects.list(f"e{dead}/", 10) == [stage.key(kept, 1, NOW_MS, dead)]


class StubbornObjects(LocalObjects):
    """Some objects can't be deleted; listing waits while a test says so."""

    stubborn: frozenset[str] = frozenset()
    error: Exception = Unavailable("the disk is away")

    async def delete(self, key: str) -> None:
        if key in self.stubborn:
            raise self.error
        await super().delete(key)


@on_one_database
@pytest.mark.parametrize("error", [Unavailable("the disk is away"), OSError(5, "Input/output error")])
async def test_an_object_that_can_not_be_deleted_holds_up_no_other(stage: Stage, error: Exception) -> None:
    assert isinstance(stage.objects, LocalObjects)
    objects = StubbornObjects(stage.objects.root)
    objects.error = error
    stage.objects = objects
    epochs = [await stage.store.write(open_epoch, "a writer that dies", NOW_MS) for _ in range(2)]
    orphans = [stage.key("0198c0de-0000-7000-8000-00000000dead", 0, NOW_MS, epoch) for epoch in epochs]
    trash = [stage.key(f"0198c0de-0000-7000-8000-{number:012d}", 2, NOW_MS) for number in range(3)]
    for key in (*orphans, *trash):
        await objects.put(key, b"picture")
    await stage.store.write(garbage.add, stage.scene.tenant_id, tuple(trash), NOW_MS)
    objects.stubborn = frozenset({orphans[0], trash[0]})
    await stage.clock.advance(61 * SEC)
    sweeps = sweeper(stage)
    assert await sweeps.delete_orphans() == 1
    assert await sweeps.delete_garbage() == 2
    swept = "SELECT epoch_id FROM epochs WHERE swept_at IS NOT NULL"
    assert await stage.rows(swept) == [{"epoch_id": epochs[1]}], "the first one is not finished"
    objects.stubborn = frozenset()
    assert await sweeps.delete_orphans() == 1
    assert await sweeps.delete_garbage() == 1
    assert await stage.rows("SELECT * FROM garbage") == []


@on_one_database
@pytest.mark.parametrize("pages", [1, 5])
async def test_objects_that_stay_hide_none_that_could_go(stage: Stage, pages: int) -> None:
    assert isinstance(stage.objects, LocalObjects)
    objects = stage.objects = StubbornObjects(stage.objects.root)
    ordinary = stage.key("0198c0de-0000-7000-8000-00000000dead", 0, NOW_MS)
    stubborn = tuple(f"e1/stubborn-{number}.jpg" for number in range(pages * garbage.BATCH))
    await stage.store.write(garbage.add, stage.scene.tenant_id, (*stubborn, ordinary), NOW_MS)
    objects.stubborn = frozenset(stubborn)
    sweeps = sweeper(stage)
    # Where page after page stays, the objects' store may be away: the rest of them wait for the next turn.
    deleted = [await sweeps.delete_garbage() for _ in range(2)]
    assert deleted == ([1, 0] if pages == 1 else [0, 1])
    assert len(await stage.rows("SELECT * FROM garbage")) == len(stubborn)


class EndlessObjects(LocalObjects):
    """Listing takes for ever, and another kind of call breaks in a way nobody thought of."""

    def __init__(self, real: LocalObjects) -> None:
        super().__init__(real.root)
        self.listing = asyncio.Event()

    async def list(self, prefix: str, limit: int, after: str = "") -> Keys:
        self.listing.set()
        await asyncio.Event().wait()
        return []


@on_one_database
async def test_a_folder_without_end_holds_up_no_job(stage: Stage) -> None:
    assert isinstance(stage.objects, LocalObjects)
    objects = EndlessObjects(stage.objects)
    await stage.store.write(open_epoch, "a writer that is dead", NOW_MS - 61 * SEC)
    await stage.analyzer.refuse()
    await stage.look(0, HUMAN)
    async with stage.dispatcher(objects=objects):
        await objects.listing.wait()
        await stage.until_status(delayed=1)
        await stage.analyzer.accept()
        await stage.pass_time(4, 1)
        await stage.until_status(done=1)


class BrokenObjects(LocalObjects):
    async def list(self, prefix: str, limit: int, after: str = "") -> Keys:
        raise RuntimeError("nobody thought of this")


@on_one_database
async def test_a_step_that_breaks_stops_neither_the_others_nor_the_analysis(stage: Stage) -> None:
    assert isinstance(stage.objects, LocalObjects)
    await stage.store.write(open_epoch, "a writer that is dead", NOW_MS - 61 * SEC)
    trash = stage.key("0198c0de-0000-7000-8000-000000000000", 2, NOW_MS)
    await stage.objects.put(trash, b"picture")
    await stage.store.write(garbage.add, stage.scene.tenant_id, (trash,), NOW_MS)
    async with stage.dispatcher(objects=BrokenObjects(stage.objects.root)):
        await stage.look(0, HUMAN)
        await stage.until_status(done=1)

        async def forgotten() -> bool:
            return await stage.rows("SELECT * FROM garbage") == []

        await stage.until(forgotten, "the garbage is gone")


async def test_jobs_older_than_a_day_and_beyond_the_bound_are_skipped_with_a_reason(stage: Stage) -> None:
    old = await stage.look(0, HUMAN, NOW_MS)
    await stage.clock.advance(DAY_SEC * SEC + 1)
    many = [await stage.look(1, HUMAN) for _ in range(4)]
    sweeps = replace(sweeper(stage), jobs=JobPolicy(camera_bound=2))
    assert await sweeps.skip_jobs() == 3
    assert (await stage.job(old))["last_error"] == "older than 86400 s"
    reason = "more than 2 waiting jobs of this camera"
    found = [await stage.job(uuid) for uuid in many]
    assert [job["last_error"] for job in found] == [reason, reason, None, None]
    assert await stage.counts() == {"skipped": 3, "queued": 2}
