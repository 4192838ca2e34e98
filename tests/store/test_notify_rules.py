"""Rules and snoozes as people write them and as the dispatcher reads them."""

import asyncio
import json
from dataclasses import replace

import pytest
import pytest_asyncio

from camserver.base.errors import BadInput, CamError, Conflict, Forbidden, NotFound
from camserver.domain.people import Principal, Role
from camserver.domain.routing import Quiet, Snooze
from camserver.store import Store, Tx, notify_rules, receivers, sites, snoozes
from camserver.store.notify_rules import RuleChange, RuleSummary, RuleValues
from camserver.store.snoozes import NewSnooze
from tests.store.people_rows import told
from tests.store.scenery import NOW_MS, Scene, furnish

pytestmark = pytest.mark.asyncio(loop_scope="module")

NIGHT = {"from": "22:00", "to": "07:00", "days": [0, 1], "through_severity": 3}
ALL = RuleValues("everything")


def given(**values: object) -> RuleChange:
    return RuleChange(RuleValues(**{"name": "", **values}), frozenset(values))  # type: ignore[arg-type]


@pytest_asyncio.fixture(loop_scope="module")
async def scene(fresh_store: Store) -> Scene:
    made = await furnish(fresh_store)
    await fresh_store.write(add_receiver, made.tenant_id, "r-1", "Slack")
    await fresh_store.write(add_receiver, made.tenant_id, "r-2", "Mail")
    return made


async def add_receiver(tx: Tx, tenant_id: int, receiver_uuid: str, name: str) -> int:
    return await tx.insert(
        "INSERT INTO receivers (receiver_uuid, tenant_id, name, kind, config, created_at, updated_at) "
        "VALUES (:uuid, :tenant_id, :name, 'slack', '{}', 0, 0) RETURNING receiver_id",
        uuid=receiver_uuid,
        tenant_id=tenant_id,
        name=name,
    )


async def drop_receiver(tx: Tx, receiver_uuid: str) -> None:
    await tx.run("DELETE FROM receivers WHERE receiver_uuid = :uuid", uuid=receiver_uuid)


async def key_of(tx: Tx, receiver_uuid: str) -> int:
    row = await tx.one("SELECT receiver_id FROM receivers WHERE receiver_uuid = :uuid", uuid=receiver_uuid)
    assert row is not None
    return int(row["receiver_id"])


async def audited(tx: Tx) -> list[str]:
    return [row["action"] for row in await tx.all("SELECT action FROM audit_log ORDER BY entry_id")]


def admin(scene: Scene, **changes: object) -> Principal:
    return replace(Principal(scene.tenant_id, None, Role.SYSTEM_ADMIN), **changes)  # type: ignore[arg-type]


async def add(store: Store, scene: Scene, values: RuleValues) -> RuleSummary:
    return await store.as_(admin(scene)).write(notify_rules.add, values, "192.0.2.1", NOW_MS)


async def test_a_rule_comes_back_as_it_was_written(fresh_store: Store, scene: Scene) -> None:
    values = RuleValues("night", True, ("main",), ("cam_0", "cam_2"), ("human", "hazard"), 2, ("r-2",), NIGHT)
    added = await add(fresh_store, scene, values)
    assert added.values == values
    assert added.gone == 0
    assert await fresh_store.as_(admin(scene)).read(notify_rules.listed) == (added,)
    (rule,) = await fresh_store.read(notify_rules.of_tenant, scene.tenant_id)
    assert rule.site_ids == {scene.site_id}
    assert rule.camera_keys == {scene.camera_keys[0], scene.camera_keys[2]}
    assert rule.primary_events == {"human", "hazard"}
    assert rule.receiver_ids == {await fresh_store.read(key_of, "r-2")}
    assert rule.quiet == Quiet(22 * 60, 7 * 60, frozenset({0, 1}), 3)


async def test_all_and_nobody_are_told_apart(fresh_store: Store, scene: Scene) -> None:
    await add(fresh_store, scene, ALL)
    await add(fresh_store, scene, replace(ALL, receivers=(), camera_ids=()))
    first, second = await fresh_store.read(notify_rules.of_tenant, scene.tenant_id)
    assert (first.receiver_ids, first.camera_keys) == (None, None)
    assert (second.receiver_ids, second.camera_keys) == (frozenset(), frozenset())


