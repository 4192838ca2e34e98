"""kill -9 in the middle of a backup or a restore: nothing half is taken for whole, and the next one goes through."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from camserver.base.errors import StoreTooOld
from camserver.base.exits import Exit
from camserver.care import backup, checks, restore
from camserver.config import Settings, make_secrets
from camserver.objects.local import LocalObjects
from camserver.store import Tx, dumps, emptying, open_store, restored
from tests.care.test_backup import furnish, quiet, settings_in, wanted
from tests.rig.databases import MariadbServer, PostgresServer
from tests.rig.polling import poll
from tests.rig.templates import MariadbTemplate, PostgresTemplate, SqliteTemplate


def command(settings: Settings, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "CAMSERVER_STORE_URL": settings.store.url.reveal()}
    return subprocess.Popen(
        [sys.executable, "-m", "camserver", "--data-dir", str(settings.server.data_dir), *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=120)
    return process.returncode, said


@pytest.mark.parametrize("name", ["monday", "monday.tar"])
def test_what_a_killed_backup_left_is_cleared_by_the_next(
    sqlite_template: SqliteTemplate, tmp_path: Path, name: str
) -> None:
    url = sqlite_template.fresh()
    settings, out = settings_in(tmp_path, url), tmp_path / "out"
    make_secrets(settings)
    out.mkdir()
    pictures = asyncio.run(_furnished(url, settings))
    # Whoever reads it waits for somebody to write: in the middle of the backup.
    picture = settings.objects.dir.joinpath(*pictures[1].split("/"))
    content = picture.read_bytes()
    picture.unlink()
    os.mkfifo(picture)
    first = command(settings, "backup", str(out / name))
    part = out / f".{name}.part"
    poll(lambda: (part / backup.OBJECT_LIST).exists(), "the backup's objects")
    kill(first)
    assert [path.name for path in out.iterdir()] == [part.name]
    picture.unlink()
    picture.write_bytes(content)
    code, said = ended(command(settings, "backup", str(out / name)))
    assert (code, part.name in said) == (Exit.OK, True), said
    assert [path.name for path in out.iterdir()] == [name]
    assert asyncio.run(restore.verify(out / name, quiet)).object_count == 2
    sqlite_template.discard(url)


async def _furnished(url: str, settings: Settings) -> list[str]:
    store = await open_store(url)
    try:
        return await furnish(store, LocalObjects(settings.objects.dir))
    finally:
        await store.close()


async def _backup_of(url: str, folder: Path) -> Path:
    settings = settings_in(folder / "here", url)
    await _furnished(url, settings)
    await backup.back_up(settings, wanted(folder / "b"), quiet)
    return folder / "b"


@asynccontextmanager
async def _waited_for(url: str, statement: str) -> AsyncIterator[None]:
    """A transaction that others have to wait for."""
    driver = "postgresql+asyncpg" if url.startswith("postgres") else "mariadb+asyncmy"
    engine = create_async_engine(sa.make_url(url).set(drivername=driver), poolclass=sa.pool.NullPool)
    try:
        async with engine.connect() as connection:
            await connection.execute(sa.text(statement))
            yield
            await connection.rollback()
    finally:
        await engine.dispose()


async def _killed_restore(source: Path, there: Settings, statement: str) -> None:
    url = there.store.url.reveal()
    async with _waited_for(url, statement):
        begun = await asyncio.to_thread(command, there, "restore", str(source), "--force")
        await asyncio.to_thread(poll, lambda: emptying.is_unfinished(url), "the mark of a restore")
        await asyncio.to_thread(kill, begun)
        with pytest.raises(StoreTooOld, match="restore"):
            await open_store(url)
    with pytest.raises(StoreTooOld, match="restore"):
        await open_store(url)
    left = [found for found in await checks.run_checks(there, False, False) if found.area in ("database", "disk")]
    assert {"database_away", "restore_left"} <= {found.kind for found in left}
    await restore.restore(there, restore.Wanted(source, True, None), quiet)
    assert not list(there.server.data_dir.glob(restore.SCRATCH_PATTERN))
    store = await open_store(url)
    try:
        assert await store.read(_generations) == [5 + restored.GENERATIONS_AHEAD]
    finally:
        await store.close()


async def _generations(tx: Tx) -> list[int]:
    return [row["generation"] for row in await tx.all("SELECT generation FROM camera_sessions")]


async def test_no_server_starts_on_half_a_postgresql(
    postgres: PostgresServer, postgres_template: PostgresTemplate, tmp_path: Path
) -> None:
    url, name = postgres_template.fresh(), f"half_{uuid.uuid4().hex[:12]}"
    source = await _backup_of(url, tmp_path)
    postgres.create(name)
    # Whoever makes a table of that name waits until it is known whether this one stays.
    await _killed_restore(source, settings_in(tmp_path / "there", postgres.url(name)), "CREATE TABLE frames (x int)")
    postgres.drop(name)
    postgres_template.discard(url)


async def test_no_server_starts_on_half_a_mariadb(
    mariadb: MariadbServer, mariadb_template: MariadbTemplate, tmp_path: Path
) -> None:
    url, other = mariadb_template.fresh(), mariadb_template.fresh()
    source = await _backup_of(url, tmp_path)
    # A table that is read in a transaction can't be dropped.
    await _killed_restore(source, settings_in(tmp_path / "there", other), "SELECT count(*) FROM frames")
    for one in (url, other):
        mariadb_template.discard(one)


async def test_a_sqlite_file_is_replaced_by_one_that_was_told_all(
    sqlite_template: SqliteTemplate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = sqlite_template.fresh()
    source = await _backup_of(url, tmp_path)
    there = settings_in(tmp_path / "there")
    found: list[tuple[int]] = []

    def ends_here(_url: str, dumped: Path) -> None:
        with closing(sqlite3.connect(dumped)) as connection:
            found.extend(connection.execute("SELECT generation FROM camera_sessions").fetchall())
        raise KeyboardInterrupt

    monkeypatch.setattr(dumps, "load", ends_here)
    with pytest.raises(KeyboardInterrupt):
        await restore.restore(there, restore.Wanted(source, True, None), quiet)
    assert found == [(5 + restored.GENERATIONS_AHEAD,)]
    assert there.store.url.path is not None
    assert not there.store.url.path.exists()
    sqlite_template.discard(url)
