"""Sent messages as people read them: only of sites they reach, and of their own tenant."""

from dataclasses import replace

import pytest

from camserver.domain.people import Principal, Role
from camserver.store import Store, notifications
from camserver.store.notifications import Sent
from tests.store.scenery import NOW_MS, Scene, furnish

pytestmark = pytest.mark.asyncio(loop_scope="module")


def message(scene: Scene, **changes: object) -> Sent:
    sent = Sent(scene.tenant_id, 1, 1, scene.site_id, scene.camera_keys[0], None, None, "slack", "about a camera")
    return replace(sent, **changes)  # type: ignore[arg-type]  # the names are Sent's own


async def bodies(store: Store, principal: Principal) -> list[str]:
    return [one.body for one in await store.as_(principal).read(notifications.page, (), None, 10)]


async def test_who_sees_which_messages(fresh_store: Store) -> None:
    scene, other = await furnish(fresh_store), await furnish(fresh_store, name="other")
    for number, sent in enumerate(
        (
            message(scene),
            message(scene, site_id=None, camera_key=None, body="a summary"),
            message(other, body="of another tenant"),
        )
    ):
        await fresh_store.write(notifications.sent, sent, None, None, NOW_MS + number)
    everything = Principal(scene.tenant_id, None, Role.VIEWER)
    assert await bodies(fresh_store, everything) == ["a summary", "about a camera"]
    own_site = replace(everything, site_ids=frozenset({scene.site_id}))
    assert await bodies(fresh_store, own_site) == ["about a camera"]
    assert await bodies(fresh_store, replace(everything, site_ids=frozenset({scene.site_id + 99}))) == []
    assert await bodies(fresh_store, replace(everything, tenant_id=other.tenant_id)) == ["of another tenant"]


async def test_pages_follow_one_another_also_within_a_millisecond(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    for number in range(7):
        await fresh_store.write(
            notifications.sent, message(scene, body=str(number)), None, None, NOW_MS + number // 4
        )
    scoped = fresh_store.as_(Principal(scene.tenant_id, None, Role.VIEWER))
    found: list[str] = []
    cursor = None
    while page := await scoped.read(notifications.page, ("cam_0",), cursor, 2):
        found += [one.body for one in page]
        cursor = page[-1].cursor
    assert found == ["6", "5", "4", "3", "2", "1", "0"]