async def test_rules_that_are_off_are_not_read(fresh_store: Store, scene: Scene) -> None:
    await add(fresh_store, scene, replace(ALL, enabled=False))
    assert await fresh_store.read(notify_rules.of_tenant, scene.tenant_id) == ()
    assert len(await fresh_store.as_(admin(scene)).read(notify_rules.listed)) == 1


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (replace(ALL, camera_ids=("cam_9",)), BadInput),
        (replace(ALL, receivers=("r-9",)), BadInput),
        (replace(ALL, sites=("nowhere",)), NotFound),
        (replace(ALL, quiet={"from": "25:00", "to": "07:00"}), BadInput),
    ],
)
async def test_a_rule_that_names_what_there_is_not(
    fresh_store: Store, scene: Scene, values: RuleValues, error: type[CamError]
) -> None:
    with pytest.raises(error):
        await add(fresh_store, scene, values)
    assert await fresh_store.read(notify_rules.of_tenant, scene.tenant_id) == ()


async def test_changing_reordering_and_removing(fresh_store: Store, scene: Scene) -> None:
    store = fresh_store.as_(admin(scene))
    uuids = [(await add(fresh_store, scene, replace(ALL, name=name))).rule_uuid for name in "abc"]
    changed = await store.write(notify_rules.change, uuids[1], given(name="B"), "", NOW_MS + 1)
    assert (changed.values.name, changed.updated_at) == ("B", NOW_MS + 1)
    moved = await store.write(notify_rules.reorder, (uuids[2], uuids[0], uuids[1]), "", NOW_MS)
    assert [one.values.name for one in moved] == ["c", "a", "B"]
    assert [one.name for one in await fresh_store.read(notify_rules.of_tenant, scene.tenant_id)] == ["c", "a", "B"]
    for wrong in ((uuids[0],), (uuids[0], uuids[0], uuids[1]), (*uuids, "x")):
        with pytest.raises(Conflict):
            await store.write(notify_rules.reorder, wrong, "", NOW_MS)
    await store.write(notify_rules.remove, uuids[0], "", NOW_MS)
    assert [one.values.name for one in await store.read(notify_rules.listed)] == ["c", "B"]
    with pytest.raises(NotFound):
        await store.write(notify_rules.remove, uuids[0], "", NOW_MS)
    with pytest.raises(NotFound):
        await store.write(notify_rules.change, uuids[0], given(name="B"), "", NOW_MS)
    assert await fresh_store.read(audited) == [
        *["notify_rule_added"] * 3,
        "notify_rule_changed",
        "notify_rules_reordered",
        "notify_rule_removed",
    ]


async def test_a_rule_whose_receiver_is_removed_does_not_become_one_for_nobody(
    fresh_store: Store, scene: Scene
) -> None:
    await add(fresh_store, scene, replace(ALL, receivers=("r-1",)))
    await fresh_store.write(drop_receiver, "r-1")
    (shown,) = await fresh_store.as_(admin(scene)).read(notify_rules.listed)
    assert (shown.values.receivers, shown.gone) == ((), 1)
    (rule,) = await fresh_store.read(notify_rules.of_tenant, scene.tenant_id)
    assert rule.receiver_ids, "it still names the one that is gone, so it mutes nobody"
    store = fresh_store.as_(admin(scene))
    changed = await store.write(notify_rules.change, shown.rule_uuid, given(min_severity=2), "", NOW_MS)
    assert (changed.values.min_severity, changed.gone) == (2, 1), "nor after a change of something else"


async def test_a_site_that_was_removed_is_gone_from_a_rule(fresh_store: Store, scene: Scene) -> None:
    store = fresh_store.as_(admin(scene))
    for name in ("annex", "depot"):
        await store.write(sites.add, name, "UTC", "", NOW_MS)
    await add(fresh_store, scene, replace(ALL, sites=("annex", "depot")))
    await store.write(sites.remove, "annex", "", NOW_MS)
    (shown,) = await store.read(notify_rules.listed)
    assert (shown.values.sites, shown.gone) == (("depot",), 1)
    # As it is shown it can be written.
    written = given(sites=shown.values.sites, name="depot alone")
    changed = await store.write(notify_rules.change, shown.rule_uuid, written, "", NOW_MS)
    assert (changed.values.sites, changed.gone) == (("depot",), 0)


