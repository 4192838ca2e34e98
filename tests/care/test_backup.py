"""Backups: made beside a running server, verified before anything is changed, and put back as they were."""

import asyncio
import io
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from camserver.base.errors import BadInput, CamError, CheckFailed, Conflict, DataOwned, DataUnusable, StoreTooNew
from camserver.base.secrets import Secret
from camserver.care import backup, backup_files, restore
from camserver.config import Settings, load, make_secrets
from camserver.objects.local import LocalObjects
from camserver.store import (
    Store,
    Tx,
    dumps,
    emptying,
    migrate,
    object_places,
    open_store,
    restored,
    sqlite_reader,
    tenants,
)
from tests.rig.small_disk import small_disk
from tests.rig.templates import Template
from tests.store.any_rows import fill


def settings_in(folder: Path, url: str = "") -> Settings:
    values = {"CAMSERVER_STORE_URL": url} if url else {}
    return load(None, values, folder / "data")


async def furnish(store: Store, objects: LocalObjects) -> list[str]:
    """Rows everywhere and two pictures; their keys."""
    home = await store.write(tenants.ensure_home, 1)
    await store.write(fill, home)
    await store.write(_give_pictures)
    _, named = await store.read(object_places.pictures, 0)
    for one in named:
        await objects.put(one.object_key, one.kind.encode() * 1000)
    return [one.object_key for one in named]


async def _give_pictures(tx: Tx) -> None:
    await tx.run("UPDATE frames SET epoch_id = 7, infer_bytes = 5000, full_bytes = 4000")
    await tx.run("UPDATE clips SET state = 'none', object_key = NULL")
    await tx.run("UPDATE errands SET object_key = NULL")
    await tx.run("UPDATE camera_sessions SET worker_key = 1, generation = 5, state = 'ACTIVE'")
    await tx.run("UPDATE camera_leases SET ended_at = NULL")


@pytest.fixture
async def here(tmp_path: Path, sqlite_template: Template) -> AsyncIterator[Settings]:
    """A furnished installation; its server runs, as far as its database knows."""
    url = sqlite_template.fresh()
    settings = settings_in(tmp_path, url)
    make_secrets(settings)
    store = await open_store(settings.store.url.reveal())
    await furnish(store, LocalObjects(settings.objects.dir))
    yield settings
    await store.close()
    sqlite_template.discard(url)


def quiet(_what: str, _done: int, _total: int) -> None:
    return None


def wanted(target: Path, **values: Any) -> backup.Wanted:
    return backup.Wanted(target, **{"objects": "copy", "secrets": None} | values)


def rows_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(map(repr, connection.execute(f"SELECT * FROM {name}"))) for name in names}  # type: ignore


# What a restore itself writes.
SETTLED = {"camera_sessions", "camera_leases", "epochs", "sessions", "audit_log", "sqlite_sequence"}
# The change feed begins anew behind every number that was given.
SETTLED |= {"changes", "change_counters"}


@pytest.mark.parametrize("name", ["monday", "monday.tar"])
async def test_what_was_backed_up_beside_a_server_is_put_back_elsewhere(
    here: Settings, tmp_path: Path, name: str
) -> None:
    target, keys = tmp_path / name, tmp_path / "secrets.json"
    told: list[tuple[str, int, int]] = []
    manifest = await backup.back_up(here, wanted(target, secrets=keys), lambda *one: told.append(one))
    assert {what for what, _, _ in told} == {"database", "objects"}
    assert (manifest.object_count, manifest.objects_gone_count) == (2, 0)
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    there = settings_in(tmp_path / "elsewhere")
    with pytest.raises(Conflict, match="credential_key"):
        await restore.restore(there, restore.Wanted(target, False, None), quiet)
    assert not there.store.url.path.exists(), "nothing was changed"  # type: ignore[union-attr]
    done = await restore.restore(there, restore.Wanted(target, False, keys), quiet)
    assert done.warnings == ()
    assert here.store.url.path is not None
    assert there.store.url.path is not None
    old, new = rows_of(here.store.url.path), rows_of(there.store.url.path)
    assert {name: rows for name, rows in old.items() if name not in SETTLED} == {
        name: rows for name, rows in new.items() if name not in SETTLED
    }
    objects = LocalObjects(there.objects.dir)
    for key in await LocalObjects(here.objects.dir).list("e7/", 10):
        assert await objects.get(key) == await LocalObjects(here.objects.dir).get(key)
    for secret in backup.secret_files(here):
        assert (there.server.secrets_dir / secret).read_text() == (here.server.secrets_dir / secret).read_text()
        assert stat.S_IMODE((there.server.secrets_dir / secret).stat().st_mode) == 0o600


