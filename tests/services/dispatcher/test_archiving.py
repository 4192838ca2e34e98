"""From an event to copies in a folder and on Google Drive: whole, once, and gone when their time has come."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uuid_utils

from camserver.base.errors import StoreUnavailable
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.config.secret_files import make_secrets
from camserver.domain.archive import DAY_MS
from camserver.domain.deliveries import ReceiverKind
from camserver.objects.keys import Kind, frame_key
from camserver.services.dispatcher.archives import open_archives
from camserver.services.dispatcher.archiving import ArchiveSweeper
from camserver.services.dispatcher.receivers import ReceiverBook
from camserver.store import Store, Tx, receivers
from tests.fakes.analyzer import Seen
from tests.fakes.drive import Answer, Cut, FakeDrive, Unheard, Wait
from tests.rig.pictures import jpeg
from tests.services.dispatcher.stage import Stage, StoreProxy
from tests.services.dispatcher.test_notifying import add_receiver, admin, until_told
from tests.store.scenery import NOW_MS
from tests.store.stage import statement

R = TypeVar("R")

HUMAN = Seen("human", (), confidence=0.8, severity=1)
UNKNOWN = Seen("unknown", (), confidence=0.3, severity=1, unknown_flag=True)
on_one_database = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)


@pytest.fixture
async def drive() -> AsyncIterator[FakeDrive]:
    async with FakeDrive() as fake:
        yield fake


@pytest.fixture
async def stage(stage: Stage, drive: FakeDrive, tmp_path: Path) -> Stage:
    """A stage whose archives may be on this machine."""
    (tmp_path / "mnt").mkdir()
    stage.settings = replace(
        stage.settings,
        deliveries=replace(stage.settings.deliveries, allow_loopback=True),
        archive=replace(stage.settings.archive, folders=(str(tmp_path / "mnt"),)),
        drive=replace(stage.settings.drive, api_url=drive.url),
    )
    return stage


async def add_folder(stage: Stage, folder: Path) -> str:
    return await add_receiver(stage, "folder", "NAS", {"path": str(folder)}, {})


async def add_drive(stage: Stage, drive: FakeDrive) -> str:
    config = {"folder_id": drive.root_id}
    return await add_receiver(stage, "drive", "Drive", config, {"credentials": drive.key_file})


async def copies(stage: Stage) -> list[dict[str, Any]]:
    return await stage.rows("SELECT * FROM drive_objects ORDER BY object_id")


async def of_kind(stage: Stage, kind: str) -> list[dict[str, Any]]:
    return await stage.rows("SELECT * FROM deliveries WHERE kind = :kind ORDER BY delivery_id", kind=kind)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


async def test_a_detected_picture_is_copied_to_every_archive(stage: Stage, drive: FakeDrive, tmp_path: Path) -> None:
    folder = tmp_path / "mnt" / "archive"
    await add_folder(stage, folder)
    await add_drive(stage, drive)
    await stage.store.write(statement, "UPDATE sites SET timezone = 'Asia/Tokyo'", {})
    full = jpeg({"large": True})
    uuid = await stage.look(0, HUMAN, full_bytes=len(full))
    scene = stage.scene
    key = frame_key(scene.epoch_id, scene.tenant_id, scene.camera_keys[0], NOW_MS, uuid, Kind.FULL)
    await stage.objects.put(key, full)
    async with stage.dispatcher():
        await until_told(stage)
    path = f"camera-archive/2027/01/15/cam_0/20270115T170000.000+0900_{uuid}.jpg"
    assert files(folder) == {path: full}
    assert drive.pictures() == {path: full}
    rows = await copies(stage)
    assert {(row["path"], row["bytes"], row["sha256"], row["retention_class"]) for row in rows} == {
        (path, len(full), hashlib.sha256(full).hexdigest(), "normal")
    }
    assert len(rows) == 2
    assert {row["expires_at"] - row["archived_at"] for row in rows} == {14 * DAY_MS}
    assert [row["status"] for row in await of_kind(stage, "archive")] == ["done"]


@on_one_database
async def test_an_unknown_picture_goes_to_quarantine_and_nothing_to_nobody(stage: Stage, tmp_path: Path) -> None:
    folder = tmp_path / "mnt" / "archive"
    await add_folder(stage, folder)
    async with stage.dispatcher():
        await stage.look(0, UNKNOWN, full_bytes=None)
        await stage.look(1, Seen("none", ()), full_bytes=None)
        await until_told(stage)
    assert [path.split("/")[:4] for path in files(folder)] == [["camera-quarantine", "2027", "01", "cam_0"]]
    [row] = await copies(stage)
    assert row["expires_at"] - row["archived_at"] == 60 * DAY_MS


async def test_a_storm_ends_at_the_quota_and_is_told_once(stage: Stage, tmp_path: Path) -> None:
    folder = tmp_path / "mnt" / "archive"
    await add_folder(stage, folder)
    size = len(jpeg(HUMAN.hint()))
    stage.settings = replace(
        stage.settings, archive=replace(stage.settings.archive, camera_day_bytes=int(size * 2.5))
    )
    async with stage.dispatcher():
        for number in range(5):
            await stage.look(0, HUMAN, NOW_MS - 10_000 + number * 1000, full_bytes=None)
            await until_told(stage)
        await stage.look(1, HUMAN, full_bytes=None)
        await until_told(stage)
    assert len(files(folder)) == 3
    left_out = [row for row in await of_kind(stage, "copy") if row["status"] == "suppressed"]
    assert [row["last_error"] for row in left_out] == ["over the camera's quota of the day"] * 3
    [report] = await stage.rows("SELECT * FROM sweep_reports WHERE what = 'archive_quota'")
    assert (report["count"], report["bytes"]) == (3, sum(size for _ in left_out))
    assert "cam_0" in report["reason"]
    assert "NAS" in report["reason"]


@pytest.mark.parametrize("step", ["get", "list", "folder", "begin", "put"])
async def test_a_dispatcher_that_dies_within_an_upload_leaves_one_file(
    stage: Stage, drive: FakeDrive, step: str
) -> None:
    """Stopped while Drive is asked; another one goes on."""
    await add_drive(stage, drive)
    waits = Wait()
    drive.fail(step, waits)
    async with stage.dispatcher():
        await stage.look(0, HUMAN, full_bytes=None)
        await waits.begun.wait()
    waits.released.set()
    async with stage.dispatcher():
        await until_told(stage)
    assert len(drive.pictures()) == 1
    assert len(await copies(stage)) == 1
    [row] = await of_kind(stage, "copy")
    assert row["status"] == "done"


async def test_an_upload_that_was_cut_goes_on_after_a_restart(stage: Stage, drive: FakeDrive) -> None:
    await add_drive(stage, drive)
    picture = jpeg(HUMAN.hint())
    drive.fail("put", Cut(len(picture) // 2))
    drive.fail("status", Cut())
    async with stage.dispatcher():
        await stage.look(0, picture, full_bytes=None)

        async def put_off() -> bool:
            return [row["status"] for row in await of_kind(stage, "copy")] == ["delayed"]

        await stage.until(put_off, "the upload was put off")

    async def copied() -> bool:
        return [row["status"] for row in await of_kind(stage, "copy")] == ["done"]

    [row] = await of_kind(stage, "copy")
    # What goes on with an upload is nothing for people who read deliveries.
    assert drive.url not in json.dumps(row, default=str)
    assert "upload_id" not in json.dumps(row, default=str)
    assert row["attempt"] == 0
    await stage.clock.advance(60_000)
    async with stage.dispatcher():
        await stage.until(copied, "the copy arrived")
    assert list(drive.pictures().values()) == [picture]
    assert drive.sent_bytes == len(picture)
    assert drive.asked.count("begin") == 1


class ForgetfulStore(StoreProxy):
    """Loses the answer to one write of a copy under way: it was written, or was not, and nobody knows."""

    def __init__(self, real: Store, write: str, is_written: bool) -> None:
        super().__init__(real)
        self.lost_write = write
        self.is_written = is_written
        self.lost = False

    async def around(self, name: str, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        if name != self.lost_write or self.lost or not await self.real.read(_running_copies):
            return await call()
        self.lost = True
        if self.is_written:
            await call()
        raise StoreUnavailable("lost by the test")


async def _running_copies(tx: Tx) -> int:
    row = await tx.one("SELECT count(*) AS found FROM deliveries WHERE kind = 'copy' AND status = 'running'")
    assert row is not None
    return int(row["found"])


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("write", ["note", "settle"])
async def test_a_store_that_is_away_for_a_moment_makes_no_second_copy(
    stage: Stage, drive: FakeDrive, tmp_path: Path, write: str, is_written: bool
) -> None:
    folder = tmp_path / "mnt" / "archive"
    await add_folder(stage, folder)
    await add_drive(stage, drive)
    store = ForgetfulStore(stage.store, write, is_written)
    async with stage.dispatcher(store=store):
        await stage.look(0, HUMAN, full_bytes=None)

        async def copied() -> bool:
            await stage.clock.advance(1000)
            return [row["status"] for row in await of_kind(stage, "copy")] == ["done", "done"]

        await stage.until(copied, "both copies arrived")
    assert store.lost
    assert len(drive.pictures()) == len(files(folder)) == 1
    assert len(await copies(stage)) == 2


async def test_two_dispatchers_make_one_copy_of_each_picture(stage: Stage, drive: FakeDrive, tmp_path: Path) -> None:
    folder = tmp_path / "mnt" / "archive"
    await add_folder(stage, folder)
    await add_drive(stage, drive)
    async with stage.dispatcher(), stage.dispatcher():
        for camera in range(3):
            await stage.look(camera, HUMAN, full_bytes=None)
        await until_told(stage)
    assert len(files(folder)) == len(drive.pictures()) == 3
    assert len(await copies(stage)) == 6


@on_one_database
async def test_a_disk_that_is_not_mounted_gets_its_pictures_later(stage: Stage, tmp_path: Path) -> None:
    folder = tmp_path / "mnt" / "archive"
    receiver_uuid = await add_folder(stage, folder)
    async with stage.dispatcher():
        await stage.look(0, HUMAN, full_bytes=None)
        await until_told(stage)
        folder.rename(tmp_path / "unmounted")
        folder.mkdir()
        await stage.look(1, HUMAN, full_bytes=None)

        async def put_off() -> bool:
            return [row["status"] for row in await of_kind(stage, "copy")] == ["done", "delayed"]

        await stage.until(put_off, "the copy was put off")
        assert files(folder) == {}
        assert "mount it" in (await of_kind(stage, "copy"))[1]["last_error"]
        folder.rmdir()
        (tmp_path / "unmounted").rename(folder)
        await stage.pass_time(400, 20)
        await until_told(stage)
    assert len(files(folder)) == 2
    shown = await stage.store.as_(admin(stage)).read(receivers.get, receiver_uuid)
    assert shown.receiver_uuid == receiver_uuid


@on_one_database
async def test_a_trial_leaves_nothing_behind(stage: Stage, drive: FakeDrive, tmp_path: Path) -> None:
    folder = tmp_path / "mnt" / "archive"
    tried = [await add_folder(stage, folder), await add_drive(stage, drive)]
    outside = await add_receiver(stage, "folder", "outside", {"path": str(tmp_path / "elsewhere")}, {})
    async with stage.dispatcher():
        for receiver_uuid in (*tried, outside):
            trial = str(uuid_utils.uuid7())
            await stage.store.as_(admin(stage)).write(receivers.queue_trial, receiver_uuid, trial, "", NOW_MS)
        await until_told(stage)
    rows = await of_kind(stage, "copy")
    assert [row["status"] for row in rows] == ["done", "done", "dead"]
    assert "[archive] folders" in rows[2]["last_error"]
    assert files(folder) == {}
    assert drive.pictures() == {}
    assert await copies(stage) == []


@on_one_database
async def test_a_picture_that_is_gone_is_no_failure(stage: Stage, tmp_path: Path) -> None:
    await add_folder(stage, tmp_path / "mnt" / "archive")
    async with stage.dispatcher():
        await stage.look(0, HUMAN, full_bytes=None)
        await until_told(stage)
    await stage.store.write(statement, "DELETE FROM drive_objects", {})
    await stage.store.write(statement, "UPDATE frames SET epoch_id = NULL", {})
    await stage.store.write(
        statement, "UPDATE deliveries SET status = 'queued', locked_token = NULL WHERE kind = 'copy'", {}
    )
    async with stage.dispatcher():
        await until_told(stage)
    [row] = await of_kind(stage, "copy")
    assert (row["status"], row["last_error"]) == ("suppressed", "the picture is past its retention")


# ---------------------------------------------------------------------------------------------------------------
# Removing
# ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def sweeper(stage: Stage) -> AsyncIterator[ArchiveSweeper]:
    secrets = make_secrets(stage.settings)
    book = ReceiverBook(stage.store, stage.clock, secrets.credential_key_bytes())
    http = OutgoingHttp(OutgoingPolicy(allow_loopback=True))
    archives = open_archives(stage.store, http, stage.clock, stage.settings)
    yield ArchiveSweeper("d", stage.store, stage.clock, book, archives, stage.settings.archive)
    for archive in archives.values():
        await archive.close()
    await http.close()


async def sweep(stage: Stage, sweeper: ArchiveSweeper, days: float) -> None:
    await stage.clock.advance(round(days * DAY_MS))
    await sweeper.turn()


async def archived(stage: Stage, *seen: Seen) -> None:
    async with stage.dispatcher():
        for camera, one in enumerate(seen):
            await stage.look(camera, one, full_bytes=None)
        await until_told(stage)


async def test_copies_go_after_fourteen_and_sixty_days(
    stage: Stage, sweeper: ArchiveSweeper, drive: FakeDrive, tmp_path: Path
) -> None:
    folder = tmp_path / "mnt" / "archive"
    await add_folder(stage, folder)
    await add_drive(stage, drive)
    await archived(stage, HUMAN, UNKNOWN)
    await sweep(stage, sweeper, 13.9)
    assert (len(files(folder)), len(drive.pictures())) == (2, 2)
    await sweep(stage, sweeper, 0.2)
    assert [path.split("/")[0] for path in files(folder)] == ["camera-quarantine"]
    assert [path.split("/")[0] for path in drive.pictures()] == ["camera-quarantine"]
    await sweep(stage, sweeper, 46)
    assert (files(folder), drive.pictures()) == ({}, {})
    assert all(row["deleted_at"] is not None for row in await copies(stage))
    reports = await stage.rows("SELECT * FROM sweep_reports WHERE what = 'archive_copies' ORDER BY report_id")
    assert [(row["count"], row["bytes"] > 0) for row in reports] == [(1, True)] * 4
    await sweep(stage, sweeper, 31)
    assert await copies(stage) == []


@on_one_database
async def test_an_archive_that_is_away_loses_its_copies_later(
    stage: Stage, sweeper: ArchiveSweeper, drive: FakeDrive
) -> None:
    receiver_uuid = await add_drive(stage, drive)
    await archived(stage, HUMAN, HUMAN, HUMAN)
    drive.fail("delete", Answer(503), Unheard(), Answer(403, "rateLimitExceeded"))
    await sweep(stage, sweeper, 14.1)
    assert len([row for row in await copies(stage) if row["deleted_at"] is None]) == 2
    await sweeper.book.write_reports()
    shown = await stage.store.as_(admin(stage)).read(receivers.get, receiver_uuid)
    assert shown.last_error is not None
    await sweep(stage, sweeper, 0.1)
    assert drive.pictures() == {}
    assert all(row["deleted_at"] is not None for row in await copies(stage))


@on_one_database
async def test_copies_of_a_removed_archive_stay_where_they_are(
    stage: Stage, sweeper: ArchiveSweeper, drive: FakeDrive
) -> None:
    receiver_uuid = await add_drive(stage, drive)
    await archived(stage, HUMAN)
    await stage.store.as_(admin(stage)).write(receivers.remove, receiver_uuid, "", NOW_MS)
    await sweep(stage, sweeper, 14.1)
    assert len(drive.pictures()) == 1
    assert await copies(stage) == []
    assert ReceiverKind.DRIVE in sweeper.archives
