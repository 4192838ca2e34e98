import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from camserver.services.worker import spool as spool_module
from camserver.services.worker.reports import Reports
from camserver.services.worker.service import report_drops
from camserver.services.worker.spool import Dropped, Spool
from camserver.services.worker.spool_files import SpoolFiles
from camserver.wire.looks import LookUpload
from tests.rig import small_disk as rig
from tests.rig.polling import until
from tests.services.worker.build import FollowingClock, look, reported, roomy_spool, spooled

BLOCK = 4096
# With its header, a look of this size takes exactly three blocks.
LOOK_BYTES = 2 * BLOCK


@asynccontextmanager
async def opened(folder: Path, max_bytes: int = 10**9, floor_bytes: int = 0) -> AsyncIterator[Spool]:
    spool = Spool(folder, max_bytes, floor_bytes, memory_max_bytes=100_000)
    await spool.open()
    try:
        yield spool
    finally:
        await spool.close()


async def seqs(spool: Spool) -> list[int]:
    return [one.header.seq for one in await spooled(spool)]


async def test_looks_wait_over_a_restart_until_they_are_acknowledged(tmp_path: Path) -> None:
    async with opened(tmp_path) as spool:
        for seq in (1, 2, 3):
            assert await spool.add(look(seq))
        first = spool.take(0, fresh_first=False)
        assert first is not None
        await spool.acknowledged(first)
    async with opened(tmp_path) as spool:
        assert await seqs(spool) == [2, 3]
        assert spool.highest_seq("cam_1", 1) == 3
        assert spool.highest_seq("cam_1", 2) == 0


async def test_highest_seq_counts_looks_that_were_sent_since(tmp_path: Path) -> None:
    async with opened(tmp_path) as spool:
        await spool.add(look(7))
        entry = spool.take(0, fresh_first=True)
        assert entry is not None
        await spool.acknowledged(entry)
        assert spool.looks == 0
        assert spool.highest_seq("cam_1", 1) == 7
        await spool.add(look(1, generation=2))
        assert (spool.highest_seq("cam_1", 1), spool.highest_seq("cam_1", 2)) == (0, 1)


async def test_past_its_bound_the_oldest_quiet_go_first_then_the_oldest(tmp_path: Path) -> None:
    async with opened(tmp_path, max_bytes=4 * 3 * BLOCK) as spool:
        for seq, quiet in ((1, False), (2, True), (3, False), (4, True)):
            await spool.add(look(seq, quiet=quiet, size_bytes=LOOK_BYTES))
        assert spool.disk_bytes == 4 * 3 * BLOCK
        left = []
        for seq in (5, 6, 7, 8):
            await spool.add(look(seq, quiet=False, size_bytes=LOOK_BYTES))
            left.append(await seqs(spool))
        assert left == [[1, 3, 4, 5], [1, 3, 5, 6], [3, 5, 6, 7], [5, 6, 7, 8]]
        assert spool.dropped == 4
        assert spool.take_drops() == {("cam_1", 1): Dropped(4, 1, 4)}
        assert spool.take_drops() == {}
        assert len(os.listdir(tmp_path / "looks")) == 4


async def test_quiet_look_never_pushes_out_one_that_passed(tmp_path: Path) -> None:
    async with opened(tmp_path, max_bytes=2 * 3 * BLOCK) as spool:
        for seq in (1, 2):
            await spool.add(look(seq, quiet=False, size_bytes=LOOK_BYTES))
        assert not await spool.add(look(3, quiet=True, size_bytes=LOOK_BYTES))
        # It is not lost either: it is sent from memory as long as there is room.
        assert spool.memory_looks == 1
        assert await seqs(spool) == [1, 2, 3]
        assert spool.dropped == 0


async def test_below_the_disks_floor_the_spool_does_not_grow_and_does_not_shrink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free_bytes = 10**9
    monkeypatch.setattr(SpoolFiles, "free_bytes", lambda self: free_bytes)
    async with opened(tmp_path, floor_bytes=10**6) as spool:
        for seq in (1, 2, 3):
            await spool.add(look(seq, size_bytes=LOOK_BYTES))
        free_bytes = 0
        for seq in (4, 5):
            await spool.add(look(seq, size_bytes=LOOK_BYTES))
            assert spool.looks == 3
        assert await seqs(spool) == [3, 4, 5]
        free_bytes = 10**9
        await spool.add(look(6, size_bytes=LOOK_BYTES))
        assert await seqs(spool) == [3, 4, 5, 6]


