"""Entries that are written together: each stands, in the name of whoever it is about, or its caller is told."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from camserver.base.errors import Conflict, StoreUnavailable
from camserver.domain.people import Principal, Role
from camserver.services.web.note_desk import NoteDesk
from camserver.store import Tx, tenants
from camserver.store.audit import Entry
from tests.services.web.rig import RunningWeb
from tests.services.web.test_audit import tenant_of

NOW_MS = 1_700_000_000_000


def entry(number: int) -> Entry:
    return Entry("media_link_made", NOW_MS, "192.0.2.1", "frame", f"f{number}", {"kind": "infer"})


async def made(tx: Tx) -> list[tuple[int, str, str]]:
    rows = await tx.all(
        "SELECT tenant_id, actor_id, object_id FROM audit_log WHERE action = 'media_link_made' ORDER BY entry_id"
    )
    return [(row["tenant_id"], row["actor_id"], row["object_id"]) for row in rows]


async def test_what_many_do_at_once_is_noted_in_the_name_of_each(web_on_each: RunningWeb) -> None:
    web = web_on_each
    await web.owner()
    own = await tenant_of(web)
    other = await web.store.write(tenants.ensure, "other", NOW_MS)
    desk = NoteDesk(web.store)
    people = [Principal(own, 1, Role.VIEWER), Principal(own, 2, Role.VIEWER), Principal(other, 3, Role.VIEWER)]
    expected = [(people[number % 3], number) for number in range(150)]
    await asyncio.gather(*(desk.write(who, entry(number)) for who, number in expected))
    await desk.close()
    found = await web.store.read(made)
    assert Counter(found) == Counter((who.tenant_id, str(who.user_id), f"f{number}") for who, number in expected)


class FailingStore:
    """Fails whenever one of these is among what it is to write; keeps the others."""

    def __init__(self, error: Exception, *bad: str) -> None:
        self.error = error
        self.bad = bad
        self.written: list[list[str]] = []

    def as_(self, principal: Principal) -> "FailingStore":
        return self

    async def write(self, operation: object, rows: list[dict[str, Any]]) -> None:
        await asyncio.sleep(0)
        named = [row["object_id"] for row in rows]
        if set(self.bad) & set(named):
            raise self.error
        self.written.append(named)


async def outcomes(store: FailingStore) -> list[type[BaseException] | None]:
    desk = NoteDesk(store)  # type: ignore[arg-type]  # all it asks of a store
    who = Principal(1, 1, Role.VIEWER)
    got = await asyncio.gather(*(desk.write(who, entry(number)) for number in range(4)), return_exceptions=True)
    return [type(one) if isinstance(one, BaseException) else None for one in got]


async def test_what_was_not_written_is_told_to_everybody_who_waits_for_it() -> None:
    store = FailingStore(StoreUnavailable("the disk is full"), "f0", "f1", "f2", "f3")
    assert await outcomes(store) == [StoreUnavailable] * 4
    assert store.written == []


async def test_an_entry_that_is_refused_keeps_no_other_from_being_written_once() -> None:
    store = FailingStore(Conflict("odd"), "f2")
    assert await outcomes(store) == [None, None, Conflict, None]
    assert sorted(name for batch in store.written for name in batch) == ["f0", "f1", "f3"]


@pytest.mark.parametrize("count", [1, 2, 40])
async def test_few_transactions_are_made_for_many(count: int) -> None:
    store = FailingStore(Conflict("never"))
    desk = NoteDesk(store)  # type: ignore[arg-type]  # all it asks of a store
    who = Principal(1, 1, Role.VIEWER)
    await asyncio.gather(*(desk.write(who, entry(number)) for number in range(count)))
    assert [len(batch) for batch in store.written] == [count]
