"""From SQLite to a server: every row of every table, numbers go on, and nobody uses a copy that is not whole."""

import asyncio
import uuid
from collections.abc import Iterator

import pytest

from camserver.base.errors import BadInput, CheckFailed, Conflict, StoreTooOld
from camserver.base.secrets import Secret
from camserver.store import Tx, copy_database, open_store, tenants
from camserver.store.check import check_database
from camserver.store.copying import plans
from tests.rig.databases import DatabaseServer
from tests.rig.templates import SqliteTemplate
from tests.store.any_rows import fill

NAME = "店舗 'ä' \\ %s \U0001f4f7"


@pytest.fixture
def source(sqlite_template: SqliteTemplate) -> Iterator[Secret]:
    """A database with rows in every table, among them some that only a copy may write."""
    url = sqlite_template.fresh()

    async def rows() -> None:
        store = await open_store(url)
        home = await store.write(tenants.ensure_home, 1)
        other = await store.write(tenants.ensure, NAME, 1)
        for tenant_id in (home, other, other):
            await store.write(fill, tenant_id)
        await store.write(_oddities)
        await store.close()

    asyncio.run(rows())
    yield Secret(url)
    sqlite_template.discard(url)


async def _oddities(tx: Tx) -> None:
    await tx.run("UPDATE audit_log SET batch_no = 1")
    await tx.run("UPDATE workers SET metrics = NULL, labels = :labels", labels='{"b": "ä",  "a": [1, 2.5, null]}')
    await tx.run("INSERT INTO schema_versions (schema_version, document, created_at) VALUES ('x', '{}', 1)")
    await tx.run("UPDATE camera_sessions SET load_cpu = 0.1, load_mem = 1")
    for number, value in enumerate(("1794918587355", "0.25", '"5"', "true", "[1]")):
        await tx.run(
            "INSERT INTO settings (tenant_id, name, value, updated_at) VALUES (0, :name, :value, 1)",
            name=f"odd-{number}",
            value=value,
        )


@pytest.fixture(params=["postgres", "mariadb"])
def target(request: pytest.FixtureRequest) -> Iterator[Secret]:
    server: DatabaseServer = request.getfixturevalue(request.param)
    name = f"copy_{uuid.uuid4().hex[:12]}"
    server.create(name)
    yield Secret(server.url(name))
    server.drop(name)


class Broken(Exception):
    pass


async def test_every_row_is_copied_and_a_broken_off_copy_goes_on(source: Secret, target: Secret) -> None:
    def breaks(table: str, done: int, total: int) -> None:
        if table == "frames":
            raise Broken

    with pytest.raises(Broken):
        await copy_database(source, target, None, breaks)
    with pytest.raises(StoreTooOld, match="db copy"):
        await open_store(target)
    told: list[tuple[str, int, int]] = []
    copied = await copy_database(source, target, None, lambda *one: told.append(one))
    assert {"audit_log", "frames"}.isdisjoint({table for table, _, _ in told}), "these were there already"
    assert set(copied) == {plan.name for plan in plans()}
    assert copied["tenants"].rows == 2
    assert all(standing.rows for name, standing in copied.items() if name in ("frames", "audit_log", "workers"))
    schema = [found for found in await check_database(target) if found.kind.startswith("schema")]
    assert not schema, "tables, indexes and the guards of the audit log"
    store = await open_store(target)
    try:
        assert await store.write(tenants.ensure, "new", 1) == 3, "numbers go on"
        assert await store.write(tenants.ensure, NAME, 1) == 2
        with pytest.raises(Conflict):
            await store.write(_change_the_log)
    finally:
        await store.close()


async def _change_the_log(tx: Tx) -> None:
    await tx.run("UPDATE audit_log SET action = 'other'")


async def test_a_target_with_rows_is_refused_and_a_source_that_changed_is_noticed(
    source: Secret, target: Secret
) -> None:
    def breaks(table: str, done: int, total: int) -> None:
        if table == "users":
            raise Broken

    with pytest.raises(Broken):
        await copy_database(source, target, None, breaks)
    store = await open_store(source)
    await store.write(_rename)
    await store.close()
    with pytest.raises(CheckFailed, match="tenants"):
        await copy_database(source, target, None, lambda *_: None)
    store = await open_store(source)
    await store.write(_rename, NAME)
    await store.close()
    await copy_database(source, target, None, lambda *_: None)
    with pytest.raises(Conflict, match="rows already"):
        await copy_database(source, target, None, lambda *_: None)
    with pytest.raises(BadInput):
        await copy_database(target, source, None, lambda *_: None)


async def _rename(tx: Tx, name: str = "renamed") -> None:
    await tx.run("UPDATE tenants SET name = :name WHERE tenant_id = 2", name=name)
