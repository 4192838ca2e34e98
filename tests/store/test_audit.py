"""The audit log on each database: append-only, sealed without a hole, and every tampering found.

Tampering drops the triggers first, as somebody who owns the database could.
"""

import asyncio
import importlib
import pkgutil
from dataclasses import replace

import pytest

from camserver import store as store_package
from camserver.base.errors import Bug, CamError, Conflict
from camserver.domain import audit as rules
from camserver.domain.audit import DAY_MS, Finding, SealKey, Wrong
from camserver.domain.people import Principal, Role
from camserver.services.web.audit_check import check_part
from camserver.store import Dialect, Store, Tx, audit, audit_pages, audit_seals
from camserver.store.audit_anchors import Anchor
from camserver.store.audit_pages import AuditFilter
from camserver.store.core import UNLOGGED, unlogged
from camserver.store.tx import Scoped
from tests.rig.unguarded import tamper
from tests.store.people_rows import NOW_MS, add_tenant, add_user, count_rows, execute

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = SealKey(b"k" * 32)


async def add(tx: Tx, tenant_id: int, count: int, at: int = NOW_MS) -> None:
    for number in range(count):
        await audit.add(
            tx, tenant_id, 1, audit.Entry("did", at + number, "192.0.2.1", "thing", str(number), {"n": 1})
        )


async def seal_all(store: Store, tenant_id: int, now_ms: int = NOW_MS) -> int:
    """Seals everything there is; how many batches."""
    count = 0
    while (found := await store.read(audit_seals.unsealed, tenant_id)).entries:
        made = rules.seal(found.last, tenant_id, found.entries, KEY, now_ms)
        await store.write(audit_seals.put, made, [one.entry_id for one in found.entries])
        count += 1
    return count


async def check(
    store: Store, tenant_id: int, anchor: Anchor | None = None, now_ms: int = NOW_MS, key: SealKey | None = KEY
) -> list[Finding]:
    found: list[Finding] = []
    after: int | None = 0
    while after is not None:
        part = await check_part(store, tenant_id, after, key, anchor, now_ms)
        found += part.findings
        after = part.next_after
    return found


async def prune(store: Store, tenant_id: int, cutoff: int, now_ms: int) -> int:
    """As retention does; how many entries."""
    found = await store.read(audit_seals.prunable, tenant_id, cutoff)
    if not found:
        return 0
    return await store.write(audit_seals.prune, [rules.pruned(seal, KEY, now_ms) for seal in found], now_ms)


async def filled(store: Store, *sizes: int) -> int:
    """A tenant with batches of these sizes."""
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    for size in sizes:
        await store.write(add, tenant_id, size)
        await seal_all(store, tenant_id)
    return tenant_id


# Sealing


async def test_entries_are_sealed_in_batches_and_found_whole(fresh_store: Store) -> None:
    store = fresh_store
    tenant_id = await filled(store, 3, 1, rules.BATCH_MAX + 2)
    [chain] = await store.read(audit_seals.chains, (tenant_id,))
    assert (chain.batches, chain.entries, chain.unsealed) == (4, rules.BATCH_MAX + 6, 0)
    assert await check(store, tenant_id) == []
    await store.write(add, tenant_id, 2)
    [chain] = await store.read(audit_seals.chains, (tenant_id,))
    assert (chain.unsealed, chain.oldest_unsealed_at) == (2, NOW_MS)
    assert await check(store, tenant_id) == [], "what is not sealed yet is no finding"


async def test_each_tenant_and_the_installation_have_a_chain_of_their_own(fresh_store: Store) -> None:
    store = fresh_store
    first = await filled(store, 2)
    other = (await store.write(add_tenant, "other", NOW_MS)).tenant_id
    await store.write(add, other, 1)
    await store.write(add, audit.INSTALLATION, 1)
    assert set(await store.read(audit_seals.tenants)) == {audit.INSTALLATION, first, other}
    for tenant_id in (other, audit.INSTALLATION):
        assert await seal_all(store, tenant_id) == 1
        assert await check(store, tenant_id) == []
    one, two = [await store.read(audit_seals.last, tenant_id) for tenant_id in (first, other)]
    assert one is not None
    assert two is not None
    assert one.previous_hash != two.previous_hash


