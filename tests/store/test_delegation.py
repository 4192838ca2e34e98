"""Who may do what to which worker and camera: nothing outside one's tenant and sites is even there."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from camserver.base.errors import Forbidden, NotFound
from camserver.domain.people import Principal, Role
from camserver.store import Store, delegation, feature_flags
from tests.store.stage import NOW_MS, add_site, build, session

Act = Callable[[Any], Awaitable[Any]]
ACTS: dict[str, Act] = {
    "drain": lambda people: people.write(delegation.drain, "worker-0", True, "", NOW_MS),
    "move": lambda people: people.write(delegation.move, "cam_0", "worker-0", "", NOW_MS),
    "pin": lambda people: people.write(delegation.pin, "cam_0", "worker-0", "", NOW_MS),
    "unpin": lambda people: people.write(delegation.pin, "cam_0", None, "", NOW_MS),
    "placement": lambda people: people.read(delegation.placement, "cam_0"),
    "why": lambda people: people.read(delegation.why_facts, "cam_0", 0, 60.0),
    "flag of a site": lambda people: people.write(
        feature_flags.set_flag, "assignment.style", "main", "pack", "", NOW_MS
    ),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_other_tenants_and_sites_are_not_there(store: Store, act: Act) -> None:
    stage = await build(store)
    other = await build(store, workers=0, cameras=0, name="other")
    annex_id = await store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    strangers = [
        Principal(stage.tenant_id, None, Role.SITE_MANAGER, frozenset({annex_id})),
        Principal(stage.tenant_id, None, Role.SITE_MANAGER, frozenset()),
    ]
    if act is not ACTS["flag of a site"]:  # the other tenant has a site of that name
        strangers.append(Principal(other.tenant_id, None, Role.SYSTEM_ADMIN))
    for stranger in strangers:
        with pytest.raises(NotFound):
            await act(store.as_(stranger))
    await act(store.as_(Principal(stage.tenant_id, None, Role.SITE_MANAGER, frozenset({stage.site_id}))))


async def test_lists_end_at_ones_reach(store: Store) -> None:
    stage = await build(store)
    other = await build(store, workers=1, cameras=0, name="other")
    annex_id = await store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    own = Principal(stage.tenant_id, None, Role.TENANT_ADMIN)
    assert [one.worker_id for one in await store.as_(own).read(delegation.workers)] == ["worker-0", "worker-1"]
    first = await store.as_(own).read(delegation.workers, (), "", 1)
    rest = await store.as_(own).read(delegation.workers, (), first[-1].worker_id, 5)
    assert [one.worker_id for one in (*first, *rest)] == ["worker-0", "worker-1"]
    assert await store.as_(own).read(delegation.workers, ("main",)) == (*first, *rest)
    assert await store.as_(own).read(delegation.workers, ("annex",)) == ()
    near = Principal(stage.tenant_id, None, Role.SITE_MANAGER, frozenset({annex_id}))
    assert await store.as_(near).read(delegation.workers) == ()
    with pytest.raises(NotFound, match="no site"):
        await store.as_(near).read(delegation.workers, ("main",))
    theirs = Principal(other.tenant_id, None, Role.TENANT_ADMIN)
    assert len(await store.as_(theirs).read(delegation.workers)) == 1


async def test_what_concerns_all_sites_needs_reach_over_all(store: Store) -> None:
    stage = await build(store)
    one_site = store.as_(Principal(stage.tenant_id, None, Role.SYSTEM_ADMIN, frozenset({stage.site_id})))
    with pytest.raises(Forbidden):
        await one_site.write(feature_flags.set_flag, "assignment.style", None, "pack", "", NOW_MS)
    with pytest.raises(Forbidden):
        await one_site.write(feature_flags.set_quota, 3, "", NOW_MS)


async def test_a_move_leaves_the_session_to_control(store: Store) -> None:
    stage = await build(store)
    people = store.as_(Principal(stage.tenant_id, None, Role.TENANT_ADMIN))
    placed = await people.write(delegation.move, "cam_0", "worker-1", "", NOW_MS)
    assert (placed.worker_id, placed.wanted_worker_id) == (None, "worker-1")
    assert (await session(store, stage.cameras[0].key))["stop_wanted"] == 0
