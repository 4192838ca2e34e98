"""The camera to watch now, in the store: chosen from events, told on the feed, prewarmed, for those who reach it."""

import asyncio
from dataclasses import replace

import pytest

from camserver.base.errors import NotFound
from camserver.domain.admission import Kind, Refusal
from camserver.domain.people import Principal, Role
from camserver.domain.suggest import SuggestPolicy
from camserver.store import Store, cameras, feed, prewarming, streamers, suggestions, viewings
from camserver.store.admissions import Admitted, NotAdmitted
from camserver.store.suggestions import Shown
from camserver.store.tx import Tx
from tests.store.people_rows import EventRow, add_event, count_rows
from tests.store.stage import NOW_MS, statement
from tests.store.viewing_rows import POLICY as ADMISSION
from tests.store.viewing_rows import House, ask, furnish, report, viewing_rows

pytestmark = pytest.mark.asyncio(loop_scope="module")
POLICY = SuggestPolicy()


def nobody(house: House) -> Principal:
    return Principal(house.tenant_id, None, Role.VIEWER)


async def happens(
    store: Store, house: House, camera: int, uuid: str, primary: str = "human", severity: int = 1, at: int = NOW_MS
) -> None:
    row = EventRow(primary_event=primary, severity_max=severity)
    await store.write(add_event, house.tenant_id, f"cam_{camera}", uuid, at, (), row)


async def advance(store: Store, house: House, now_ms: int) -> None:
    mine = store.as_(nobody(house))
    due = await mine.read(suggestions.is_due, POLICY, now_ms)
    before = await mine.read(feed.newest)
    await mine.write(suggestions.advance, POLICY, now_ms)
    assert due == (await mine.read(feed.newest) > before), "told exactly when something changes"
    assert not await mine.read(suggestions.is_due, POLICY, now_ms)


async def shown(store: Store, who: Principal, now_ms: int) -> Shown | None:
    return await store.as_(who).read(suggestions.current, now_ms)