WHOLE = RuleValues("night", False, ("main",), ("cam_0",), ("human",), 3, ("r-2",), NIGHT)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"name": "dusk"},
        {"enabled": True},
        {"sites": None},
        {"camera_ids": ("cam_1", "cam_2")},
        {"camera_ids": None, "receivers": ("r-1",)},
        {"primary_events": None},
        {"min_severity": 0},
        {"receivers": ()},
        {"receivers": None},
        {"quiet": None},
    ],
)
async def test_a_change_keeps_what_it_leaves_out(fresh_store: Store, scene: Scene, wanted: dict[str, object]) -> None:
    rule = await add(fresh_store, scene, WHOLE)
    store = fresh_store.as_(admin(scene))
    changed = await store.write(notify_rules.change, rule.rule_uuid, given(**wanted), "", NOW_MS + 1)
    assert changed.values == replace(WHOLE, **wanted)  # type: ignore[arg-type]
    assert await store.read(notify_rules.get, rule.rule_uuid) == changed


async def test_the_log_names_a_rule_and_what_became_of_it(fresh_store: Store, scene: Scene) -> None:
    rule = await add(fresh_store, scene, WHOLE)
    store = fresh_store.as_(admin(scene))
    wanted = given(name="dusk", enabled=True, min_severity=1, sites=None, receivers=(), quiet=None)
    await store.write(notify_rules.change, rule.rule_uuid, wanted, "", NOW_MS)
    await add(fresh_store, scene, replace(ALL, name="last"))
    order = tuple(one.rule_uuid for one in reversed(await store.read(notify_rules.listed)))
    await store.write(notify_rules.reorder, order, "", NOW_MS)
    await store.write(notify_rules.remove, rule.rule_uuid, "", NOW_MS)
    added, changed, _, reordered, removed = await told(
        fresh_store, "notify_rule_added", "notify_rule_changed", "notify_rules_reordered", "notify_rule_removed"
    )
    assert added == {
        "name": "night",
        "enabled": 0,
        "sites": "main",
        "camera_ids": "cam_0",
        "primary_events": "human",
        "min_severity": 3,
        "receivers": "r-2",
        "quiet": json.dumps(NIGHT, sort_keys=True),
    }
    assert changed == {
        "name": "dusk",
        "name_before": "night",
        "changed": "enabled min_severity name quiet receivers sites",
        "enabled": 1,
        "min_severity": 1,
        "sites": "*",
        "receivers": "",
        "quiet": "",
    }
    assert (reordered, removed) == ({"order": "last, dusk"}, {"name": "dusk"})


async def test_the_log_says_what_is_silent(fresh_store: Store, scene: Scene) -> None:
    store = fresh_store.as_(admin(scene))
    silent = NewSnooze(NOW_MS + 1_000, camera_id="cam_0", receiver="r-2", reason="works")
    made = await store.write(snoozes.add, silent, "", NOW_MS)
    await store.write(snoozes.end, made.snooze_uuid, "", NOW_MS)
    wanted = {"until": NOW_MS + 1_000, "camera_id": "cam_0", "site": "main", "receiver": "Mail", "reason": "works"}
    assert await told(fresh_store, "snoozed", "snooze_ended") == [wanted, wanted]


async def test_two_changes_at_once_both_hold(fresh_store: Store, scene: Scene) -> None:
    rule = await add(fresh_store, scene, WHOLE)
    store = fresh_store.as_(admin(scene))
    changes = [given(name="dusk"), given(min_severity=1), given(quiet=None), given(sites=None)]
    await asyncio.gather(*(store.write(notify_rules.change, rule.rule_uuid, one, "", NOW_MS + 1) for one in changes))
    found = await store.read(notify_rules.get, rule.rule_uuid)
    assert found.values == replace(WHOLE, name="dusk", min_severity=1, quiet=None, sites=None)


async def test_rules_and_snoozes_of_another_tenant_are_out_of_reach(fresh_store: Store, scene: Scene) -> None:
    other = await furnish(fresh_store, name="other")
    rule = await add(fresh_store, scene, ALL)
    snooze = await fresh_store.as_(admin(scene)).write(snoozes.add, NewSnooze(NOW_MS + 1), "", NOW_MS)
    store = fresh_store.as_(admin(other))
    assert await store.read(notify_rules.listed) == ()
    assert await store.read(snoozes.listed, NOW_MS) == ()
    with pytest.raises(NotFound):
        await store.write(notify_rules.change, rule.rule_uuid, given(name="B"), "", NOW_MS)
    with pytest.raises(NotFound):
        await store.write(snoozes.end, snooze.snooze_uuid, "", NOW_MS)
    with pytest.raises(BadInput):
        await store.write(notify_rules.add, replace(ALL, receivers=("r-1",)), "", NOW_MS)
    assert await fresh_store.read(snoozes.active, other.tenant_id, NOW_MS) == ()


