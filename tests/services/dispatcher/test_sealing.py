"""Sealing the audit log: once a minute, by one dispatcher at a time, and remembered outside the database."""

from pathlib import Path
from typing import Any

import pytest

from camserver.base.errors import Conflict, DataUnusable, StoreUnavailable
from camserver.domain.audit import BATCH_MAX, Seal, SealKey, Wrong, seal
from camserver.domain.duties import HOLD_MS
from camserver.domain.people import Principal, Role
from camserver.services.dispatcher import sealing
from camserver.services.dispatcher.sealing import DUTY, Sealer
from camserver.services.web.audit_check import check_part
from camserver.store import Dialect, Store, Tx, audit, audit_anchors, audit_pages, audit_seals, duties, erasures_asked
from camserver.store.audit_anchors import Anchor
from camserver.store.audit_pages import AuditFilter
from camserver.store.erasures_asked import ASKED
from tests.rig.clock import ManualClock
from tests.rig.unguarded import tamper
from tests.store.people_rows import NOW_MS, add_tenant

EVERY_DATABASE = True  # what is told of the log must not depend on where it is (tests/rig/dealt.py)
KEY = SealKey(b"k" * 32)


async def add(tx: Tx, tenant_id: int, count: int) -> None:
    for _ in range(count):
        await audit.add(tx, tenant_id, None, audit.Entry("did", NOW_MS))


def sealer(store: Store, clock: ManualClock, folder: Path, owner: str = "one") -> Sealer:
    return Sealer(store, clock, KEY, folder, owner)


async def unsealed(store: Store, tenant_id: int) -> int:
    return len((await store.read(audit_seals.unsealed, tenant_id)).entries)