async def test_an_event_makes_its_camera_the_one_to_watch(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    assert await shown(fresh_store, house.people[0], NOW_MS) is None
    await happens(fresh_store, house, 1, "e1", "hazard", 2)
    await advance(fresh_store, house, NOW_MS + 1_000)
    found = await shown(fresh_store, house.people[0], NOW_MS + 1_000)
    assert found is not None
    assert (found.camera_id, found.camera_name, found.site) == ("cam_1", "cam_1", "main")
    assert (found.event_uuid, found.severity, found.suggestion.reason) == ("e1", 2, "hazard")
    assert found.suggestion.score == 139
    assert await fresh_store.as_(nobody(house)).read(suggestions.is_active, NOW_MS + 1_000)
    await advance(fresh_store, house, NOW_MS + 61_000)
    assert await shown(fresh_store, house.people[0], NOW_MS + 61_000) is None


async def test_it_is_seen_and_told_only_where_it_is_reached(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    narrow = replace(house.people[0], site_ids=frozenset(), camera_keys=frozenset({house.cameras[0]}))
    await happens(fresh_store, house, 1, "e1")
    before = await fresh_store.as_(narrow).read(feed.newest)
    await advance(fresh_store, house, NOW_MS)
    assert await shown(fresh_store, narrow, NOW_MS) is None
    assert (await fresh_store.as_(narrow).read(feed.after, before, 10)).items == ()
    told = await fresh_store.as_(house.people[0]).read(feed.after, before, 10)
    assert [(one.kind, one.camera_id) for one in told.items] == [("suggestion", "cam_1")]
    assert not await fresh_store.as_(narrow).write(suggestions.dismiss, POLICY, "", NOW_MS)
    assert await shown(fresh_store, house.people[0], NOW_MS) is not None


async def test_tags_and_weights_count(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    tags = (("hazard.fire", "notify_safe"),)
    await fresh_store.write(add_event, house.tenant_id, "cam_0", "e0", NOW_MS, tags, EventRow(severity_max=1))
    await happens(fresh_store, house, 1, "e1", "human", 3)
    weigh = "INSERT INTO camera_overrides (camera_key, tenant_id, suggest_weight, updated_at) VALUES (:c, :t, :w, 1)"
    await fresh_store.write(statement, weigh, {"c": house.cameras[2], "t": house.tenant_id, "w": 10})
    await happens(fresh_store, house, 2, "e2", "human", 2)  # (40 + 30) * 2 = 140, 120 and 90 before
    await advance(fresh_store, house, NOW_MS)
    found = await shown(fresh_store, house.people[0], NOW_MS)
    assert found is not None
    assert (found.camera_id, found.suggestion.score) == ("cam_2", 140)
    await fresh_store.write(
        statement, "UPDATE cameras SET enabled = 0 WHERE camera_key = :c", {"c": house.cameras[2]}
    )
    await fresh_store.write(statement, "DELETE FROM suggestions", {})
    await advance(fresh_store, house, NOW_MS)
    found = await shown(fresh_store, house.people[0], NOW_MS)
    assert found is not None
    assert (found.camera_id, found.suggestion.reason) == ("cam_0", "hazard")


async def test_a_choice_wins_and_is_ended_by_hand(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    manager = replace(house.people[0], role=Role.SITE_MANAGER)
    await happens(fresh_store, house, 1, "e1", "hazard", 3)
    await advance(fresh_store, house, NOW_MS)
    await fresh_store.as_(manager).write(suggestions.choose, "cam_2", 120, "192.0.2.1", NOW_MS)
    await advance(fresh_store, house, NOW_MS + 5_000)
    found = await shown(fresh_store, house.people[1], NOW_MS + 5_000)
    assert found is not None
    assert (found.camera_id, found.suggestion.manual, found.event_uuid) == ("cam_2", True, None)
    with pytest.raises(NotFound):
        await fresh_store.as_(manager).write(suggestions.choose, "cam_9", 120, "", NOW_MS)
    assert await fresh_store.as_(manager).write(suggestions.dismiss, POLICY, "192.0.2.1", NOW_MS + 6_000)
    assert not await fresh_store.as_(manager).write(suggestions.dismiss, POLICY, "", NOW_MS + 6_000)
    await advance(fresh_store, house, NOW_MS + 20_000)
    assert await shown(fresh_store, manager, NOW_MS + 20_000) is None, "what happened before does not come back"
    assert await fresh_store.read(_actions) == ["suggestion_chosen", "suggestion_ended"]


async def test_a_choice_ends_with_its_camera(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    manager = replace(house.people[0], role=Role.SITE_MANAGER)
    await fresh_store.as_(manager).write(suggestions.choose, "cam_2", 3_600, "", NOW_MS)
    before = await fresh_store.as_(manager).read(feed.newest)
    await fresh_store.as_(manager).write(cameras.remove, "cam_2", "", NOW_MS + 1_000)
    told = await fresh_store.as_(manager).read(feed.after, before, 10)
    assert "suggestion" in {one.kind for one in told.items}
    assert not await fresh_store.as_(nobody(house)).read(suggestions.is_active, NOW_MS + 1_000)
    await fresh_store.as_(manager).write(suggestions.choose, "cam_1", 60, "", NOW_MS + 2_000)
    found = await shown(fresh_store, manager, NOW_MS + 2_000)
    assert found is not None
    assert found.camera_id == "cam_1"


async def _actions(tx: Tx) -> list[str]:
    return [row["action"] for row in await tx.all("SELECT action FROM audit_log ORDER BY entry_id")]


async def test_processes_that_advance_at_once_agree_and_tell_once(fresh_pair: tuple[Store, Store]) -> None:
    house = await furnish(fresh_pair[0])
    await happens(fresh_pair[0], house, 1, "e1")
    mine = [store.as_(nobody(house)) for store in fresh_pair]
    before = await mine[0].read(feed.newest)
    await asyncio.gather(*(mine[number % 2].write(suggestions.advance, POLICY, NOW_MS) for number in range(6)))
    assert await mine[0].read(feed.newest) == before + 1
    assert await fresh_pair[0].read(count_rows, "suggestions") == 1


# The stream of it ------------------------------------------------------------------------------------------------


async def test_the_suggested_camera_is_watched_out_of_the_reserve(fresh_store: Store) -> None:
    policy = replace(ADMISSION, max_ui_users=2, reserved_baseline_units=0)
    house = await furnish(fresh_store, people=4, units=3)  # one for modal viewings, two reserved
    not_yet = await ask(fresh_store, house.people[0], 1, kind=Kind.SUGGEST, policy=policy)
    assert not_yet == NotAdmitted(Refusal.NOT_SUGGESTED)
    await happens(fresh_store, house, 1, "e1")
    await advance(fresh_store, house, NOW_MS)
    answers = [await ask(fresh_store, person, 1, kind=Kind.SUGGEST, policy=policy) for person in house.people]
    assert [isinstance(one, Admitted) for one in answers] == [True, True, False, False]
    assert isinstance(answers[2], NotAdmitted)
    assert answers[2].refusal is Refusal.OVER_CAPACITY
    assert isinstance(await ask(fresh_store, house.people[0], 0, policy=policy), Admitted), "beside a modal view"
    await fresh_store.write(streamers.check_in, report(units=3), ADMISSION, NOW_MS + 61_000)
    await advance(fresh_store, house, NOW_MS + 61_000)
    rows = await fresh_store.read(viewing_rows)
    assert [kind for _, kind, _ in rows] == ["modal"], "they end with the suggestion"


async def test_the_suggested_stream_is_opened_before_anybody_watches(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    tenant_id = house.tenant_id

    async def prewarm(now_ms: int) -> bool:
        due = await fresh_store.read(prewarming.is_due, tenant_id, now_ms)
        done = await fresh_store.write(prewarming.prewarm, tenant_id, ADMISSION, now_ms)
        assert done or not due
        return due

    assert not await prewarm(NOW_MS)
    await happens(fresh_store, house, 1, "e1")
    await advance(fresh_store, house, NOW_MS)
    assert await prewarm(NOW_MS)
    [one] = (await fresh_store.read(viewings.valid_on, "streamer-1", (), NOW_MS)).viewings
    assert (one.kind, one.camera_id, one.user_id) == (Kind.PREWARM, "cam_1", f"suggest:{tenant_id}")
    assert not await prewarm(NOW_MS + 1_000)
    later = NOW_MS + 16_001
    await fresh_store.write(streamers.check_in, report(), ADMISSION, later)
    assert await prewarm(later)
    assert isinstance(await ask(fresh_store, house.people[0], 1, kind=Kind.SUGGEST, now_ms=later), Admitted)
    assert not await prewarm(later), "somebody watches it"
    assert [kind for _, kind, _ in await fresh_store.read(viewing_rows)] == ["suggest"]
    await happens(fresh_store, house, 2, "e2", "hazard", 3, later)
    await advance(fresh_store, house, later)
    assert await fresh_store.read(viewing_rows) == [], "the camera before is let go"
    assert await prewarm(later)
    assert [kind for _, kind, _ in await fresh_store.read(viewing_rows)] == ["prewarm"]
    # Nobody renews it: it is over after half a minute at most.
    assert await fresh_store.write(viewings.forget_over, later + 30_001) == 1


async def test_without_a_reserve_nothing_is_prewarmed(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    await happens(fresh_store, house, 1, "e1")
    await advance(fresh_store, house, NOW_MS)
    none = replace(ADMISSION, max_ui_users=0)
    assert not await fresh_store.write(prewarming.prewarm, house.tenant_id, none, NOW_MS)
    assert await fresh_store.read(viewing_rows) == []
