"""Writers of objects: alive until ended, ended before swept; and the bin of objects whose row is gone."""

import pytest

from camserver.base.errors import EpochEnded
from camserver.store import Store, epochs, garbage
from camserver.store.garbage import Trash
from tests.store.scenery import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_epoch_lives_while_it_is_renewed(fresh_store: Store) -> None:
    epoch_id = await fresh_store.write(epochs.open_epoch, "me", NOW_MS)
    assert await fresh_store.write(epochs.renew_epoch, epoch_id, NOW_MS + 10_000)
    assert await fresh_store.write(epochs.end_dead, NOW_MS + 10_000, NOW_MS + 10_000) == 0
    await fresh_store.write(epochs.require_alive, [epoch_id])
    assert await fresh_store.read(epochs.unswept) == ()


async def test_a_silent_epoch_is_ended_once_and_for_good(fresh_store: Store) -> None:
    silent = await fresh_store.write(epochs.open_epoch, "silent", NOW_MS)
    living = await fresh_store.write(epochs.open_epoch, "living", NOW_MS + 1)
    assert await fresh_store.write(epochs.end_dead, NOW_MS + 1, NOW_MS + 2) == 1
    assert await fresh_store.write(epochs.end_dead, NOW_MS + 1, NOW_MS + 3) == 0
    # Its owner was only slow: it learns so, and must open another.
    assert not await fresh_store.write(epochs.renew_epoch, silent, NOW_MS + 4)
    assert await fresh_store.write(epochs.renew_epoch, living, NOW_MS + 4)
    with pytest.raises(EpochEnded, match=f"epoch {silent}"):
        await fresh_store.write(epochs.require_alive, [silent, living])
    await fresh_store.write(epochs.require_alive, [living])


async def test_an_epoch_nobody_knows_is_not_alive(fresh_store: Store) -> None:
    assert not await fresh_store.write(epochs.renew_epoch, 987_654, NOW_MS)
    with pytest.raises(EpochEnded):
        await fresh_store.write(epochs.require_alive, [987_654])


async def test_only_ended_epochs_are_swept_and_each_once(fresh_store: Store) -> None:
    first, second, living = [await fresh_store.write(epochs.open_epoch, str(n), NOW_MS) for n in range(3)]
    await fresh_store.write(epochs.end_epoch, second, NOW_MS + 1)
    await fresh_store.write(epochs.end_epoch, first, NOW_MS + 2)
    await fresh_store.write(epochs.end_epoch, first, NOW_MS + 3)
    assert await fresh_store.read(epochs.unswept) == (first, second)
    await fresh_store.write(epochs.mark_swept, first, NOW_MS + 4)
    assert await fresh_store.read(epochs.unswept) == (second,)
    await fresh_store.write(epochs.require_alive, [living])


async def test_epochs_have_numbers_of_their_own(fresh_store: Store) -> None:
    numbers = [await fresh_store.write(epochs.open_epoch, "same owner", NOW_MS) for _ in range(5)]
    assert numbers == sorted(set(numbers))


async def test_garbage_is_named_oldest_first_until_it_is_forgotten(fresh_store: Store) -> None:
    await fresh_store.write(garbage.add, 1, ("e1/a.jpg", "e1/b.jpg"), NOW_MS)
    await fresh_store.write(garbage.add, 2, ("e1/c.jpg",), NOW_MS)
    await fresh_store.write(garbage.add, 2, (), NOW_MS)
    found = await fresh_store.read(garbage.oldest)
    assert [trash.object_key for trash in found] == ["e1/a.jpg", "e1/b.jpg", "e1/c.jpg"]
    await fresh_store.write(garbage.forget, (found[1].garbage_id,))
    await fresh_store.write(garbage.forget, ())
    assert await fresh_store.read(garbage.oldest) == (found[0], found[2])
    assert isinstance(found[0], Trash)


async def test_garbage_is_paged_through(fresh_store: Store) -> None:
    await fresh_store.write(garbage.add, 1, ("e1/a.jpg", "e1/b.jpg", "e1/c.jpg"), NOW_MS)
    found = await fresh_store.read(garbage.oldest)
    assert await fresh_store.read(garbage.oldest, found[0].garbage_id) == found[1:]


async def test_garbage_comes_in_batches(fresh_store: Store) -> None:
    keys = tuple(f"e1/{number}.jpg" for number in range(garbage.BATCH + 10))
    await fresh_store.write(garbage.add, 1, keys, NOW_MS)
    first = await fresh_store.read(garbage.oldest)
    assert len(first) == garbage.BATCH
    await fresh_store.write(garbage.forget, tuple(trash.garbage_id for trash in first))
    assert len(await fresh_store.read(garbage.oldest)) == 10