async def test_everybodys_entries_are_sealed_and_the_last_seals_remembered(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    await store.write(add, tenant_id, BATCH_MAX + 1)
    await store.write(add, audit.INSTALLATION, 1)
    one = sealer(store, clock, tmp_path)
    await one.turn()
    anchors = audit_anchors.read(tmp_path)
    assert {number: anchor.batch_no for number, anchor in anchors.items()} == {audit.INSTALLATION: 1, tenant_id: 2}
    for number, anchor in anchors.items():
        assert await unsealed(store, number) == 0
        assert (await check_part(store, number, 0, KEY, anchor, clock.now_ms())).findings == ()
    before = (tmp_path / audit_anchors.FILE_NAME).read_bytes()
    assert (tmp_path / audit_anchors.FILE_NAME).stat().st_mode & 0o077 == 0
    await one.turn()
    assert (tmp_path / audit_anchors.FILE_NAME).read_bytes() == before, "nothing new"


async def found_wrong(store: Store, clock: ManualClock, folder: Path, tenant_id: int) -> set[tuple[Wrong, int]]:
    anchor = audit_anchors.read(folder).get(tenant_id)
    part = await check_part(store, tenant_id, 0, KEY, anchor, clock.now_ms())
    return {(one.wrong, one.batch_no) for one in part.findings}


async def sealed_in_turns(store: Store, sealer: Sealer, tenant_id: int, turns: int) -> None:
    for _ in range(turns):
        await store.write(add, tenant_id, 1)
        await sealer.turn()


async def test_a_chain_that_was_cut_is_told_for_as_long_as_somebody_looks_into_it(
    store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    told: list[object] = []
    monkeypatch.setattr(sealing.log, "error", lambda *said, **values: told.append((*said, values["batch_no"])))
    one = sealer(store, clock, tmp_path)
    await sealed_in_turns(store, one, tenant_id, 3)
    await store.write(add, audit.INSTALLATION, 1)
    assert (await found_wrong(store, clock, tmp_path, tenant_id), told) == (set(), [])
    await store.write(
        tamper, "DELETE FROM audit_log WHERE batch_no = 3", "DELETE FROM audit_seals WHERE batch_no = 3"
    )
    remembered = audit_anchors.read(tmp_path)[tenant_id]
    for turns in (0, 1, 1):  # left as it was cut, grown as long as before, grown beyond
        await sealed_in_turns(store, one, tenant_id, turns)
        await one.turn()
        assert await found_wrong(store, clock, tmp_path, tenant_id) == {(Wrong.CHAIN_CUT, 3)}
        assert audit_anchors.read(tmp_path)[tenant_id] == remembered
        assert await unsealed(store, tenant_id) == 0, "what is left is sealed all the same"
    assert told == [("audit_chain_cut", 3)], "once, not every minute"
    assert audit_anchors.read(tmp_path)[audit.INSTALLATION].batch_no == 1, "the others' move on"
    # Somebody looked into it, or put the backup there: they move the file away.
    (tmp_path / audit_anchors.FILE_NAME).rename(tmp_path / "away")
    await one.turn()
    assert await found_wrong(store, clock, tmp_path, tenant_id) == set()
    assert audit_anchors.read(tmp_path)[tenant_id].batch_no == 4


async def test_what_was_sealed_before_a_kill_is_remembered_by_the_next_turn(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    one = sealer(store, clock, tmp_path)
    await sealed_in_turns(store, one, audit.INSTALLATION, 1)
    await store.write(add, audit.INSTALLATION, 1)
    found = await store.read(audit_seals.unsealed, audit.INSTALLATION)
    made = seal(found.last, audit.INSTALLATION, found.entries, KEY, clock.now_ms())
    await store.write(audit_seals.put, made, [entry.entry_id for entry in found.entries])
    assert audit_anchors.read(tmp_path)[audit.INSTALLATION].batch_no == 1
    await one.turn()
    assert audit_anchors.read(tmp_path)[audit.INSTALLATION] == Anchor(2, made.hash)
    await store.write(
        tamper, "DELETE FROM audit_log WHERE batch_no = 2", "DELETE FROM audit_seals WHERE batch_no = 2"
    )
    assert await found_wrong(store, clock, tmp_path, audit.INSTALLATION) == {(Wrong.CHAIN_CUT, 2)}


async def test_a_machine_that_did_not_seal_for_a_while_goes_on_from_what_it_remembers(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    one, two = sealer(store, clock, here), sealer(store, clock, there, "two")
    await sealed_in_turns(store, one, audit.INSTALLATION, 1)
    await clock.advance(HOLD_MS + 1)
    await sealed_in_turns(store, two, audit.INSTALLATION, 3)
    assert await found_wrong(store, clock, here, audit.INSTALLATION) == set()
    await clock.advance(HOLD_MS + 1)
    await one.turn()
    assert audit_anchors.read(here) == audit_anchors.read(there)


async def test_details_that_nobody_can_read_are_sealed_with_the_others(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    """What each database takes for JSON and Python does not; SQLite takes everything."""
    home = (await store.write(add_tenant, "default", NOW_MS)).tenant_id
    unread = "{broken" if store.dialect is Dialect.SQLITE else '{"n": ' + "1" * 5000 + "}"
    await store.write(add, home, 1)
    await store.write(
        run,
        "INSERT INTO audit_log (tenant_id, at, actor_kind, actor_id, action, details) "
        f"VALUES ({home}, {NOW_MS}, 'system', '', 'x', '{unread}')",
    )
    await sealer(store, clock, tmp_path).turn()
    assert await unsealed(store, home) == 0
    assert await found_wrong(store, clock, tmp_path, home) == set()
    [line, _] = await store.as_(Principal(home, None, Role.SYSTEM_ADMIN)).read(
        audit_pages.page, AuditFilter(), None, 10
    )
    assert line.details is not None
    assert store.dialect is not Dialect.SQLITE or line.details == {"unreadable": "{broken"}


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_what_is_broken_in_one_log_leaves_no_other_open(
    store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant_id = (await store.write(add_tenant, "first", NOW_MS)).tenant_id
    for one in (audit.INSTALLATION, tenant_id):
        await store.write(add, one, 1)
    wrong: Exception = ValueError("a defect")

    def break_one(previous: Seal | None, of: int, *args: Any) -> Seal:
        if of == audit.INSTALLATION:
            raise wrong
        return seal(previous, of, *args)

    monkeypatch.setattr(sealing, "seal", break_one)
    told: list[object] = []
    monkeypatch.setattr(sealing.log, "exception", lambda *said, **values: told.append((*said, values["tenant_id"])))
    await sealer(store, clock, tmp_path).turn()
    assert [await unsealed(store, one) for one in (audit.INSTALLATION, tenant_id)] == [1, 0]
    assert set(audit_anchors.read(tmp_path)) == {tenant_id}
    assert told == [("audit_sealing_of_tenant_broke", audit.INSTALLATION)]
    # A store that is away is away for all of them.
    wrong = StoreUnavailable("away")
    await store.write(add, tenant_id, 1)
    await clock.advance(HOLD_MS + 1)
    with pytest.raises(StoreUnavailable):
        await sealer(store, clock, tmp_path).turn()
    assert await unsealed(store, tenant_id) == 1


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_what_can_not_be_read_is_kept_for_whoever_looks_into_it(
    store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr(sealing.log, "error", lambda *said, **_: told.append(*said))
    file = tmp_path / audit_anchors.FILE_NAME
    one = sealer(store, clock, tmp_path)
    for damaged in ('{"1": {"batch_no": 3, "ha', "[]", '{"x": {}}', "[" * 100_000):
        file.write_text(damaged)
        await sealed_in_turns(store, one, audit.INSTALLATION, 2)
        assert file.read_text() == damaged
        with pytest.raises(DataUnusable, match="move it away"):
            audit_anchors.read(tmp_path)
    assert await unsealed(store, audit.INSTALLATION) == 0
    assert told == ["audit_anchors_unreadable"] * 4, "each once, not every minute"
    file.rename(tmp_path / "away")
    await one.turn()
    assert audit_anchors.read(tmp_path)[audit.INSTALLATION].batch_no == 8


async def test_the_chain_of_a_tenant_is_forgotten_when_somebody_asked_to_erase_it(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    home, other, third = [
        (await store.write(add_tenant, name, NOW_MS)).tenant_id for name in ("default", "other", "third")
    ]
    await store.write(run, f"UPDATE tenants SET home_slot = 1 WHERE tenant_id = {home}")
    one = sealer(store, clock, tmp_path)
    for tenant_id in (home, other, third):
        await store.write(add, tenant_id, 1)
    await one.turn()
    await store.write(run, f"UPDATE tenants SET erasing_at = 1 WHERE tenant_id IN ({other}, {third})")
    for table in ("audit_log", "audit_seals"):
        await store.write(run, f"DELETE FROM {table} WHERE tenant_id IN ({other}, {third})")
    await one.turn()
    assert set(audit_anchors.read(tmp_path)) == {home, other, third}
    details: list[dict[str, str | int] | None] = [None, {"tenant_id": "x"}, {"tenant_id": other}]
    for one_details in details:
        entry = audit.Entry(ASKED, NOW_MS, "", "tenant", "other", one_details)
        await store.write(audit.add, home, None, entry)
    assert await store.read(erasures_asked.asked, [other, third], True) == set(), "it could be taken away again"
    assert await store.read(erasures_asked.asked, [other, third]) == {other}
    await one.turn()
    assert set(audit_anchors.read(tmp_path)) == {home, third}


async def run(tx: Tx, sql: str) -> None:
    await tx.run(sql)


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_one_at_a_time_and_another_takes_over(store: Store, clock: ManualClock, tmp_path: Path) -> None:
    one, two = sealer(store, clock, tmp_path), sealer(store, clock, tmp_path, "two")
    await one.turn()
    await store.write(add, audit.INSTALLATION, 1)
    await two.turn()
    assert await unsealed(store, audit.INSTALLATION) == 1
    await clock.advance(HOLD_MS + 1)
    await two.turn()
    assert await unsealed(store, audit.INSTALLATION) == 0
    found = await store.read(duties.find, DUTY)
    assert found is not None
    assert found.owner == "two"


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_one_whose_hold_ran_out_while_it_sealed_does_no_harm(
    store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = sealer(store, clock, tmp_path)
    await store.write(add, audit.INSTALLATION, 1)
    real = store.write

    async def overtaken(operation: object, *args: object, **kwargs: object) -> object:
        if operation is audit_seals.put:
            raise Conflict("batch 1 was sealed by somebody else meanwhile")
        return await real(operation, *args, **kwargs)  # type: ignore[arg-type]  # handed on as it came

    monkeypatch.setattr(store, "write", overtaken)
    await one.turn()
    assert audit_anchors.read(tmp_path) == {}


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_seals_stand_when_they_can_not_be_remembered(store: Store, clock: ManualClock, tmp_path: Path) -> None:
    await store.write(add, audit.INSTALLATION, 1)
    await sealer(store, clock, tmp_path / "no such folder").turn()
    assert await unsealed(store, audit.INSTALLATION) == 0