async def test_memory_is_bounded_and_its_drops_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpoolFiles, "free_bytes", lambda self: 0)
    monkeypatch.setattr(spool_module, "MEMORY_LOOKS_MAX", 3)
    async with opened(tmp_path, floor_bytes=1) as spool:
        for seq, quiet in ((1, False), (2, True), (3, False), (4, False)):
            assert not await spool.add(look(seq, quiet=quiet))
        assert await seqs(spool) == [1, 3, 4]  # the quiet one went first
        await spool.add(look(5, quiet=True))  # nothing quiet is left to go for it
        assert await seqs(spool) == [1, 3, 4]
        await spool.add(look(6, quiet=False, size_bytes=200_000))  # larger than the memory for them altogether
        assert spool.take_drops()[("cam_1", 1)] == Dropped(6, 1, 6)
        assert (spool.looks, spool.memory_looks, spool.dropped) == (0, 0, 6)


async def test_look_from_memory_leaves_when_it_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpoolFiles, "write", lambda self, *one: None)  # the disk fails
    async with opened(tmp_path) as spool:
        assert not await spool.add(look(1))
        entry = spool.take(0, fresh_first=True)
        assert entry is not None
        assert await spool.load(entry) == look(1)
        await spool.acknowledged(entry)
        assert (spool.looks, spool.memory_looks) == (0, 0)


async def test_damaged_file_is_set_aside_and_the_others_go_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as spool:
        for seq in (1, 2, 3):
            await spool.add(look(seq))
    damaged, truncated, _ = sorted((tmp_path / "looks").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-9] + b"scratched")
    os.truncate(truncated, 100)
    async with opened(tmp_path) as spool:
        assert spool.looks == 3
        assert await seqs(spool) == [3]
        assert (spool.looks, spool.set_aside) == (1, 2)
    assert len(os.listdir(tmp_path / "refused")) == 2


async def test_look_that_is_there_twice_is_kept_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as spool:
        await spool.add(look(1))
    name = os.listdir(tmp_path / "looks")[0]
    (tmp_path / "looks" / name.replace("_q_", "_p_")).write_bytes(b"")
    async with opened(tmp_path) as spool:
        assert (spool.looks, spool.set_aside) == (1, 1)


async def test_refused_look_is_set_aside(tmp_path: Path) -> None:
    async with opened(tmp_path) as spool:
        await spool.add(look(1))
        entry = spool.take(0, fresh_first=True)
        assert entry is not None
        await spool.refused(entry)
        assert spool.looks == 0
    assert len(os.listdir(tmp_path / "refused")) == 1
    async with opened(tmp_path) as spool:
        assert spool.looks == 0


async def test_cancelling_whoever_adds_does_not_lose_the_look(tmp_path: Path) -> None:
    async with opened(tmp_path) as spool:
        adding = asyncio.ensure_future(spool.add(look(1)))
        await asyncio.sleep(0)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
    async with opened(tmp_path) as spool:
        assert await seqs(spool) == [1]