async def test_two_who_seal_at_once_make_one_seal(fresh_pair: tuple[Store, Store]) -> None:
    store, second = fresh_pair
    tenant_id = await filled(store, 2)
    await store.write(add, tenant_id, 3)
    found = await store.read(audit_seals.unsealed, tenant_id)
    made = rules.seal(found.last, tenant_id, found.entries, KEY, NOW_MS)
    ids = [one.entry_id for one in found.entries]
    done = await asyncio.gather(
        *(one.write(audit_seals.put, made, ids) for one in (store, second)), return_exceptions=True
    )
    assert sorted(isinstance(one, Conflict) for one in done) == [False, True]
    assert await check(store, tenant_id) == []


async def test_an_entry_that_commits_late_is_in_the_next_batch(fresh_pair: tuple[Store, Store]) -> None:
    """Its id is lower than those of a batch that was sealed meanwhile. SQLite has one writer, so it can't happen."""
    store, second = fresh_pair
    if store.dialect is Dialect.SQLITE:
        pytest.skip("transactions of one writer commit in order")
    tenant_id = await filled(store, 1)
    _gates[:] = [asyncio.Event(), asyncio.Event()]
    late = asyncio.create_task(second.write(_add_and_wait, tenant_id))
    await _gates[0].wait()
    await store.write(add, tenant_id, 2)
    assert await seal_all(store, tenant_id) == 1
    last = await store.read(audit_seals.last, tenant_id)
    assert last is not None
    _gates[1].set()
    await late
    waiting = await store.read(audit_seals.unsealed, tenant_id)
    assert [one.entry_id < last.first_entry_id for one in waiting.entries] == [True]
    assert await check(store, tenant_id) == []
    assert await seal_all(store, tenant_id) == 1
    assert await check(store, tenant_id) == []


_gates: list[asyncio.Event] = []


async def _add_and_wait(tx: Tx, tenant_id: int) -> None:
    await add(tx, tenant_id, 1)
    _gates[0].set()
    await _gates[1].wait()


async def test_writers_and_a_sealer_beside_each_other_lose_nothing(fresh_pair: tuple[Store, Store]) -> None:
    store, second = fresh_pair
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    done = asyncio.Event()

    async def write_some() -> None:
        for _ in range(10):
            await second.write(add, tenant_id, 3)

    async def seal_on() -> None:
        while not done.is_set():
            await seal_all(store, tenant_id)
            assert await check(store, tenant_id) == []

    sealing = asyncio.create_task(seal_on())
    await asyncio.gather(*(write_some() for _ in range(3)))
    done.set()
    await sealing
    await seal_all(store, tenant_id)
    assert await check(store, tenant_id) == []
    [chain] = await store.read(audit_seals.chains, (tenant_id,))
    assert (chain.entries, chain.unsealed) == (90, 0)


# Append-only


REFUSED = [
    "UPDATE audit_log SET action = 'x'",
    "UPDATE audit_log SET batch_no = 1, address = 'x' WHERE batch_no IS NULL",
    "UPDATE audit_log SET batch_no = NULL",
    "UPDATE audit_log SET batch_no = 2 WHERE batch_no = 1",
    "DELETE FROM audit_log",
    "DELETE FROM audit_log WHERE batch_no IS NULL",
    "INSERT INTO audit_log (tenant_id, at, actor_kind, actor_id, action, batch_no) VALUES (1, 1, 'x', 'x', 'x', 1)",
    "UPDATE audit_seals SET hash = 'x'",
    "UPDATE audit_seals SET pruned_at = 5",
    "UPDATE audit_seals SET pruned_at = 5, leaves = ''",
    "UPDATE audit_seals SET pruned_at = 5, leaves = '', pruned_mac = 'x', mac = ''",
    "UPDATE audit_seals SET pruned_mac = 'x', pruned_key_id = 'x'",
    "UPDATE audit_seals SET leaves = ''",
    "DELETE FROM audit_seals",
]


@pytest.mark.parametrize("sql", REFUSED)
async def test_the_database_refuses_to_change_the_log(fresh_store: Store, sql: str) -> None:
    tenant_id = await filled(fresh_store, 2)
    await fresh_store.write(add, tenant_id, 1)
    with pytest.raises(Conflict, match="append-only"):
        await fresh_store.write(run, sql)
    assert await check(fresh_store, tenant_id) == []