async def test_no_secret_is_in_a_backup(here: Settings, tmp_path: Path) -> None:
    await backup.back_up(here, wanted(tmp_path / "b.tar"), quiet)
    content = (tmp_path / "b.tar").read_bytes()
    files = backup.secret_files(here)
    assert len(files) >= 8
    for name, path in files.items():
        assert path.read_text().strip().encode() not in content, name
    assert set(backup_files.manifest_of(tmp_path / "b.tar").secrets) == set(files)


async def test_a_restored_database_gives_no_generation_twice(here: Settings, tmp_path: Path) -> None:
    await backup.back_up(here, wanted(tmp_path / "b", objects="reference"), quiet)
    there = settings_in(tmp_path / "elsewhere")
    done = await restore.restore(there, restore.Wanted(tmp_path / "b", True, None), quiet)
    assert any("credential_key" in warning for warning in done.warnings)
    assert there.store.url.path is not None
    with closing(sqlite3.connect(there.store.url.path)) as connection:
        found = connection.execute("SELECT generation, worker_key, state FROM camera_sessions").fetchall()
        assert found == [(5 + restored.GENERATIONS_AHEAD, None, "ORPHANED")]
        assert connection.execute("SELECT count(*) FROM camera_leases WHERE ended_at IS NULL").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM audit_log WHERE action = 'database_restored'").fetchone() == (
            1,
        )


async def test_a_restore_goes_over_nothing_unasked_nor_under_a_running_server(here: Settings, tmp_path: Path) -> None:
    await backup.back_up(here, wanted(tmp_path / "b"), quiet)
    with pytest.raises(Conflict, match="--force"):
        await restore.restore(here, restore.Wanted(tmp_path / "b", False, None), quiet)
    with pytest.raises(DataOwned):
        await restore.restore(here, restore.Wanted(tmp_path / "b", True, None), quiet)
    there = settings_in(tmp_path / "elsewhere")
    for force in (True, True):
        await restore.restore(there, restore.Wanted(tmp_path / "b", force, None), quiet)
    assert there.store.url.path is not None
    assert list(there.store.url.path.parent.glob("camserver.db.before-*")), "the file before is kept"
    with pytest.raises(BadInput, match="already"):
        await backup.back_up(here, wanted(tmp_path / "b"), quiet)


async def test_objects_that_are_gone_when_their_turn_comes_are_named(here: Settings, tmp_path: Path) -> None:
    objects = LocalObjects(here.objects.dir)
    [first, second] = await objects.list("e7/", 10)
    await objects.delete(first)
    manifest = await backup.back_up(here, wanted(tmp_path / "b"), quiet)
    assert (manifest.objects_gone, manifest.object_count) == ([first], 1)
    assert (await restore.verify(tmp_path / "b", quiet)).object_count == 1
    assert second.endswith(".jpg")


def _change(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"!")


def _damages(folder: Path) -> Iterator[tuple[str, Any]]:
    yield "database.db", _change
    yield "database.db", os.unlink
    yield "objects.jsonl", _change
    yield "manifest.json", lambda path: path.write_text("{}")
    yield "manifest.json", os.unlink
    for name in ("full", "infer"):
        [picture] = folder.rglob(f"*.{name}.jpg")
        yield str(picture.relative_to(folder)), _change if name == "full" else os.unlink


async def test_damage_is_found_before_anything_is_changed(here: Settings, tmp_path: Path) -> None:
    await backup.back_up(here, wanted(tmp_path / "b"), quiet)
    there = settings_in(tmp_path / "elsewhere")
    for number, (name, damage) in enumerate(_damages(tmp_path / "b")):
        folder = tmp_path / f"damaged{number}"
        shutil.copytree(tmp_path / "b", folder)
        damage(folder / name)
        with pytest.raises((CheckFailed, BadInput)):
            await restore.verify(folder, quiet)
        with pytest.raises((CheckFailed, BadInput)):
            await restore.restore(there, restore.Wanted(folder, True, None), quiet)
        assert there.store.url.path is not None
        assert not there.store.url.path.exists()