async def test_snoozes(fresh_store: Store, scene: Scene) -> None:
    store = fresh_store.as_(admin(scene))
    everything = await store.write(snoozes.add, NewSnooze(NOW_MS + 10, reason="works"), "", NOW_MS)
    assert (everything.site, everything.camera_id, everything.receiver, everything.reason) == (
        None,
        None,
        None,
        "works",
    )
    camera = await store.write(snoozes.add, NewSnooze(NOW_MS + 5, camera_id="cam_1", receiver="r-1"), "", NOW_MS)
    assert (camera.site, camera.camera_id, camera.receiver_name) == ("main", "cam_1", "Slack")
    assert await store.read(snoozes.listed, NOW_MS) == (camera, everything)
    key = await fresh_store.read(key_of, "r-1")
    assert set(await fresh_store.read(snoozes.active, scene.tenant_id, NOW_MS)) == {
        Snooze(NOW_MS + 10),
        Snooze(NOW_MS + 5, None, scene.camera_keys[1], key),
    }
    assert await fresh_store.read(snoozes.active, scene.tenant_id, NOW_MS + 5) == (Snooze(NOW_MS + 10),)
    await store.write(snoozes.end, everything.snooze_uuid, "", NOW_MS + 6)
    assert await store.read(snoozes.listed, NOW_MS + 6) == ()
    for wrong in (
        NewSnooze(NOW_MS),
        NewSnooze(NOW_MS + 1, camera_id="cam_9"),
        NewSnooze(NOW_MS + 1, site="x"),
        NewSnooze(NOW_MS + 1, receiver="x"),
    ):
        with pytest.raises((BadInput, NotFound)):
            await store.write(snoozes.add, wrong, "", NOW_MS)


async def test_who_reaches_some_sites_silences_only_those(fresh_store: Store, scene: Scene) -> None:
    own = admin(scene, role=Role.SITE_MANAGER, site_ids=frozenset({scene.site_id}))
    foreign = admin(scene, role=Role.SITE_MANAGER, site_ids=frozenset({scene.site_id + 99}))
    snooze = await fresh_store.as_(own).write(snoozes.add, NewSnooze(NOW_MS + 9, site="main"), "", NOW_MS)
    with pytest.raises(Forbidden):
        await fresh_store.as_(own).write(snoozes.add, NewSnooze(NOW_MS + 9), "", NOW_MS)
    for wrong in (NewSnooze(NOW_MS + 9, site="main"), NewSnooze(NOW_MS + 9, camera_id="cam_0")):
        with pytest.raises(NotFound):
            await fresh_store.as_(foreign).write(snoozes.add, wrong, "", NOW_MS)
    with pytest.raises(NotFound):
        await fresh_store.as_(foreign).write(snoozes.end, snooze.snooze_uuid, "", NOW_MS)
    everything = await fresh_store.as_(admin(scene)).write(snoozes.add, NewSnooze(NOW_MS + 9), "", NOW_MS)
    with pytest.raises(Forbidden):
        await fresh_store.as_(own).write(snoozes.end, everything.snooze_uuid, "", NOW_MS)
    assert await fresh_store.as_(foreign).read(snoozes.listed, NOW_MS) == (everything,)


@pytest.mark.parametrize("role", [Role.SYSTEM_ADMIN, Role.TENANT_ADMIN])
@pytest.mark.parametrize("own", [True, False])
async def test_who_reaches_some_sites_writes_no_rule(fresh_store: Store, scene: Scene, role: Role, own: bool) -> None:
    made = await add(fresh_store, scene, ALL)
    some = fresh_store.as_(admin(scene, role=role, site_ids=frozenset({scene.site_id} if own else {})))
    with pytest.raises(Forbidden):
        await some.write(notify_rules.add, ALL, "", NOW_MS)
    with pytest.raises(Forbidden):
        await some.write(notify_rules.change, made.rule_uuid, given(name="B"), "", NOW_MS)
    with pytest.raises(Forbidden):
        await some.write(notify_rules.reorder, (made.rule_uuid,), "", NOW_MS)
    with pytest.raises(Forbidden):
        await some.write(notify_rules.remove, made.rule_uuid, "", NOW_MS)
    with pytest.raises(Forbidden):
        await some.write(receivers.remove, "r-1", "", NOW_MS)
    with pytest.raises(Forbidden):
        await some.write(receivers.change, "r-1", receivers.ReceiverChange(enabled=False), "", NOW_MS)
    with pytest.raises(Forbidden):
        await some.write(receivers.queue_trial, "r-1", "d-1", "", NOW_MS)
    assert [one.rule_uuid for one in await some.read(notify_rules.listed)] == [made.rule_uuid]