REPLACED = [
    "REPLACE INTO audit_log (entry_id, tenant_id, at, actor_kind, actor_id, action) "
    "SELECT entry_id, tenant_id, at, actor_kind, 'x', action FROM audit_log",
    f"REPLACE INTO audit_seals ({audit_seals._COLUMNS}) "
    f"SELECT {audit_seals._COLUMNS.replace('leaves', chr(39) * 2)} FROM audit_seals",
]


@pytest.mark.parametrize("sql", REPLACED)
async def test_nothing_of_the_log_is_replaced(fresh_store: Store, sql: str) -> None:
    """A row that stands in the way of a new one is deleted by the database itself."""
    if fresh_store.dialect is Dialect.POSTGRES:
        pytest.skip("it knows no REPLACE")
    tenant_id = await filled(fresh_store, 1)
    await fresh_store.write(add, tenant_id, 1)
    with pytest.raises(Conflict, match="append-only"):
        await fresh_store.write(run, sql)
    assert await check(fresh_store, tenant_id) == []


async def test_postgres_refuses_to_empty_the_log_at_once(fresh_store: Store) -> None:
    if fresh_store.dialect is not Dialect.POSTGRES:
        pytest.skip("MariaDB fires no trigger at it, SQLite has none")
    await filled(fresh_store, 2)
    for table in ("audit_log", "audit_seals"):
        with pytest.raises(Conflict, match="append-only"):
            await fresh_store.write(run, f"TRUNCATE {table}")


async def run(tx: Tx, sql: str) -> int:
    return await tx.run(sql)


# Tampering

UNSEALED = "batch_no IS NULL"
_COPY = "tenant_id, at, actor_kind, actor_id, action, object_kind, object_id, details, address"
TAMPERED: list[tuple[str, list[str], set[tuple[Wrong, int]]]] = [
    ("change", ["UPDATE audit_log SET actor_id = '2' WHERE batch_no = 2"], {(Wrong.ENTRY_CHANGED, 2)}),
    ("delete", ["DELETE FROM audit_log WHERE batch_no = 1 AND object_id = '0'"], {(Wrong.ENTRY_REMOVED, 1)}),
    (
        "insert",
        [
            f"INSERT INTO audit_log ({_COPY}, batch_no) SELECT {_COPY}, 2 FROM audit_log "
            "WHERE batch_no = 1 AND object_id = '0'"
        ],
        {(Wrong.ENTRY_ADDED, 2)},
    ),
    (
        "reorder",
        [
            "UPDATE audit_log SET entry_id = entry_id + 10000 WHERE batch_no = 2 AND object_id = '0'",
        ],
        {(Wrong.ENTRY_ADDED, 2), (Wrong.ENTRY_REMOVED, 2)},
    ),
    ("truncate the end of a batch", ["DELETE FROM audit_log WHERE batch_no = 3"], {(Wrong.ENTRY_REMOVED, 3)}),
    (
        "take the last seal away with its entries",
        ["DELETE FROM audit_log WHERE batch_no = 3", "DELETE FROM audit_seals WHERE batch_no = 3"],
        {(Wrong.CHAIN_CUT, 3)},
    ),
    (
        "take a seal away",
        ["DELETE FROM audit_seals WHERE batch_no = 2"],
        {(Wrong.SEAL_MISSING, 2)},
    ),
    (
        "take the last seal away",
        ["DELETE FROM audit_seals WHERE batch_no = 3"],
        {(Wrong.CHAIN_CUT, 3), (Wrong.SEAL_MISSING, 3)},
    ),
    (
        "swap batches",
        [
            f"UPDATE {table} SET batch_no = {new} WHERE batch_no = {old}"
            for table in ("audit_log", "audit_seals")
            for old, new in ((1, 9), (2, 1), (9, 2))
        ],
        {(Wrong.SEAL_CHANGED, 1), (Wrong.SEAL_CHANGED, 2), (Wrong.SEAL_CHANGED, 3)},
    ),
    ("change a seal", ["UPDATE audit_seals SET entries = 9 WHERE batch_no = 2"], {(Wrong.SEAL_CHANGED, 2)}),
    ("forge a seal", ["UPDATE audit_seals SET mac = body WHERE batch_no = 2"], {(Wrong.FORGED, 2)}),
    ("move an entry", ["UPDATE audit_log SET batch_no = 3 WHERE batch_no = 2 AND object_id = '0'"],
     {(Wrong.ENTRY_REMOVED, 2), (Wrong.ENTRY_ADDED, 3)}),
    ("hide an entry from sealing", ["UPDATE audit_log SET batch_no = 99 WHERE batch_no IS NULL"],
     {(Wrong.SEAL_MISSING, 99)}),
    ("unseal an entry", ["UPDATE audit_log SET batch_no = NULL WHERE batch_no = 3"], {(Wrong.ENTRY_REMOVED, 3)}),
    ("delete as retention would", ["UPDATE audit_seals SET pruned_at = 5, leaves = '' WHERE batch_no = 1",
     "DELETE FROM audit_log WHERE batch_no = 1"],
     {(Wrong.PRUNED_EARLY, 1), (Wrong.PRUNED_UNLOGGED, 1), (Wrong.PRUNED_FORGED, 1)}),
]  # fmt: skip


