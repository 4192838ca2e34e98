"""The store fixtures: a migrated database for each test, and two users who see each other's rows."""

import asyncio

from camserver.store import Store, Tx
from camserver.store.migrate import status


async def add_tenant(tx: Tx, name: str) -> int:
    return await tx.insert(
        "INSERT INTO tenants (tenant_uuid, name, created_at) VALUES (:name, :name, 0) RETURNING tenant_id", name=name
    )


async def find_tenant(tx: Tx, name: str) -> int | None:
    row = await tx.one("SELECT tenant_id FROM tenants WHERE name = :name", name=name)
    return None if row is None else int(row["tenant_id"])


async def test_a_fresh_database_is_migrated(db_url: str) -> None:
    assert (await asyncio.to_thread(status, db_url)).up_to_date


async def test_two_stores_see_each_others_rows(two_stores: tuple[Store, Store], db_kind: str) -> None:
    first, second = two_stores
    assert (first is second) == (db_kind == "sqlite")
    tenant_id = await first.write(add_tenant, "rig")
    assert await second.read(find_tenant, "rig") == tenant_id


async def test_the_next_test_finds_nothing_of_the_last(store: Store) -> None:
    assert await store.read(find_tenant, "rig") is None
    await store.write(add_tenant, "rig")
