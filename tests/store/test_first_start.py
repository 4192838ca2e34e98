import asyncio
import json

import pytest

from camserver.base.errors import BadSettings
from camserver.store import Store, first_start, vocabularies
from camserver.store.vocabularies import Document, shipped
from tests.store.people_rows import NOW_MS, count_rows, prepare

OTHER = Document("2026-01-01.1", json.dumps({**shipped().parsed(), "schema_version": "2026-01-01.1"}))


async def test_makes_tenant_site_counter_and_active_vocabulary(store: Store) -> None:
    await prepare(store)

    assert [await store.read(count_rows, table) for table in ("tenants", "sites", "change_counters")] == [1, 1, 1]
    active = await store.read(vocabularies.active)
    assert active.version == "2025-12-28.1"
    assert active.parsed() == shipped().parsed()


async def test_running_again_changes_nothing(store: Store) -> None:
    first = await prepare(store)

    assert await prepare(store, NOW_MS + 1) == first
    assert [await store.read(count_rows, table) for table in ("tenants", "sites", "schema_versions")] == [1, 1, 1]


async def test_several_processes_may_start_at_once(two_stores: tuple[Store, Store]) -> None:
    starts = [prepare(store) for store in two_stores * 6]
    homes = set(await asyncio.gather(*starts))

    assert len(homes) == 1
    counted = [await two_stores[0].read(count_rows, table) for table in ("tenants", "sites", "schema_versions")]
    assert counted == [1, 1, 1]


async def test_the_setting_selects_another_stored_version_and_back(store: Store) -> None:
    await prepare(store)
    await store.write(vocabularies.add, OTHER, NOW_MS)

    await store.write(first_start.prepare, shipped(), OTHER.version, NOW_MS)
    assert (await store.read(vocabularies.active)).version == OTHER.version

    await store.write(first_start.prepare, shipped(), shipped().version, NOW_MS)
    assert (await store.read(vocabularies.active)).version == shipped().version


async def test_without_the_setting_a_start_keeps_what_was_chosen(store: Store) -> None:
    await store.write(first_start.prepare, shipped(), None, NOW_MS)
    assert (await store.read(vocabularies.active)).version == shipped().version, (
        "the first start takes the shipped one"
    )
    await store.write(vocabularies.add, OTHER, NOW_MS)
    await store.write(vocabularies.activate, OTHER.version, NOW_MS)
    await store.write(first_start.prepare, shipped(), None, NOW_MS)
    assert (await store.read(vocabularies.active)).version == OTHER.version


async def test_an_unknown_version_is_refused_naming_those_there_are(store: Store) -> None:
    with pytest.raises(BadSettings, match=r"'9\.9'.*2025-12-28\.1"):
        await store.write(first_start.prepare, shipped(), "9.9", NOW_MS)
    # Nothing of a refused start is kept.
    assert await store.read(count_rows, "tenants") == 0


async def test_a_stored_document_is_never_replaced(store: Store) -> None:
    await prepare(store)
    await store.write(vocabularies.add, Document(shipped().version, "{}"), NOW_MS)

    assert (await store.read(vocabularies.active)).parsed() == shipped().parsed()