@pytest.mark.parametrize(("statements", "expected"), [one[1:] for one in TAMPERED], ids=[one[0] for one in TAMPERED])
async def test_tampering_is_found(
    fresh_store: Store, statements: list[str], expected: set[tuple[Wrong, int]]
) -> None:
    store = fresh_store
    tenant_id = await filled(store, 2, 2, 1)
    await store.write(add, tenant_id, 1)
    last = await store.read(audit_seals.last, tenant_id)
    assert last is not None
    anchor = Anchor(last.batch_no, last.hash)
    assert await check(store, tenant_id, anchor) == []
    await store.write(tamper, *statements)
    found = await check(store, tenant_id, anchor)
    assert {(one.wrong, one.batch_no) for one in found} == expected


_OF_NO_KIND = ("'x'", "x'ff'", "1.5", "9e999")


async def test_what_is_of_no_columns_kind_is_found_as_well(fresh_store: Store) -> None:
    store = fresh_store
    if store.dialect is not Dialect.SQLITE:
        pytest.skip("only SQLite keeps in any column whatever it is given")
    tenant_id = await filled(store, 2, 2, 1)
    await store.write(add, tenant_id, 1)
    last = await store.read(audit_seals.last, tenant_id)
    assert last is not None
    anchor = Anchor(last.batch_no, last.hash)
    columns = {
        "audit_log": (_COPY.removeprefix("tenant_id, ").split(", "), "entry_id = 3"),
        "audit_seals": (["entries", "first_at", "body", "hash", "mac", "pruned_at", "batch_no"], "batch_no = 2"),
    }
    changes = [
        (table, column, value, where)
        for table, (names, where) in columns.items()
        for column in names
        for value in _OF_NO_KIND
    ]
    changes += [
        ("audit_log", "batch_no", value, where) for value in _OF_NO_KIND for where in ("entry_id = 3", UNSEALED)
    ]
    for table, column, value, where in changes:
        await store.write(tamper, f"CREATE TABLE former AS SELECT * FROM {table}")
        await store.write(tamper, f"UPDATE {table} SET {column} = {value} WHERE {where}")
        found = await check(store, tenant_id, anchor)
        assert found, (table, column, value)
        assert all(isinstance(one.batch_no, int) for one in found)
        await store.read(audit_seals.chains, (tenant_id,))
        await store.write(
            tamper, f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM former", "DROP TABLE former"
        )
        assert await check(store, tenant_id, anchor) == []


async def test_what_is_of_no_columns_kind_is_sealed_and_read_with_the_others(fresh_store: Store) -> None:
    store = fresh_store
    if store.dialect is not Dialect.SQLITE:
        pytest.skip("only SQLite keeps in any column whatever it is given")
    tenant_id = await filled(store, 1)
    for column in ("at", "actor_kind", "actor_id", "action", "object_kind", "object_id", "details", "address"):
        for value in _OF_NO_KIND:
            values = ", ".join(
                {"tenant_id": str(tenant_id), "at": "5", column: value}.get(one, "'a'") for one in _COPY.split(", ")
            )
            await store.write(run, f"INSERT INTO audit_log ({_COPY}) VALUES ({values})")
    await store.write(add, tenant_id, 1)
    assert await seal_all(store, tenant_id) == 1
    assert await check(store, tenant_id) == []
    mine = store.as_(Principal(tenant_id, None, Role.SYSTEM_ADMIN))
    seen, before = [], None
    while page := await mine.read(audit_pages.page, AuditFilter(), before, 1):
        seen.append(page[0].entry_id)
        before = page[0].cursor
    # What has no time stands nowhere among the others.
    assert sorted(seen) == [1, 4, *range(6, 35)]