async def test_waiting_for_a_camera_ends_when_its_last_look_left(tmp_path: Path) -> None:
    async with opened(tmp_path) as spool:
        await spool.add(look(1, "cam_1"))
        await spool.add(look(1, "cam_2"))
        of_camera = asyncio.ensure_future(spool.until_sent("cam_1", 1))
        of_all = asyncio.ensure_future(spool.until_empty())
        for done, entry in ((True, spool.take(0, False)), (True, spool.take(0, False))):
            assert entry is not None
            assert not of_all.done()
            await spool.acknowledged(entry)
            await asyncio.wait_for(of_camera, 60)
            assert of_camera.done() is done
        await asyncio.wait_for(of_all, 60)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of one megabyte."""
    with rig.small_disk(1 << 20) as folder:
        yield folder


async def test_full_disk_costs_the_quiet_ones_then_the_oldest(small_disk: Path) -> None:
    """The spool believes to have room; only the disk says no."""
    looks = [look(seq, size_bytes=100_000, quiet=seq % 2 == 0) for seq in range(1, 31)]
    async with opened(small_disk) as spool:
        for one in looks:
            assert await spool.add(one) or one.header.verdict == "skip"
        left = await seqs(spool)
        assert spool.dropped == 30 - len(left)
        assert 5 <= len(left) <= 10
        assert left == list(range(left[0], 30, 2))
    async with roomy(small_disk) as spool:
        assert await seqs(spool) == left, "what the disk had no room for must leave no trace"


async def test_disk_filled_by_others_turns_looks_to_memory_and_they_are_sent_from_there(
    small_disk: Path,
) -> None:
    async with opened(small_disk) as spool:
        filler = small_disk / "filler"
        room = os.statvfs(small_disk)
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize)
        assert not await spool.add(look(1, size_bytes=20_000))
        assert spool.memory_looks == 1
        assert [one.infer for one in await spooled(spool)] == [look(1, size_bytes=20_000).infer]
        filler.unlink()
        assert await spool.add(look(2, size_bytes=20_000))
        assert await seqs(spool) == [1, 2]
        assert spool.memory_looks == 0  # the first one is durable by now, too
    async with opened(small_disk) as spool:
        assert await seqs(spool) == [1, 2]


async def test_what_is_moved_to_disk_is_what_passed_first_and_nothing_is_dropped_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free_bytes = 0
    monkeypatch.setattr(SpoolFiles, "free_bytes", lambda self: free_bytes)
    async with opened(tmp_path, max_bytes=3 * 3 * BLOCK, floor_bytes=1) as spool:
        for seq, quiet in ((1, True), (2, False), (3, True)):
            assert not await spool.add(look(seq, quiet=quiet, size_bytes=LOOK_BYTES))
        free_bytes = 10**9
        assert await spool.add(look(4, quiet=False, size_bytes=LOOK_BYTES))
        assert (spool.memory_looks, spool.disk_bytes, spool.dropped) == (1, 3 * 3 * BLOCK, 0)
        assert await seqs(spool) == [1, 2, 3, 4]
    async with opened(tmp_path) as spool:
        assert await seqs(spool) == [1, 2, 4]


async def test_a_look_that_is_being_sent_from_memory_is_not_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free_bytes = 0
    monkeypatch.setattr(SpoolFiles, "free_bytes", lambda self: free_bytes)
    async with opened(tmp_path, floor_bytes=1) as spool:
        await spool.add(look(1))
        sending = spool.take(0, fresh_first=True)
        assert sending is not None
        free_bytes = 10**9
        await spool.add(look(2))
        assert len(os.listdir(tmp_path / "looks")) == 1
        await spool.acknowledged(sending)
        assert (spool.looks, spool.memory_looks) == (1, 0)


async def test_a_full_disk_is_reported_and_over_when_there_is_room(small_disk: Path, moved: FollowingClock) -> None:
    reports = Reports(moved)
    async with opened(small_disk) as spool:
        for seq in range(1, 21):
            await spool.add(look(seq, size_bytes=100_000, quiet=seq % 2 == 0))
        report_drops(spool, reports)
        (report,) = reported(reports)
        assert (report.event_type, report.camera_id) == ("spool_full", "cam_1")
        assert report.payload["dropped"] == spool.dropped > 0
        for one in await spooled(spool):
            assert one.header.verdict == "analyze" or one.header.seq > 18  # what passed went last
        while (entry := spool.take(0, fresh_first=False)) is not None:
            await spool.acknowledged(entry)
        report_drops(spool, reports)
        assert reported(reports) == []
        before = spool.dropped
        assert await spool.add(look(21, size_bytes=100_000))
        assert spool.dropped == before


@asynccontextmanager
async def roomy(folder: Path) -> AsyncIterator[Spool]:
    spool = roomy_spool(folder)
    await spool.open()
    try:
        yield spool
    finally:
        await spool.close()


async def test_files_of_looks_that_the_server_has_go_soon_and_at_the_end(tmp_path: Path) -> None:
    async with opened(tmp_path) as spool:
        await spool.add(look(1))
        first = spool.take(0, fresh_first=False)
        assert first is not None
        await spool.acknowledged(first)
        await until(lambda: list((tmp_path / "looks").iterdir()) == [], "a spool without files")
        await spool.add(look(2))
        second = spool.take(0, fresh_first=False)
        assert second is not None
        await spool.acknowledged(second)
    assert list((tmp_path / "looks").iterdir()) == []


async def test_only_so_much_is_at_hand_and_the_rest_is_read_from_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("camserver.services.worker.spool.AT_HAND_MAX_BYTES", 250_000)
    looks = [look(seq, size_bytes=100_000) for seq in range(1, 6)]
    async with opened(tmp_path) as spool:
        for one in looks:
            await spool.add(one)
        assert len(spool._at_hand) == 2
        while (entry := spool.take(0, fresh_first=False)) is not None:
            loaded = await spool.load(entry)
            assert loaded is not None
            assert loaded.infer == looks[entry.name.seq - 1].infer
            await spool.acknowledged(entry)
        assert not spool._at_hand
        assert spool._at_hand_bytes == 0


async def test_many_cameras_add_at_once_and_all_is_kept(tmp_path: Path) -> None:
    looks: list[LookUpload] = [look(seq, f"cam_{number}") for number in range(8) for seq in (1, 2, 3)]
    async with opened(tmp_path) as spool:
        await asyncio.gather(*(spool.add(one) for one in looks))
        assert spool.looks == 24
    assert len(os.listdir(tmp_path / "looks")) == 24