async def test_a_tar_that_was_cut_off_or_filled_by_others_is_refused(here: Settings, tmp_path: Path) -> None:
    whole = tmp_path / "b.tar"
    await backup.back_up(here, wanted(whole), quiet)
    content = whole.read_bytes()
    (tmp_path / "cut.tar").write_bytes(content[: len(content) // 2])
    with pytest.raises(CamError):
        await restore.verify(tmp_path / "cut.tar", quiet)
    strange = tmp_path / "strange.tar"
    strange.write_bytes(content)
    with tarfile.open(strange, "a") as tar:
        member = tarfile.TarInfo("objects/../../etc/passwd")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"evil"))
    with pytest.raises(CamError):
        await restore.verify(strange, quiet)


async def test_a_backup_that_breaks_off_leaves_nothing(
    here: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "out"
    folder.mkdir()
    monkeypatch.setattr(backup, "_copy_objects", fails)
    for name in ("b", "b.tar"):
        with pytest.raises(KeyboardInterrupt):
            await backup.back_up(here, wanted(folder / name), quiet)
    assert list(folder.iterdir()) == []


# Of the small disk, beyond what the database takes: nothing for it, or nothing for the pictures after it.
@pytest.mark.parametrize("for_database", [0.5, 2.01], ids=["database", "pictures"])
@pytest.mark.parametrize("name", ["monday", "monday.tar"])
async def test_a_disk_that_gets_full_is_said_and_freed_again(
    here: Settings, tmp_path: Path, name: str, for_database: float
) -> None:
    _, named = await _named(here)
    for one in named:
        await LocalObjects(here.objects.dir).put(one.object_key, b"x" * 2_000_000)
    assert here.store.url.path is not None
    whole = await backup.back_up(here, wanted(tmp_path / "first"), quiet)
    database_bytes = whole.files[whole.database][0]
    with small_disk(int(database_bytes * for_database) + 500_000) as disk:
        keys = tmp_path / "secrets.json"
        with pytest.raises(DataUnusable, match=r"no free disk space|no room"):
            await backup.back_up(here, wanted(disk / name, secrets=keys), quiet)
        assert list(disk.iterdir()) == []
        assert not keys.exists()


async def _named(settings: Settings) -> tuple[int | None, Any]:
    async with sqlite_reader(Secret(settings.store.url.reveal())) as rows:
        return await rows.read(object_places.pictures, 0)


async def test_a_folder_that_may_not_be_written_is_said(here: Settings, tmp_path: Path) -> None:
    with small_disk(1_000_000) as disk:
        await asyncio.to_thread(subprocess.run, ["mount", "-o", "remount,ro", str(disk)], check=True)
        for name in ("monday", "monday.tar"):
            with pytest.raises(DataUnusable, match="read-only"):
                await backup.back_up(here, wanted(disk / name), quiet)


async def test_verifying_takes_no_room_for_the_database(
    here: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = await backup.back_up(here, wanted(tmp_path / "whole"), quiet)
    assert manifest.files[manifest.database][0] > 200_000
    with small_disk(100_000) as disk:
        monkeypatch.setattr("tempfile.tempdir", str(disk))
        assert await restore.verify(tmp_path / "whole", quiet) == manifest
        monkeypatch.setattr("tempfile.tempdir", None)


def test_a_manifest_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"format": "camserver-backup/9"}))
    with pytest.raises(BadInput, match="format"):
        backup_files.manifest_of(tmp_path)


def _is_of_a_newer_version(connection: sa.Connection) -> None:
    connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))


async def test_each_database_is_dumped_and_loaded(db_template: Template, db_kind: str, tmp_path: Path) -> None:
    url, other = db_template.fresh(), db_template.fresh()
    here, there = settings_in(tmp_path / "here", url), settings_in(tmp_path / "there", other)
    store = await open_store(url)
    await furnish(store, LocalObjects(here.objects.dir))
    manifest = await backup.back_up(here, wanted(tmp_path / "b"), quiet)
    assert manifest.database == f"database{dumps.suffix_of(url)}"
    assert manifest.object_count == 2
    with pytest.raises(Conflict):
        await restore.restore(there, restore.Wanted(tmp_path / "b", False, None), quiet)
    await restore.restore(there, restore.Wanted(tmp_path / "b", True, None), quiet)
    if db_kind != "sqlite":
        assert not emptying.is_empty(other)
        migrate.on_database(other, _is_of_a_newer_version)
        with pytest.raises(StoreTooNew, match="new, empty database"):
            await restore.restore(there, restore.Wanted(tmp_path / "b", True, None), quiet)
    await store.close()
    for opened in (url, other):
        db_template.discard(opened)
