"""Copies in a folder: whole or not there, never on the wrong disk, and clear words when a disk fails."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from camserver.base.errors import BadInput
from camserver.clients import archive_folder
from camserver.clients.archive_folder import MARK, FolderArchive, check_allowed
from camserver.domain.deliveries import DeliveryError, Receiver, ReceiverKind, Trouble
from tests.clients.archiving import DELIVERY, PATH, archive_receiver, copy_of, forget
from tests.rig.polling import until
from tests.rig.small_disk import small_disk

PICTURE = b"\xff\xd8" + bytes(range(256)) * 20


class Shelf:
    """One archive in a folder, and whether it held copies before."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "archive"
        self.held = False
        self.receiver = archive_receiver(ReceiverKind.FOLDER, {"path": str(self.folder)})
        self.archive = FolderArchive((str(root),), self._held_before)

    async def _held_before(self, receiver: Receiver) -> bool:
        return self.held

    async def store(self, data: bytes = PICTURE, path: str = PATH) -> None:
        await self.archive.store(self.receiver, copy_of(data, path), forget)
        self.held = True

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    made = Shelf(tmp_path)
    yield made
    await made.archive.close()


async def test_a_copy_lies_where_its_path_says_beside_the_mark(shelf: Shelf) -> None:
    await shelf.store()
    assert shelf.files() == sorted([MARK, PATH])
    assert (shelf.folder / PATH).read_bytes() == PICTURE
    assert shelf.receiver.receiver_uuid in (shelf.folder / MARK).read_text()


async def test_a_copy_is_read_again_and_a_missing_one_is_none(shelf: Shelf) -> None:
    await shelf.store()
    assert await shelf.archive.read(shelf.receiver, PATH) == PICTURE
    assert await shelf.archive.read(shelf.receiver, f"{PATH}.jpg") is None
    with pytest.raises(DeliveryError):
        await shelf.archive.read(shelf.receiver, "../secret")
    (shelf.folder / MARK).unlink()
    with pytest.raises(DeliveryError, match="not there"):
        await shelf.archive.read(shelf.receiver, "camera-archive/nothing.jpg")


async def test_a_repeat_writes_nothing_and_a_torn_copy_is_written_again(shelf: Shelf) -> None:
    await shelf.store()
    before = (shelf.folder / PATH).stat()
    await shelf.store()
    assert (shelf.folder / PATH).stat().st_ino == before.st_ino
    for torn in (PICTURE[:100], bytes(len(PICTURE))):
        (shelf.folder / PATH).write_bytes(torn)
        await shelf.store()
        assert (shelf.folder / PATH).read_bytes() == PICTURE


async def test_what_a_killed_writer_left_is_written_over(shelf: Shelf) -> None:
    draft = (shelf.folder / PATH).with_name(f".{DELIVERY}.draft")
    draft.parent.mkdir(parents=True)
    draft.write_bytes(b"half")
    await shelf.store()
    assert shelf.files() == sorted([MARK, PATH])


async def test_removing_leaves_no_empty_folder_and_may_be_repeated(shelf: Shelf) -> None:
    other = PATH.replace("cam_1", "cam_2")
    await shelf.store()
    await shelf.store(path=other)
    await shelf.archive.remove(shelf.receiver, PATH)
    assert shelf.files() == sorted([MARK, other])
    for _ in range(2):
        await shelf.archive.remove(shelf.receiver, other)
    assert [path.name for path in shelf.folder.iterdir()] == [MARK]


async def test_a_mount_that_is_gone_is_neither_written_nor_thought_empty(shelf: Shelf) -> None:
    await shelf.store()
    shelf.folder.rename(shelf.root / "unmounted")
    shelf.folder.mkdir()
    with pytest.raises(DeliveryError, match=rf"{MARK}.*mount it") as failed:
        await shelf.store()
    assert failed.value.kind is Trouble.RETRY
    with pytest.raises(DeliveryError, match="mount it"):
        await shelf.archive.remove(shelf.receiver, PATH)
    assert list(shelf.folder.iterdir()) == []
    shelf.folder.rmdir()
    (shelf.root / "unmounted").rename(shelf.folder)
    await shelf.store()


async def test_a_root_that_is_not_there_is_not_made(shelf: Shelf) -> None:
    """It may be a mount point that only its mount makes."""
    shelf.root.rename(shelf.root.with_name("elsewhere"))
    with pytest.raises(DeliveryError, match="is not there") as failed:
        await shelf.store()
    assert failed.value.kind is Trouble.RETRY
    assert not shelf.root.exists()


