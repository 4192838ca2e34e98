"""Erasing a tenant: everything of it, nothing of others, from wherever it was broken off."""

import json
from typing import Any

import pytest

from camserver.base.errors import Conflict
from camserver.domain.people import Principal, Role
from camserver.services.dispatcher.erasing import Eraser
from camserver.store import Store, Tx, audit_seals, erasure, garbage, tenants
from camserver.store.erasure import LAST, LASTS_MS_MIN, TABLES, Erased, Wanted
from camserver.store.tables import metadata
from tests.rig.clock import ManualClock
from tests.store.any_rows import OF_TENANTS, counts, fill
from tests.store.test_audit import add, check, run, seal_all


async def no_pause() -> None:
    pass


def test_every_table_with_a_tenant_is_erased() -> None:
    covered = [table.name for table in TABLES] + list(LAST)
    assert sorted(covered) == sorted(table.name for table in OF_TENANTS)
    for table in TABLES:
        key = [column.name for column in metadata.tables[table.name].primary_key.columns]
        assert table.keys == ", ".join(key), table.name


def test_children_go_before_their_parents() -> None:
    order = {name: at for at, name in enumerate([table.name for table in TABLES] + list(LAST))}
    for table in OF_TENANTS:
        for foreign in table.foreign_keys:
            assert order[table.name] < order[foreign.column.table.name], (table.name, foreign.column.table.name)


def test_every_object_that_a_row_names_goes_into_the_bin() -> None:
    with_objects = {table.name for table in OF_TENANTS if {"object_key", "epoch_id"} & set(table.columns.keys())}
    assert with_objects == {"frames", "garbage", *(table.name for table in TABLES if table.object_key)}


class Mortal:
    """A store whose user dies right after its second write that deleted something."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left = 2

    async def read(self, operation: Any, *args: Any) -> Any:
        return await self._store.read(operation, *args)

    async def write(self, operation: Any, *args: Any) -> Any:
        done = await self._store.write(operation, *args)
        self._left -= isinstance(done, Erased) and done.rows > 0
        if self._left == 0:
            raise KeyboardInterrupt
        return done


async def homes(tx: Tx) -> tuple[int, int, int]:
    """The home tenant, one to erase and one to leave."""
    acme, other = [await tenants.ensure(tx, name, 1) for name in ("acme", "other")]
    return await tenants.ensure_home(tx, 1), acme, other


@pytest.mark.asyncio(loop_scope="module")
async def test_it_goes_on_wherever_it_was_broken_off(fresh_store: Store) -> None:
    store, clock = fresh_store, ManualClock()
    home, acme, other = await store.write(homes)
    for tenant_id in (acme, other):
        await store.write(fill, tenant_id)
    before = await store.read(counts, other)
    principal = Principal(home, None, Role.SYSTEM_ADMIN)
    await store.write(erasure.begin, principal, Wanted("acme", "acme", True), "", clock.now_ms())
    await clock.advance(LASTS_MS_MIN)
    lives = 0
    while await store.read(erasure.next_up) is not None:
        lives += 1
        assert lives < 200
        try:
            await Eraser(Mortal(store), clock, no_pause).turn()  # type: ignore[arg-type]  # a store in part
        except KeyboardInterrupt:
            continue
        # What the sweep does when the objects are unlinked.
        trash = await store.read(garbage.oldest)
        own = [item.garbage_id for item in trash if await store.read(_is_of, item.garbage_id, acme)]
        await store.write(garbage.forget, tuple(own))
    assert lives > 10
    assert not any((await store.read(counts, acme)).values())
    assert await store.read(counts, other) == before
    row = await store.read(_last_entry, home)
    assert row["rows"] >= len(TABLES) - 5
    assert row["objects"] == 5  # two pictures, a clip, a piece of a sheet, an errand's


@pytest.mark.asyncio(loop_scope="module")
async def test_a_log_is_deleted_only_with_its_tenant_and_others_stay_whole(fresh_store: Store) -> None:
    store, clock = fresh_store, ManualClock()
    home, acme, other = await store.write(homes)
    for tenant_id in (home, acme, other):
        await store.write(add, tenant_id, 3)
        await seal_all(store, tenant_id)
        await store.write(add, tenant_id, 1)
    await _refuses_deletes(store, acme)
    principal = Principal(home, None, Role.SYSTEM_ADMIN)
    await store.write(erasure.begin, principal, Wanted("acme", "acme", False), "", clock.now_ms())
    for tenant_id in (home, other):
        await _refuses_deletes(store, tenant_id)
    with pytest.raises(Conflict, match="append-only"):
        await store.write(run, f"UPDATE audit_log SET action = 'x' WHERE tenant_id = {acme}")
    # Half of it is gone from now on, so nobody seals or checks it.
    assert set(await store.read(audit_seals.tenants)) == {0, home, other}
    await Eraser(store, clock, no_pause).turn()
    left = {name for name, count in (await store.read(counts, acme)).items() if count}
    assert left == {"tenants", "change_counters"}, "whoever was at something may still write"
    await store.write(add, acme, 1)
    await clock.advance(LASTS_MS_MIN)
    await Eraser(store, clock, no_pause).turn()
    assert not any((await store.read(counts, acme)).values())
    for tenant_id in (home, other):
        await seal_all(store, tenant_id)
        assert await check(store, tenant_id) == []
        await _refuses_deletes(store, tenant_id)
    assert await store.write(tenants.ensure, "later", 1) > max(acme, other), "a number is given once"


async def _refuses_deletes(store: Store, tenant_id: int) -> None:
    for table in ("audit_log", "audit_seals"):
        with pytest.raises(Conflict, match="append-only"):
            await store.write(run, f"DELETE FROM {table} WHERE tenant_id = {tenant_id}")


@pytest.mark.asyncio(loop_scope="module")
async def test_the_number_of_the_newest_tenant_is_not_given_again(fresh_store: Store) -> None:
    store, clock = fresh_store, ManualClock()
    principal = Principal(await store.write(tenants.ensure_home, 1), None, Role.SYSTEM_ADMIN)
    given = []
    for name in ("one", "two", "three"):
        given.append(await store.write(tenants.ensure, name, 1))
        await store.write(erasure.begin, principal, Wanted(name, name, False), "", clock.now_ms())
        await clock.advance(LASTS_MS_MIN)
        await Eraser(store, clock, no_pause).turn()
        assert await store.read(tenants.find, name) is None
    assert given == sorted(set(given))


async def _is_of(tx: Tx, garbage_id: int, tenant_id: int) -> bool:
    row = await tx.one("SELECT tenant_id FROM garbage WHERE garbage_id = :id", id=garbage_id)
    return row is not None and row["tenant_id"] == tenant_id


async def _last_entry(tx: Tx, home: int) -> dict[str, int]:
    row = await tx.one(
        "SELECT action, details FROM audit_log WHERE tenant_id = :home ORDER BY entry_id DESC LIMIT 1", home=home
    )
    assert row is not None
    assert row["action"] == "tenant_erased"
    details: dict[str, int] = json.loads(row["details"])
    return details
