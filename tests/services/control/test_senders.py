"""The memory of senders: it saves questions, and it is never the reason for a refusal."""

from typing import Any

import pytest

from camserver.base.errors import Unauthenticated
from camserver.services.control.senders import REMEMBERED_MS, Senders
from camserver.store import Store
from tests.rig.clock import ManualClock
from tests.store.scenery import furnish


class Counting:
    """A store that counts what it is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0

    async def read(self, operation: Any, *args: Any) -> Any:
        self.reads += 1
        return await self._store.read(operation, *args)


async def test_an_ordinary_sender_is_asked_about_once(store: Store, clock: ManualClock) -> None:
    scene = await furnish(store)
    counting = Counting(store)
    senders = Senders(counting, clock)  # type: ignore[arg-type]  # what it needs of a store is here
    found = await senders.find(scene.tenant_id, "worker", "cam_1", 1)
    asked = counting.reads
    assert found.camera_key == scene.camera_keys[1]
    assert found.is_holder
    assert await senders.find(scene.tenant_id, "worker", "cam_1", 1) == found
    assert counting.reads == asked
    await clock.advance(REMEMBERED_MS)
    assert await senders.find(scene.tenant_id, "worker", "cam_1", 1) == found
    assert counting.reads > asked


async def test_who_does_not_hold_the_lease_is_not_remembered(store: Store, clock: ManualClock) -> None:
    scene = await furnish(store)
    senders = Senders(store, clock)
    assert not (await senders.find(scene.tenant_id, "worker", "cam_0", 2)).is_holder
    assert (await senders.find(scene.tenant_id, "worker", "nothing", 1)).camera_key is None
    assert not senders.forget(scene.tenant_id, "worker", "cam_0", 2)
    with pytest.raises(Unauthenticated, match="stranger"):
        await senders.find(scene.tenant_id, "stranger", "cam_0", 1)


async def test_only_a_look_beyond_the_highest_is_surely_new(store: Store, clock: ManualClock) -> None:
    scene = await furnish(store)
    senders = Senders(store, clock)
    lease = (scene.tenant_id, "worker", "cam_0", 1)
    assert senders.may_be_known(*lease, 1), "nothing is known of it yet"
    await senders.find(*lease)
    assert senders.may_be_known(*lease, 1), "another control process may have recorded it"
    senders.recorded(*lease, 5)
    assert senders.may_be_known(*lease, 5)
    assert senders.may_be_known(*lease, 4)
    assert not senders.may_be_known(*lease, 6)
    assert senders.forget(*lease)
    assert senders.may_be_known(*lease, 6)
