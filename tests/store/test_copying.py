"""From SQLite to a server: every row of every table, numbers go on, and nobody uses a copy that is not whole."""

import asyncio
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from camserver.base.errors import BadInput, CheckFailed, Conflict, StoreTooOld
from camserver.base.secrets import Secret
from camserver.store import Dialect, Tx, copy_database, copying, emptying, migrate, open_store, tenants
from camserver.store.check import check_database
from camserver.store.copying import highest_given, plans
from tests.rig.databases import DatabaseServer
from tests.rig.templates import SqliteTemplate
from tests.store.any_rows import fill
from tests.store.dying import COPIED

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


async def test_no_number_is_given_twice_when_its_row_is_gone(source: Secret, target: Secret) -> None:
    ours = await open_store(source)
    given = [await ours.write(tenants.ensure, name, 1) for name in ("third", "fourth")]
    await ours.write(_forget, given[-1])
    last_key = {plan.name: await ours.read(highest_given, plan) for plan in plans() if plan.numbered is not None}
    await ours.close()
    assert (given, last_key["tenants"]) == ([3, 4], 4)
    await copy_database(source, target, None, lambda *_: None)
    theirs = await open_store(target)
    try:
        assert await theirs.write(tenants.ensure, "fifth", 1) == 5
        for name, last in last_key.items():
            assert await theirs.read(_next_number, name) == last + (2 if name == "tenants" else 1), name
    finally:
        await theirs.close()


async def _forget(tx: Tx, tenant_id: int) -> None:
    await tx.run("DELETE FROM change_counters WHERE tenant_id = :tenant_id", tenant_id=tenant_id)
    await tx.run("DELETE FROM tenants WHERE tenant_id = :tenant_id", tenant_id=tenant_id)


async def _next_number(tx: Tx, table: str) -> int:
    """As the target's own books have it."""
    if tx.dialect is Dialect.MARIADB:
        row = await tx.one(f"SHOW CREATE TABLE {table}")
        assert row is not None
        found = re.search(r"AUTO_INCREMENT=(\d+)", str(row["Create Table"]))
        return 1 if found is None else int(found[1])
    numbered = next(plan.numbered for plan in plans() if plan.name == table)
    sequence = await tx.one(f"SELECT pg_get_serial_sequence('{table}', '{numbered}') AS name")
    assert sequence is not None
    row = await tx.one(f"SELECT last_value + CASE WHEN is_called THEN 1 ELSE 0 END AS n FROM {sequence['name']}")
    assert row is not None
    return int(row["n"])


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


# Killed


@pytest.mark.parametrize("moment", COPIED)
async def test_no_server_starts_on_what_a_killed_copy_left_and_the_next_copy_makes_it_whole(
    source: Secret, target: Secret, moment: str
) -> None:
    argv = [sys.executable, "-m", "tests.store.dying", "copy", source.reveal(), target.reveal(), moment]
    died = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, timeout=120, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    if not await asyncio.to_thread(emptying.is_empty, target.reveal()):  # PostgreSQL undid it
        with pytest.raises(StoreTooOld, match="db copy"):
            await open_store(target)
        assert await asyncio.to_thread(emptying.is_unfinished, target.reveal()) or moment == "at the end"
    copied = await copy_database(source, target, None, lambda *_: None)
    assert copied["tenants"].rows == 2
    assert not [found for found in await check_database(target) if found.kind.startswith("schema")]
    await (await open_store(target)).close()


async def test_a_copy_that_another_version_began_is_begun_anew(source: Secret, target: Secret) -> None:
    await asyncio.to_thread(copying.prepare, target.reveal())
    await asyncio.to_thread(
        migrate.on_database, target.reveal(), lambda found: copying._set_version(found, "copying-0")
    )
    with pytest.raises(StoreTooOld, match="db copy"):
        await open_store(target)
    await copy_database(source, target, None, lambda *_: None)
    await (await open_store(target)).close()