async def test_whoever_lacks_the_key_can_not_make_a_chain_that_fits(fresh_store: Store) -> None:
    store = fresh_store
    tenant_id = await filled(store, 2, 2)
    await store.write(tamper, "UPDATE audit_log SET batch_no = NULL, actor_id = '2'", "DELETE FROM audit_seals")
    found = await store.read(audit_seals.unsealed, tenant_id)
    forged = replace(rules.seal(None, tenant_id, found.entries, SealKey(b"x" * 32), NOW_MS), key_id=KEY.key_id)
    forged = replace(forged, hash=rules.hash_of(forged))
    await store.write(audit_seals.put, forged, [one.entry_id for one in found.entries])
    assert await check(store, tenant_id, key=None) == [], "the hashes fit"
    assert await check(store, tenant_id) == [Finding(Wrong.FORGED, 1)]


# Retention


async def test_retention_deletes_whole_batches_from_the_beginning_and_the_chain_stays_whole(
    fresh_store: Store,
) -> None:
    store = fresh_store
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    for days in (900, 800, 700):
        await store.write(add, tenant_id, 2, NOW_MS - days * DAY_MS)
        await seal_all(store, tenant_id, NOW_MS - days * DAY_MS)
    cutoff = NOW_MS - 730 * DAY_MS
    assert await store.read(audit_seals.count_old, tenant_id, cutoff) == 4
    assert await prune(store, tenant_id, cutoff, NOW_MS) == 4
    assert await prune(store, tenant_id, cutoff, NOW_MS) == 0
    assert await store.read(audit_seals.count_old, tenant_id, cutoff) == 0
    assert await check(store, tenant_id) == []
    await seal_all(store, tenant_id)
    assert await check(store, tenant_id) == []
    # Far later everything goes, that retention deleted something among it, and it says so again.
    later = NOW_MS + 731 * DAY_MS
    assert await prune(store, tenant_id, later - 730 * DAY_MS, later) == 3
    assert await store.read(count_rows, "audit_log") == 1
    assert await check(store, tenant_id, now_ms=later) == []
    await seal_all(store, tenant_id, later)
    assert await check(store, tenant_id, now_ms=later) == []


async def test_a_batch_goes_when_its_youngest_entry_is_old_and_what_is_not_sealed_stays(fresh_store: Store) -> None:
    store = fresh_store
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    await store.write(add, tenant_id, 1, NOW_MS - 900 * DAY_MS)
    await store.write(add, tenant_id, 1, NOW_MS)
    cutoff = NOW_MS - 730 * DAY_MS
    assert await prune(store, tenant_id, cutoff, NOW_MS) == 0
    await seal_all(store, tenant_id)
    assert await prune(store, tenant_id, cutoff, NOW_MS) == 0
    assert await store.read(count_rows, "audit_log") == 2


async def test_an_entry_that_looks_like_retentions_and_names_no_batch_breaks_no_check(fresh_store: Store) -> None:
    store = fresh_store
    tenant_id = await filled(store, 1)
    await store.write(
        audit.add, tenant_id, None, audit.Entry(rules.PRUNED, NOW_MS + 5, "", "batch", "\u00b2", {"entries": 1})
    )
    assert await check(store, tenant_id) == []
    # Longer than Python reads, which only SQLite keeps in that column.
    if store.dialect is Dialect.SQLITE:
        for kind, action in (("system", rules.PRUNED), ("user", "note")):
            values = f"{tenant_id}, {NOW_MS + 6}, '{kind}', :digits, '{action}', 'batch', :digits, ''"
            columns = "tenant_id, at, actor_kind, actor_id, action, object_kind, object_id, address"
            await store.write(
                execute, f"INSERT INTO audit_log ({columns}) VALUES ({values})", {"digits": "9" * 5_000}
            )
        assert await check(store, tenant_id) == []
        mine = store.as_(Principal(tenant_id, None, Role.TENANT_ADMIN))
        assert len(await mine.read(audit_pages.page, AuditFilter(), None, 50)) == 4


