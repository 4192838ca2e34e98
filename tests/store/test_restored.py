"""What a database is told when it was put back to an earlier moment."""

import pytest

from camserver.domain.people import Principal, Role
from camserver.store import Scoped, Store, Tx, changes, restored
from camserver.store.check import _run_checks
from tests.store.people_rows import NOW_MS, prepare

# It holds on each of them, and by statements that each reads in its own way.
EVERY_DATABASE = True


async def note(tx: Tx, tenant_id: int, count: int) -> None:
    for _ in range(count):
        tx.changed(tenant_id=tenant_id, kind="look", at_ms=NOW_MS)


async def put_back(tx: Tx, tenant_id: int, seq: int) -> None:
    """As the backup has it."""
    await tx.run("DELETE FROM changes WHERE tenant_id = :tenant_id AND seq > :seq", tenant_id=tenant_id, seq=seq)
    await tx.run(
        "UPDATE change_counters SET last_seq = :seq WHERE tenant_id = :tenant_id", tenant_id=tenant_id, seq=seq
    )


async def after(tx: Scoped, seq: int) -> changes.Page:
    return await changes.after(tx, seq)


@pytest.mark.parametrize("since", [0, 5], ids=["at once", "after new changes"])
async def test_a_cursor_of_before_is_told_to_read_everything_anew(store: Store, since: int) -> None:
    home = await prepare(store)
    mine = store.as_(Principal(home.tenant_id, None, Role.VIEWER))
    await store.write(note, home.tenant_id, 6)
    known: set[int] = set(range(7))
    # The second restore of the same backup must not give the numbers of the first one again.
    for restored_at in (NOW_MS, NOW_MS + 1_000):
        await store.write(put_back, home.tenant_id, 3)
        await store.write(restored.settle, restored_at, NOW_MS)
        await store.write(note, home.tenant_id, since)
        newest = 0
        for cursor in sorted(known):
            page = await mine.read(after, cursor)
            assert page.resync, cursor
            newest = page.last_seq
        assert newest not in known
        known.add(newest)
        # From there on nothing is missed.
        await store.write(note, home.tenant_id, 2)
        page = await mine.read(after, newest)
        assert [one.seq for one in page.changes] == [newest + 1, newest + 2]
        known |= {newest + 1, newest + 2}
    assert "feed_holes" not in {found.kind for found in await store.read(_run_checks)}


async def test_a_counter_that_is_ahead_of_the_clock_moves_on(store: Store) -> None:
    home = await prepare(store)
    await store.write(put_back, home.tenant_id, NOW_MS + 7)
    await store.write(restored.settle, NOW_MS, NOW_MS)
    page = await store.as_(Principal(home.tenant_id, None, Role.VIEWER)).read(after, NOW_MS + 8)
    assert (page.resync, page.last_seq) == (True, NOW_MS + 7 + restored.CHANGES_AHEAD)
