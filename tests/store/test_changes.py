"""The change feed: numbered without holes, in the order of commits, whoever writes and however they race."""

import asyncio

import pytest

from camserver.base.errors import Bug, Conflict
from camserver.domain.people import Principal, Role
from camserver.store import Scoped, Store, Tx, changes
from camserver.store.changes import Page
from tests.store.scenery import NOW_MS, Scene, furnish

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRITERS = 8
WRITES_EACH = 25


def viewer(scene: Scene) -> Principal:
    return Principal(scene.tenant_id, None, Role.VIEWER)


async def note(tx: Tx, tenant_ids: tuple[int, ...], object_id: int, fail: bool = False) -> None:
    """Changes of several tenants, in whatever order, with work before and after."""
    for tenant_id in tenant_ids:
        tx.changed(tenant_id=tenant_id, kind="look", at_ms=NOW_MS + object_id, object_id=object_id)
        tx.changed(tenant_id=tenant_id, kind="look", at_ms=NOW_MS + object_id, object_id=object_id)
    await tx.run("UPDATE tenants SET created_at = :at WHERE tenant_id < 0", at=object_id)
    if fail:
        raise Conflict("changed its mind")


async def after(store: Store, scene: Scene, seq: int, limit: int = 1000) -> Page:
    return await store.as_(viewer(scene)).read(changes.after, seq, limit)


async def test_changes_are_read_as_they_were_written(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    await fresh_store.write(_one_of_each, scene.tenant_id, scene.site_id, scene.camera_keys[0])
    page = await after(fresh_store, scene, 0)
    assert [(c.seq, c.kind, c.site_id, c.camera_key, c.object_id, c.created_at) for c in page.changes] == [
        (1, "look", scene.site_id, scene.camera_keys[0], None, NOW_MS),
        (2, "event", None, None, 7, NOW_MS + 1),
    ]
    assert (page.last_seq, page.resync) == (2, False)
    assert (await after(fresh_store, scene, 2)) == Page((), 2, False)


async def _one_of_each(tx: Tx, tenant_id: int, site_id: int, camera_key: int) -> None:
    tx.changed(tenant_id=tenant_id, kind="look", at_ms=NOW_MS, site_id=site_id, camera_key=camera_key)
    tx.changed(tenant_id=tenant_id, kind="event", at_ms=NOW_MS + 1, object_id=7)


async def _scoped_change(tx: Scoped) -> None:
    tx.changed(kind="site", at_ms=NOW_MS)


async def test_a_principals_change_is_its_own_tenants(fresh_store: Store) -> None:
    ours, theirs = await furnish(fresh_store), await furnish(fresh_store, name="theirs")
    await fresh_store.as_(viewer(ours)).write(_scoped_change)
    assert [change.kind for change in (await after(fresh_store, ours, 0)).changes] == ["site"]
    assert (await after(fresh_store, theirs, 0)).changes == ()


async def test_a_tenant_without_a_counter_is_an_error_everywhere(fresh_store: Store) -> None:
    with pytest.raises(Bug, match="no change counter"):
        await fresh_store.write(note, (424242,), 1)


async def test_a_failed_transaction_takes_no_number(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    await fresh_store.write(note, (scene.tenant_id,), 1)
    with pytest.raises(Conflict):
        await fresh_store.write(note, (scene.tenant_id,), 2, fail=True)
    await fresh_store.write(note, (scene.tenant_id,), 3)
    page = await after(fresh_store, scene, 0)
    assert [(change.seq, change.object_id) for change in page.changes] == [(1, 1), (2, 1), (3, 3), (4, 3)]


async def test_racing_writers_never_leave_a_hole_for_a_tailing_reader(fresh_pair: tuple[Store, Store]) -> None:
    """Each reader remembers the last number it saw and asks for what follows, while writers commit as they like."""
    first, second = fresh_pair
    scenes = [await furnish(first), await furnish(first, name="other")]
    tenant_ids = tuple(scene.tenant_id for scene in scenes)
    total = WRITERS * WRITES_EACH
    per_tenant = 2 * (total - total // 5)

    async def write(number: int) -> None:
        store = fresh_pair[number % 2]
        for index in range(WRITES_EACH):
            object_id = number * WRITES_EACH + index
            # Some take the tenants in the other order, some fail: neither may deadlock for good or leave a hole.
            chosen = tenant_ids if object_id % 2 else tenant_ids[::-1]
            try:
                await store.write(note, chosen, object_id, fail=object_id % 5 == 0)
            except Conflict:
                assert object_id % 5 == 0

    async def tail(store: Store, scene: Scene) -> list[int]:
        seen: list[int] = []
        last_seq = 0
        while len(seen) < per_tenant:
            page = await after(store, scene, last_seq, limit=7)
            assert not page.resync
            for change in page.changes:
                assert change.seq == last_seq + 1, "a hole"
                last_seq = change.seq
                assert change.object_id is not None
                seen.append(change.object_id)
            await asyncio.sleep(0)
        return seen

    async with asyncio.timeout(120):
        results = await asyncio.gather(
            *(tail(store, scene) for store in (first, second) for scene in scenes),
            *(write(number) for number in range(WRITERS)),
        )
    expected = sorted(object_id for object_id in range(total) if object_id % 5 for _ in range(2))
    for seen in results[:4]:
        assert seen is not None
        assert sorted(seen) == expected
        # The two changes of one transaction stand together.
        assert seen[0::2] == seen[1::2]


async def test_a_cursor_older_than_what_is_kept_must_start_anew(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    for object_id in range(5):
        await fresh_store.write(note, (scene.tenant_id,), object_id)
    assert await fresh_store.write(changes.prune, NOW_MS + 2) == 4
    assert (await after(fresh_store, scene, 0)) == Page((), 10, True)
    assert (await after(fresh_store, scene, 3)).resync
    kept = await after(fresh_store, scene, 4)
    assert [change.seq for change in kept.changes] == [5, 6, 7, 8, 9, 10]
    assert (await after(fresh_store, scene, 10)) == Page((), 10, False)


async def test_a_cursor_from_the_future_must_start_anew(fresh_store: Store) -> None:
    """A database was restored from a backup: the reader's number means something else now."""
    scene = await furnish(fresh_store)
    await fresh_store.write(note, (scene.tenant_id,), 1)
    assert (await after(fresh_store, scene, 3)) == Page((), 2, True)


async def test_everything_pruned_is_still_no_hole(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    await fresh_store.write(note, (scene.tenant_id,), 1)
    assert await fresh_store.write(changes.prune, NOW_MS + 100) == 2
    assert (await after(fresh_store, scene, 0)).resync
    assert (await after(fresh_store, scene, 2)) == Page((), 2, False)
    await fresh_store.write(note, (scene.tenant_id,), 2)
    assert [change.seq for change in (await after(fresh_store, scene, 2)).changes] == [3, 4]


async def test_pruning_goes_from_the_front_in_batches(fresh_store: Store) -> None:
    """A clock that went back makes an old-looking change behind a young one: it waits, so that no hole appears."""
    scene = await furnish(fresh_store)
    for object_id in (0, 50, 1):
        await fresh_store.write(note, (scene.tenant_id,), object_id)
    assert await fresh_store.write(changes.prune, NOW_MS + 10, 4) == 2
    page = await after(fresh_store, scene, 2)
    assert [change.seq for change in page.changes] == [3, 4, 5, 6]
