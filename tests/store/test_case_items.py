"""Cases and what they hold: on all databases, with sweeps and other cases racing."""

import asyncio
from dataclasses import replace

import pytest

from camserver.base.errors import CamError, Conflict, Forbidden, NotFound
from camserver.domain.cases import CaseState, ItemKind
from camserver.domain.keeping import DAY_MS, Why
from camserver.domain.people import Principal, Role
from camserver.domain.retention import RetentionPolicy
from camserver.store import Store, case_items, cases, people, retention
from camserver.store.jobs import claimed
from tests.domain.build import analysis
from tests.store import analyzing
from tests.store.casework import Evidence, run
from tests.store.people_rows import audit_rows
from tests.store.scenery import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="module")
POLICY = RetentionPolicy()
OLD = NOW_MS - 100 * DAY_MS


async def sweep(evidence: Evidence, store: Store, frame_ids: tuple[int, ...]) -> int:
    key = evidence.scene.camera_keys[0]
    return (await store.write(retention.sweep_frames, key, frame_ids, Why.AGE, POLICY, NOW_MS)).rows


async def test_a_frame_in_a_case_is_not_deleted_until_the_case_lets_go(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    kept = await evidence.frame(OLD)
    quarantined = await evidence.frame(OLD, retention_class="quarantine")
    await evidence.frame(NOW_MS)
    case = await evidence.case((ItemKind.FRAME, kept), (ItemKind.FRAME, quarantined))
    both = (kept, quarantined)
    assert await sweep(evidence, fresh_store, both) == 0
    await evidence.change(case, CaseState.CLOSED, hold=True)
    assert await sweep(evidence, fresh_store, both) == 0
    await evidence.change(case, hold=False)
    classes = await evidence.classes()
    assert (classes[kept], classes[quarantined]) == ("normal", "quarantine")
    assert await sweep(evidence, fresh_store, both) == 0, "there is some grace"
    later = NOW_MS + 7 * DAY_MS
    key = evidence.scene.camera_keys[0]
    swept = await fresh_store.write(retention.sweep_frames, key, both, Why.AGE, POLICY, later)
    assert (swept.rows, swept.objects, swept.bytes) == (2, 4, 1200)


async def test_an_event_in_a_case_holds_all_its_frames_and_its_clip(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    event = await evidence.event(OLD, frames=3)
    other = await evidence.frame(OLD + 1500)
    await evidence.frame(NOW_MS)
    clip = await evidence.clip(event, OLD)
    case = await evidence.case((ItemKind.EVENT, event))
    of_event = await evidence.rows("SELECT frame_id FROM frames WHERE event_id IS NOT NULL")
    frames = [row["frame_id"] for row in of_event]
    assert {key for key, name in (await evidence.classes()).items() if name == "case"} == set(frames)
    assert await sweep(evidence, fresh_store, (*frames, other)) == 1
    key = evidence.scene.camera_keys[0]
    later = NOW_MS + 1000 * DAY_MS
    assert (await fresh_store.write(retention.sweep_clips, key, (clip,), Why.AGE, POLICY, later)).objects == 0
    assert (await fresh_store.write(retention.sweep_events, key, (event,), POLICY, later)).rows == 0
    await evidence.take_out(case, ItemKind.EVENT, event)
    assert set((await evidence.classes()).values()) == {"normal"}
    assert (await fresh_store.write(retention.sweep_clips, key, (clip,), Why.AGE, POLICY, later)).objects == 1
    assert (await fresh_store.write(retention.sweep_events, key, (event,), POLICY, later)).rows == 1
    assert await evidence.rows("SELECT event_id FROM frames WHERE event_id IS NOT NULL") == []


async def test_what_two_cases_hold_stays_held_by_the_other(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    event = await evidence.event(OLD, frames=2)
    first, second = [row["frame_id"] for row in await evidence.rows("SELECT frame_id FROM frames ORDER BY frame_id")]
    by_event = await evidence.case((ItemKind.EVENT, event))
    by_frame = await evidence.case((ItemKind.FRAME, second))
    await evidence.change(by_event, CaseState.CLOSED)
    assert await evidence.classes() == {first: "normal", second: "case"}
    await evidence.change(by_event, CaseState.OPEN)
    assert await evidence.classes() == {first: "case", second: "case"}
    await evidence.change(by_frame, CaseState.CLOSED)
    assert await evidence.classes() == {first: "case", second: "case"}
    await evidence.change(by_event, CaseState.CLOSED)
    assert await evidence.classes() == {first: "normal", second: "normal"}


async def test_a_clip_alone_holds_its_event_but_not_the_frames(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    event = await evidence.event(OLD, retention_class="quarantine")
    with pytest.raises(NotFound, match="no clip"):
        await evidence.case((ItemKind.CLIP, event))
    await evidence.clip(event, OLD)
    case = await evidence.case((ItemKind.CLIP, event))
    assert await evidence.rows("SELECT retention_class, own_class FROM events") == [
        {"retention_class": "case", "own_class": "quarantine"}
    ]
    assert set((await evidence.classes()).values()) == {"quarantine"}
    await evidence.change(case, CaseState.CLOSED)
    assert await evidence.rows("SELECT retention_class, own_class FROM events") == [
        {"retention_class": "quarantine", "own_class": None}
    ]


async def test_what_is_gone_or_closed_can_not_be_added(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    frame = await evidence.frame(NOW_MS)
    case = await evidence.case()
    scoped = fresh_store.as_(evidence.somebody)
    for kind in ItemKind:
        with pytest.raises(NotFound, match="past its retention"):
            await scoped.write(case_items.add, case, kind, "0198c0de-0000-7000-8000-00000000dead", "", NOW_MS)
    assert await evidence.add(case, ItemKind.FRAME, frame) is True
    assert await evidence.add(case, ItemKind.FRAME, frame) is False, "the same again changes nothing"
    assert await evidence.rows("SELECT holds, object_id FROM case_items") == [{"holds": 1, "object_id": frame}]
    await evidence.change(case, CaseState.CLOSED)
    with pytest.raises(Conflict, match="reopen"):
        await evidence.add(case, ItemKind.FRAME, frame)


async def test_strangers_and_other_sites_see_nothing_of_a_case(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    frame = await evidence.frame(NOW_MS)
    case = await evidence.case((ItemKind.FRAME, frame))
    uuid = await evidence.uuid(ItemKind.FRAME, frame)
    stranger = Principal(evidence.scene.tenant_id + 1, None, Role.TENANT_ADMIN)
    with pytest.raises(NotFound, match="no case"):
        await fresh_store.as_(stranger).read(cases.get, case)
    elsewhere = fresh_store.as_(replace(evidence.somebody, site_ids=frozenset({evidence.scene.site_id + 1})))
    found = await elsewhere.read(cases.get, case)
    assert await elsewhere.read(cases.items, found.case_id, 0, 10) == ()
    with pytest.raises(NotFound, match="no frame"):
        await elsewhere.write(case_items.add, case, ItemKind.FRAME, uuid, "", NOW_MS)
    with pytest.raises(Forbidden, match="beyond your reach"):
        await elsewhere.write(cases.change, case, cases.CaseChange(state=CaseState.CLOSED), "", NOW_MS)
    with pytest.raises(Forbidden, match="beyond your reach"):
        await elsewhere.write(case_items.remove, case, ItemKind.FRAME, uuid, 7, "", NOW_MS)


@pytest.mark.parametrize(
    ("state", "hold", "why"),
    [(CaseState.OPEN, True, "on hold"), (CaseState.CLOSED, True, "on hold"), (CaseState.CLOSED, False, "reopen")],
)
async def test_a_case_that_is_held_or_closed_gives_nothing_away(
    fresh_store: Store, state: CaseState, hold: bool, why: str
) -> None:
    evidence = await Evidence.gather(fresh_store)
    frame = await evidence.frame(NOW_MS)
    case = await evidence.case((ItemKind.FRAME, frame))
    await evidence.change(case, state, hold)
    with pytest.raises(Conflict, match=why):
        await evidence.take_out(case, ItemKind.FRAME, frame)
    scoped = fresh_store.as_(evidence.somebody)
    assert (await scoped.read(cases.get, case)).items == 1
    await evidence.change(case, CaseState.OPEN, False)
    await evidence.take_out(case, ItemKind.FRAME, frame)
    assert (await scoped.read(cases.get, case)).items == 0


async def test_every_change_is_in_the_audit_log(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    frame = await evidence.frame(NOW_MS)
    case = await evidence.case((ItemKind.FRAME, frame))
    scoped = fresh_store.as_(evidence.somebody)
    await scoped.write(cases.add_note, case, "seen twice", "192.0.2.1", NOW_MS)
    await scoped.write(cases.note_look, "infer", await evidence.uuid(ItemKind.FRAME, frame), "192.0.2.1", NOW_MS)
    await evidence.take_out(case, ItemKind.FRAME, frame)
    await evidence.change(case, hold=True)
    await evidence.change(case, CaseState.CLOSED, hold=False)
    await evidence.change(case, CaseState.OPEN)
    actions = [row[1] for row in await fresh_store.read(audit_rows) if row[3] == case]
    assert actions == [
        "case_created",
        "case_item_added",
        "case_note_added",
        "case_media_opened",
        "case_item_removed",
        "case_held",
        "case_hold_ended",
        "case_closed",
        "case_reopened",
    ]
    told = await scoped.read(cases.audit_of, case)
    assert [entry.action for entry in told] == actions
    assert told[2].address == "192.0.2.1"


async def test_the_log_of_a_case_names_those_who_did_something_as_the_audit_log_does(fresh_store: Store) -> None:
    """Also somebody who is no more, and the command line: it goes into exports, which are read elsewhere."""
    evidence = await Evidence.gather(fresh_store)
    scoped = fresh_store.as_(replace(evidence.somebody, role=Role.SYSTEM_ADMIN))
    case = await evidence.case()
    person = people.NewPerson("kato", "Kato", "ja", Role.TENANT_ADMIN, None)
    added = await scoped.write(people.add, person, "", NOW_MS)
    kato = replace(evidence.somebody, user_id=added.user_id)
    await fresh_store.as_(kato).write(cases.add_note, case, "seen twice", "", NOW_MS)
    gone = replace(evidence.somebody, user_id=added.user_id + 1_000)
    await fresh_store.as_(gone).write(cases.note_in_log, case, "case_opened", {}, "", NOW_MS)
    names = ["local admin", "kato", "removed user"]
    assert [entry.actor for entry in await scoped.read(cases.audit_of, case)] == names
    await scoped.write(people.remove, "kato", "", NOW_MS)
    assert [entry.actor for entry in await scoped.read(cases.audit_of, case)] == names


async def test_a_reopened_case_says_what_is_gone(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    lost = await evidence.frame(OLD)
    there = await evidence.frame(NOW_MS)
    case = await evidence.case((ItemKind.FRAME, lost), (ItemKind.FRAME, there))
    await evidence.change(case, CaseState.CLOSED, now_ms=NOW_MS - 8 * DAY_MS)
    assert await sweep(evidence, fresh_store, (lost, there)) == 1
    await evidence.change(case, CaseState.OPEN)
    found = await fresh_store.as_(evidence.somebody).read(cases.get, case)
    items = await fresh_store.as_(evidence.somebody).read(cases.items, found.case_id, 0, 10)
    assert [(item.gone, item.held) for item in items] == [(True, False), (False, True)]
    assert await evidence.classes() == {there: "case"}


async def test_a_frame_that_joins_an_event_in_a_case_is_in_the_case(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    scene = evidence.scene
    await fresh_store.write(run, "UPDATE camera_leases SET granted_at = 0", {})
    seen = analysis("human")
    held = await analyzing.hold(fresh_store, scene, 0, 1, NOW_MS, seen, NOW_MS)
    await analyzing.settle(fresh_store, held, now_ms=NOW_MS)
    [event] = await evidence.rows("SELECT event_id FROM events")
    # Claimed before the event came into a case, applied after: it is decided again.
    late = await analyzing.hold(fresh_store, scene, 0, 2, NOW_MS + 1000, analysis("human", severity=2), NOW_MS + 1000)
    case = await evidence.case((ItemKind.EVENT, event["event_id"]))
    [answer] = await analyzing.settle(fresh_store, late, now_ms=NOW_MS + 1000)
    assert answer == "state_moved"
    [again] = await fresh_store.read(claimed, (late.job.job_id,), (late.job.token,), analyzing.TERMS)
    [answer] = await analyzing.settle(fresh_store, replace(late, job=again), now_ms=NOW_MS + 1000)
    assert answer == "done"
    assert set((await evidence.classes()).values()) == {"case"}
    await evidence.change(case, CaseState.CLOSED)
    assert list((await evidence.classes()).values()) == ["normal", "quarantine"]
    [after] = await evidence.rows("SELECT retention_class, own_class FROM events")
    assert after == {"retention_class": "quarantine", "own_class": None}


async def test_adding_and_sweeping_at_once_end_in_one_of_two_ways(fresh_pair: tuple[Store, Store]) -> None:
    one, other = fresh_pair
    evidence = await Evidence.gather(one)
    await evidence.frame(NOW_MS)
    case = await evidence.case()
    ways = set()
    for _ in range(12):
        frame = await evidence.frame(OLD)
        uuid = await evidence.uuid(ItemKind.FRAME, frame)
        adding = other.as_(evidence.somebody).write(case_items.add, case, ItemKind.FRAME, uuid, "", NOW_MS)
        swept, added = await asyncio.gather(sweep(evidence, one, (frame,)), adding, return_exceptions=True)
        there = frame in await evidence.classes()
        if isinstance(added, CamError):
            assert isinstance(added, NotFound)
            assert (swept, there) == (1, False)
        else:
            assert (swept, added, there) == (0, True, True)
        ways.add(there)
    assert ways <= {True, False}


@pytest.mark.parametrize("kind", [ItemKind.FRAME, ItemKind.EVENT])
async def test_closing_one_case_while_another_takes_the_same_leaves_it_held(
    fresh_pair: tuple[Store, Store], kind: ItemKind
) -> None:
    one, other = fresh_pair
    evidence = await Evidence.gather(one)
    event = await evidence.event(OLD, frames=2)
    [frame, _] = (await evidence.classes()).keys()
    for _ in range(8):
        first = await evidence.case((kind, frame if kind is ItemKind.FRAME else event))
        second = await evidence.case()
        uuid = await evidence.uuid(ItemKind.FRAME, frame)
        adding = other.as_(evidence.somebody).write(case_items.add, second, ItemKind.FRAME, uuid, "", NOW_MS)
        closing = evidence.change(first, CaseState.CLOSED)
        await asyncio.gather(adding, closing)
        assert (await evidence.classes())[frame] == "case"
        await evidence.change(second, CaseState.CLOSED)
        assert set((await evidence.classes()).values()) == {"normal"}


async def test_the_picture_of_a_camera_issue_is_held_with_its_event(fresh_store: Store) -> None:
    """Events of camera issues have no frames of their own, but a best one."""
    evidence = await Evidence.gather(fresh_store)
    frame = await evidence.frame(OLD)
    await evidence.frame(NOW_MS)
    event = await evidence.event(OLD + 5000)
    params = {"frame": frame, "event": event}
    await fresh_store.write(run, "UPDATE events SET best_frame_id = :frame WHERE event_id = :event", params)
    case = await evidence.case((ItemKind.EVENT, event))
    assert (await evidence.classes())[frame] == "case"
    await fresh_store.as_(evidence.somebody).write(
        cases.note_look, "infer", await evidence.uuid(ItemKind.FRAME, frame), "", NOW_MS
    )
    assert [row[1] for row in await fresh_store.read(audit_rows) if row[3] == case][-1] == "case_media_opened"
    await evidence.change(case, CaseState.CLOSED)
    assert (await evidence.classes())[frame] == "normal"