@pytest.mark.parametrize("path", ["../outside.jpg", "a/../../b.jpg", "/etc/x.jpg", ".hidden", "a//b", ""])
async def test_a_copy_can_not_leave_the_folder(shelf: Shelf, path: str) -> None:
    with pytest.raises(DeliveryError, match="no path of a copy"):
        await shelf.store(path=path)
    with pytest.raises(DeliveryError, match="no path of a copy"):
        await shelf.archive.remove(shelf.receiver, path)


def test_only_folders_below_a_root_of_the_settings_are_allowed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
    (inside / "link").symlink_to(outside)
    roots = (str(inside),)
    assert check_allowed(str(inside / "archive"), roots) == inside / "archive"
    assert check_allowed(str(inside), roots) == inside
    for path in (
        outside,
        inside / "link",
        inside / "link" / "deeper",
        inside / ".." / "outside",
        Path(f"{inside}-2"),
    ):
        with pytest.raises(BadInput, match=r"\[archive\] folders"):
            check_allowed(str(path), roots)
    with pytest.raises(BadInput, match="whole path"):
        check_allowed("inside/archive", roots)
    with pytest.raises(BadInput, match="none"):
        check_allowed(str(inside), ())


async def test_a_folder_that_became_a_link_to_elsewhere_is_refused(
    shelf: Shelf, tmp_path_factory: pytest.TempPathFactory
) -> None:
    await shelf.store()
    shelf.folder.rename(shelf.root / "was")
    shelf.folder.symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(DeliveryError) as refused:
        await shelf.store()
    assert refused.value.kind is Trouble.REFUSED


async def test_a_full_disk_says_so_and_leaves_nothing_half_written() -> None:
    with small_disk(1 << 20) as disk:
        shelf = Shelf(disk)
        await shelf.store(b"k" * 1000)
        with pytest.raises(DeliveryError, match="no space left") as failed:
            await shelf.store(b"b" * (4 << 20), PATH.replace("cam_1", "cam_2"))
        assert (failed.value.kind, failed.value.retry_after_sec) == (Trouble.RETRY, archive_folder.FULL_PAUSE_SEC)
        assert shelf.files() == sorted([MARK, PATH])
        await shelf.store(b"s" * 1000, PATH.replace("cam_1", "cam_3"))
        await shelf.archive.close()


async def test_a_disk_that_became_read_only_says_so() -> None:
    with small_disk(1 << 20) as disk:
        shelf = Shelf(disk)
        await shelf.store()
        remounting = await asyncio.create_subprocess_exec("mount", "-o", "remount,ro", str(disk))
        assert await remounting.wait() == 0
        with pytest.raises(DeliveryError, match="read-only") as failed:
            await shelf.store(path=PATH.replace("cam_1", "cam_2"))
        assert failed.value.kind is Trouble.RETRY
        await shelf.archive.close()


async def test_a_copy_that_could_not_be_synced_is_no_copy(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    await shelf.store()

    def fail(_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr("camserver.clients.archive_folder.os.fsync", fail)
        with pytest.raises(DeliveryError, match="check the disk"):
            await shelf.store(path=PATH.replace("cam_1", "cam_2"))
    assert shelf.files() == sorted([MARK, PATH])


async def test_a_share_that_hangs_does_not_hold_up_another(
    shelf: Shelf, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hanging one's threads are its own; it is given up after a while."""
    released = threading.Event()
    held: list[str] = []
    write = archive_folder._write

    def hang(folder: Path, copy: archive_folder.Copy) -> None:
        if folder == shelf.folder:
            held.append(copy.path)
            released.wait(60)
        write(folder, copy)

    monkeypatch.setattr(archive_folder, "_write", hang)
    hanging = [
        asyncio.ensure_future(shelf.store(path=PATH.replace("cam_1", f"cam_{n}")))
        for n in range(archive_folder.THREADS_PER_ARCHIVE)
    ]
    other = Shelf(tmp_path_factory.mktemp("other"))
    other.archive = shelf.archive
    shelf.archive._roots = (*shelf.archive._roots, str(other.root))
    other.receiver = archive_receiver(ReceiverKind.FOLDER, {"path": str(other.folder)})
    object.__setattr__(other.receiver, "receiver_id", 8)
    await asyncio.wait_for(other.store(), 60)
    assert other.files() == sorted([MARK, PATH])
    assert not any(task.done() for task in hanging)
    # All its threads are held, and whoever comes next waits behind them.
    await until(lambda: len(held) == len(hanging), "the share hangs")
    # For this one alone: the others end once they are let go, however long a busy machine takes for it.
    with monkeypatch.context() as patched:
        patched.setattr(archive_folder, "TIMEOUT_SEC", 0.05)
        with pytest.raises(DeliveryError, match="did not answer"):
            await shelf.store(path=PATH.replace("cam_1", "cam_9"))
    released.set()
    await asyncio.gather(*hanging)
