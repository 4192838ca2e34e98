"""Row-level security on PostgreSQL: whatever a statement says, web's own role sees one tenant."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from camserver.base.errors import Fatal, StoreUnavailable
from camserver.base.secrets import Secret
from camserver.domain.people import Principal, Role
from camserver.store import Scoped, Store, Tx, open_store, row_security, tenants
from camserver.store.belt import Belt, BeltedStore, belted
from camserver.store.tables import metadata
from tests.rig.databases import PostgresServer
from tests.rig.templates import PostgresTemplate
from tests.store.any_rows import OF_TENANTS, fill

ROLE, PASSWORD = "camserver_web", "a-password-for-web"


def make_role(postgres: PostgresServer) -> None:
    """A role belongs to the whole server, so a test before may have made it."""
    postgres.admin(
        f"DO $$ BEGIN CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}' NOINHERIT; "
        "EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )


def of_web(url: str) -> Secret:
    return Secret(f"postgresql://{ROLE}:{PASSWORD}@{url.rpartition('@')[2]}")


@pytest.fixture
async def url(postgres: PostgresServer, postgres_template: PostgresTemplate) -> AsyncIterator[str]:
    make_role(postgres)
    url = postgres_template.fresh()
    yield url
    postgres_template.discard(url)


@pytest.fixture
async def main(url: str) -> AsyncIterator[Store]:
    store = await open_store(url)
    yield store
    await store.close()


@pytest.fixture
async def store(main: Store, url: str) -> AsyncIterator[BeltedStore]:
    await main.write(row_security.enable, ROLE)
    # A second time, as after an upgrade.
    assert (await main.write(row_security.enable, ROLE)).is_on
    async with belted(main, of_web(url), pool_size=2, acquire_timeout_sec=5) as opened:
        yield opened


async def two(tx: Tx) -> tuple[int, int]:
    first, second = [await tenants.ensure(tx, name, 1) for name in ("first", "second")]
    for tenant_id in (first, second):
        await fill(tx, tenant_id)
    return first, second


async def seen(tx: Scoped) -> dict[str, set[int]]:
    """Which tenants' rows statements find that forgot to hold themselves to one."""
    found = {}
    for table in OF_TENANTS:
        # The hole that the belt is for: past `Scoped`, straight to the transaction.
        rows = await tx._tx.all(f"SELECT tenant_id FROM {table.name}")
        found[table.name] = {row["tenant_id"] for row in rows}
    return found


async def rename_all(tx: Scoped) -> int:
    return await tx._tx.run("UPDATE sites SET name = 'mine'")


async def add_elsewhere(tx: Scoped, tenant_id: int) -> None:
    await tx._tx.run(
        "INSERT INTO feature_flags (tenant_id, site_id, name, value, updated_at) VALUES (:tenant_id, 0, 'x', 'y', 1)",
        tenant_id=tenant_id,
    )


async def test_a_wrong_statement_finds_nothing_of_another_tenant(store: BeltedStore) -> None:
    first, second = await store.write(two)
    for own in (first, second, first):
        mine = store.as_(Principal(own, None, Role.SYSTEM_ADMIN))
        assert {name: tenants for name, tenants in (await mine.read(seen)).items() if tenants != {own}} == {}
    mine = store.as_(Principal(first, None, Role.SYSTEM_ADMIN))
    assert await mine.write(rename_all) == 1
    with pytest.raises(Exception, match="row-level security"):
        await mine.write(add_elsewhere, second)
    # The same without a name goes through the ordinary role, which nothing holds.
    assert set().union(*(await store.read(_seen_by_main)).values()) >= {first, second}


async def _seen_by_main(tx: Tx) -> dict[str, set[int]]:
    return await seen(Scoped(tx, Principal(0, None, Role.SYSTEM_ADMIN)))


async def test_without_a_tenant_the_role_sees_nothing(store: BeltedStore) -> None:
    await store.write(two)
    assert not set().union(*(await store._belt.read(_seen_by_main)).values())


async def test_what_the_role_may_not_do_to_its_own_tenant(store: BeltedStore) -> None:
    first, _ = await store.write(two)
    mine = store.as_(Principal(first, None, Role.SYSTEM_ADMIN))
    for sql in (
        "UPDATE audit_log SET action = 'x'",
        "DELETE FROM audit_log",
        "DELETE FROM audit_seals",
        "UPDATE audit_seals SET leaves = ''",
        "UPDATE tenants SET erasing_at = 1",
        "UPDATE tenants SET home_slot = 1",
        "DELETE FROM tenants",
    ):
        with pytest.raises(Exception, match="permission denied"):
            await mine.write(_run, sql)


async def _run(tx: Scoped, sql: str) -> None:
    await tx._tx.run(sql)


async def one_site(tx: Scoped) -> None:
    await tx.one("SELECT site_id FROM sites WHERE tenant_id = :tenant_id")


async def lock_own(tx: Scoped) -> None:
    await tenants.lock(tx)


async def test_what_the_belt_costs(main: Store, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In ways to the database: one for a read that comes to a connection which served another tenant, else none."""
    await main.write(row_security.enable, ROLE)
    asked: list[str] = []
    connect = Belt._connect

    async def listening(belt: Belt) -> Any:
        connection = await connect(belt)
        connection.add_query_logger(lambda record: asked.append(record.query))
        return connection

    monkeypatch.setattr(Belt, "_connect", listening)
    async with belted(main, of_web(url), pool_size=1, acquire_timeout_sec=5) as store:
        first, second = await store.write(two)
        for tenant_id, deed, ways in (
            (first, "read", 2),
            (first, "read", 1),
            (second, "read", 2),
            (second, "write", 3),
            (second, "read", 1),
            (first, "write", 3),
            (second, "read", 1),
        ):
            asked.clear()
            scoped = store.as_(Principal(tenant_id, None, Role.SYSTEM_ADMIN))
            await (scoped.read(one_site) if deed == "read" else scoped.write(lock_own))
            # The driver tells of a statement in the loop's next turn.
            await asyncio.sleep(0)
            assert len(asked) == ways, asked


async def test_a_belt_that_holds_nothing_is_refused(main: Store, url: str) -> None:
    assert not (await main.read(row_security.status)).is_on
    with pytest.raises(Fatal, match="db rls --enable"):
        async with belted(main, of_web(url), pool_size=1, acquire_timeout_sec=5):
            pass
    await main.write(row_security.enable, ROLE)
    # Who owns the tables is not held by it.
    with pytest.raises(Fatal, match="db rls --enable"):
        async with belted(main, Secret(url), pool_size=1, acquire_timeout_sec=5):
            pass
    nowhere = Secret(of_web(url).reveal() + "_that_is_none")
    with pytest.raises(StoreUnavailable, match=r"web\.store_url is right"):
        async with belted(main, nowhere, pool_size=1, acquire_timeout_sec=5):
            pass
    assert not (await main.write(row_security.disable)).roles
    with pytest.raises(Fatal, match="no role"):
        await main.write(row_security.enable, "nobody_here")


def test_every_table_with_a_tenant_is_held() -> None:
    assert set(row_security.HELD) == {table.name for table in OF_TENANTS}
    assert set(row_security.READ) < set(metadata.tables) - set(row_security.HELD)
