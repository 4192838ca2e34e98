"""The way back after an upgrade, as docs/guide/upgrade.md tells it, and forward again: on each database."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from camserver.base.errors import StoreTooNew
from camserver.base.secrets import Secret
from camserver.care import backup, restore
from camserver.objects.local import LocalObjects
from camserver.store import Tx, open_store, restored, sqlite_schema, tenants, upgrade_database
from camserver.store.check import check_database
from tests.care.test_backup import furnish, quiet, settings_in, wanted
from tests.rig.databases import DatabaseServer
from tests.rig.templates import Template

NOW = sqlite_schema.newest_revision()
NEXT = f"{int(NOW) + 1:04}"
NEWER = f'''
"""What a newer version changes: a column, and a table that refers to one of ours."""

import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{NOW}"


def upgrade() -> None:
    op.add_column("tenants", sa.Column("nick", sa.String(64), nullable=False, server_default=""))
    parent = sa.ForeignKey("tenants.tenant_id")
    op.create_table("toys", sa.Column("tenant_id", sa.BigInteger, parent, primary_key=True))
    op.execute("INSERT INTO toys (tenant_id) SELECT tenant_id FROM tenants")
'''


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    folder = tmp_path / "newer" / "migrations"
    shutil.copytree(sqlite_schema.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / f"{NEXT}_newer.py").write_text(NEWER)
    return folder


@pytest.fixture
def new_database(db_kind: str, db_template: Template, request: pytest.FixtureRequest) -> Iterator[str | None]:
    """An empty one beside; a SQLite file is replaced instead."""
    if db_kind == "sqlite":
        yield None
        return
    server: DatabaseServer = request.getfixturevalue(db_kind)
    name = f"back_{uuid.uuid4().hex[:12]}"
    server.create(name)
    yield server.url(name)
    server.drop(name)


async def test_what_was_backed_up_before_an_upgrade_is_there_after_going_back(
    db_template: Template, new_database: str | None, newer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = db_template.fresh()
    here = settings_in(tmp_path, url)
    store = await open_store(url)
    await furnish(store, LocalObjects(here.objects.dir))
    await backup.back_up(here, wanted(tmp_path / "before"), quiet)
    await store.write(_stops)
    await store.close()
    with monkeypatch.context() as program:
        program.setattr(sqlite_schema, "MIGRATIONS", newer)
        await upgrade_database(Secret(url), None)
        store = await open_store(url)
        await store.write(tenants.ensure, "of the newer one", 1)
        await store.close()
    with pytest.raises(StoreTooNew, match="restore the backup"):
        await open_store(url)
    source = restore.Wanted(tmp_path / "before", new_database is None, None)
    if new_database is not None:
        with pytest.raises(StoreTooNew, match="new, empty database"):
            await restore.restore(here, restore.Wanted(tmp_path / "before", True, None), quiet)
        here = settings_in(tmp_path, new_database)
    await restore.restore(here, source, quiet)
    await _is_as_before(here.store.url.reveal())
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", newer)
    await upgrade_database(Secret(here.store.url.reveal()), None)
    store = await open_store(here.store.url.reveal())
    found = [await store.read(_count, table) for table in ("tenants", "toys")]
    await store.close()
    assert found == [2, 2], "nothing of the first upgrade was in the way"
    db_template.discard(url)


async def _is_as_before(url: str) -> None:
    schema = [found for found in await check_database(url) if found.kind.startswith("schema")]
    assert not schema, "tables, indexes and triggers"
    store = await open_store(url)
    try:
        assert await store.read(_count, "tenants") == 1
        assert await store.read(_generations) == [5 + restored.GENERATIONS_AHEAD]
        assert await store.write(tenants.ensure, "next", 1) > 1
    finally:
        await store.close()


async def _stops(tx: Tx) -> None:
    """As each server does at its end."""
    await tx.run("UPDATE epochs SET ended_at = 1")


async def _count(tx: Tx, table: str) -> int:
    row = await tx.one(f"SELECT count(*) AS n FROM {table}")
    assert row is not None
    return int(row["n"])


async def _generations(tx: Tx) -> list[int]:
    return [row["generation"] for row in await tx.all("SELECT generation FROM camera_sessions")]