async def test_whoever_lacks_the_key_can_not_delete_as_retention_does(fresh_store: Store) -> None:
    """The triggers stand, the entries are old enough for some retention, and the log says that they went."""
    store = fresh_store
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    old = NOW_MS - 40 * DAY_MS
    for _ in range(2):
        await store.write(add, tenant_id, 2, old)
        await seal_all(store, tenant_id, old)
    other = await store.read(audit_seals.prunable, tenant_id, NOW_MS)
    mac = rules.pruned(other[1], KEY, NOW_MS).pruned_mac
    await store.write(
        run,
        f"UPDATE audit_seals SET pruned_at = {NOW_MS}, leaves = '', pruned_key_id = '{KEY.key_id}', "
        # The best that they find: a signature of another batch.
        f"pruned_mac = '{mac}' WHERE batch_no = 1",
    )
    await store.write(run, "DELETE FROM audit_log WHERE batch_no = 1")
    await store.write(audit.add, tenant_id, None, audit.Entry(rules.PRUNED, NOW_MS, "", "batch", "1"))
    await seal_all(store, tenant_id)
    assert await check(store, tenant_id) == [Finding(Wrong.PRUNED_FORGED, 1)]
    assert await check(store, tenant_id, key=None) == [], "only the key tells"


async def test_two_who_delete_at_once_delete_and_tell_once(fresh_pair: tuple[Store, Store]) -> None:
    store, second = fresh_pair
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    for _ in range(2):
        await store.write(add, tenant_id, 2, NOW_MS - 900 * DAY_MS)
        await seal_all(store, tenant_id, NOW_MS - 900 * DAY_MS)
    cutoff = NOW_MS - 730 * DAY_MS
    done = await asyncio.gather(*(prune(one, tenant_id, cutoff, NOW_MS) for one in (store, second)))
    assert sorted(done) == [0, 4]
    assert await store.read(count_rows, "audit_log") == 1
    assert await check(store, tenant_id) == []


# Nothing is changed without an entry


async def _rename(tx: Scoped, name: str) -> None:
    await tx.run("UPDATE tenants SET name = :name WHERE tenant_id = :tenant_id", name=name)


async def _rename_and_say(tx: Scoped, name: str) -> None:
    await _rename(tx, name)
    await audit.add_own(tx, audit.Entry("renamed", NOW_MS))


@unlogged("a test's")
async def _rename_unlogged(tx: Scoped, name: str) -> None:
    await _rename(tx, name)


async def _rename_nobody(tx: Scoped, name: str) -> None:
    await tx.run("UPDATE tenants SET name = :name WHERE tenant_id = :tenant_id AND name = ''", name=name)


async def _name(tx: Tx, tenant_id: int) -> str:
    row = await tx.one("SELECT name FROM tenants WHERE tenant_id = :tenant_id", tenant_id=tenant_id)
    assert row is not None
    return str(row["name"])


async def test_what_is_changed_in_somebodys_name_is_logged_or_not_done(fresh_store: Store) -> None:
    store = fresh_store
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    scoped = store.as_(Principal(tenant_id, None, Role.SYSTEM_ADMIN))
    with pytest.raises(Bug, match=r"_rename changed rows .* no entry in the audit log"):
        await scoped.write(_rename, "second")
    assert await store.read(_name, tenant_id) == "first"
    await scoped.write(_rename_nobody, "second")
    await scoped.write(_rename_and_say, "third")
    assert await store.read(_name, tenant_id) == "third"
    await scoped.write(_rename_unlogged, "fourth")
    assert await store.read(_name, tenant_id) == "fourth"
    assert await store.read(count_rows, "audit_log") == 1


async def test_the_exceptions_are_few_and_say_why() -> None:
    for module in pkgutil.iter_modules(store_package.__path__):
        if module.name not in ("migrations", "migrate"):
            importlib.import_module(f"{store_package.__name__}.{module.name}")
    own = {name: why for name, why in UNLOGGED.items() if name.startswith("camserver.")}
    assert set(own) == {
        "camserver.store.sessions.touch",
        "camserver.store.tokens.touch",
        "camserver.store.scoring_sheets.claim_part",
        "camserver.store.scoring_sheets.note_part",
        "camserver.store.viewings.heartbeat",
        "camserver.store.viewings.release",
        "camserver.store.suggestions.advance",
        "camserver.store.case_items.settle",
        "camserver.store.request_keys.keep",
    }
    assert all(len(why) > 20 for why in own.values())


