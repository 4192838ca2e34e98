"""Sealing the audit log: once a minute, by one dispatcher at a time, and remembered outside the database."""

from pathlib import Path

import pytest

from camserver.base.errors import Conflict
from camserver.domain.audit import BATCH_MAX, SealKey
from camserver.domain.duties import HOLD_MS
from camserver.services.dispatcher.sealing import DUTY, Sealer
from camserver.services.web.audit_check import check_part
from camserver.store import Store, Tx, audit, audit_anchors, audit_seals, duties
from tests.rig.clock import ManualClock
from tests.store.people_rows import NOW_MS, add_tenant

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