# Looks


async def test_repeats_of_a_look_are_one_entry(fresh_store: Store) -> None:
    store = fresh_store
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    user_ids = [await store.write(add_user, tenant_id, name, "viewer", None, NOW_MS) for name in ("anna", "bert")]
    people = [store.as_(Principal(tenant_id, user_id, Role.VIEWER)) for user_id in user_ids]
    entry = audit.Entry("picture_opened", NOW_MS, "192.0.2.1", "frame", "f1", {"kind": "full"})
    for changed, count in (
        (entry, 1),
        (entry, 1),
        (replace(entry, now_ms=NOW_MS + rules.LOOK_FOLDED_MS - 1), 1),
        (replace(entry, now_ms=NOW_MS + rules.LOOK_FOLDED_MS), 2),
        (replace(entry, object_id="f2"), 3),
        (replace(entry, details={"kind": "clip"}), 4),
        (replace(entry, address="192.0.2.2"), 5),
    ):
        await people[0].write(audit.look, changed)
        assert await store.read(count_rows, "audit_log") == count
    await people[1].write(audit.look, entry)
    assert await store.read(count_rows, "audit_log") == 6


async def test_what_databases_refuse_in_texts_never_keeps_an_entry_out(fresh_store: Store) -> None:
    odd = "a\0b\ud800c"
    entry = audit.Entry("sign_in_failed", NOW_MS, odd, "x", odd * 40, {"login": odd})
    await fresh_store.write(audit.add, audit.INSTALLATION, None, entry)
    assert await seal_all(fresh_store, audit.INSTALLATION) == 1
    assert await check(fresh_store, audit.INSTALLATION) == []


# Pages


async def test_pages_go_from_the_newest_on_and_name_people(fresh_store: Store) -> None:
    store = fresh_store
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    user_id = await store.write(add_user, tenant_id, "anna", "viewer", None, NOW_MS)
    admin = store.as_(Principal(tenant_id, None, Role.SYSTEM_ADMIN))
    for number in range(5):
        await admin.write(
            audit.add_own, audit.Entry("camera_changed", NOW_MS + number // 2, "", "camera", str(number))
        )
    await store.write(audit.add, tenant_id, user_id, audit.Entry("sign_in", NOW_MS + 10, "192.0.2.1"))
    await store.write(audit.add, tenant_id, 999, audit.Entry("sign_in", NOW_MS + 11))
    await store.write(audit.add, tenant_id, None, audit.Entry(rules.PRUNED, NOW_MS + 12))

    async def whole(wanted: AuditFilter, limit: int = 3) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        before: str | None = None
        while page := await admin.read(audit_pages.page, wanted, before, limit):
            found += [(line.who, line.action, line.object_id) for line in page]
            before = page[-1].cursor
        return found

    changes = [("local admin", "camera_changed", str(number)) for number in (4, 3, 2, 1, 0)]
    assert await whole(AuditFilter()) == [
        ("system", "audit_pruned", ""),
        ("removed user", "sign_in", ""),
        ("anna", "sign_in", ""),
        *changes,
    ]
    assert await whole(AuditFilter(who="local admin")) == changes
    assert await whole(AuditFilter(who="Anna")) == [("anna", "sign_in", "")]
    assert await whole(AuditFilter(who="nobody")) == []
    assert await whole(AuditFilter(action="sign_in")) == [("removed user", "sign_in", ""), ("anna", "sign_in", "")]
    assert await whole(AuditFilter(object_kind="camera", object_id="3")) == [changes[1]]
    assert await whole(AuditFilter(from_ms=NOW_MS + 1, to_ms=NOW_MS + 2)) == [changes[1], changes[2]]
    with pytest.raises(CamError, match="cursor"):
        await admin.read(audit_pages.page, AuditFilter(), "x", 3)
    other = (await store.write(add_tenant, "other", NOW_MS)).tenant_id
    foreign = store.as_(Principal(other, None, Role.SYSTEM_ADMIN))
    assert await foreign.read(audit_pages.page, AuditFilter(), None, 10) == ()
