"""Viewings in the store, on each database: admitted within the budget, kept, over, and never more than there is."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from camserver.base.errors import Conflict, NotFound
from camserver.domain.admission import Kind, Load, Note, Quality, Refusal, used, viewer_of
from camserver.domain.people import Principal, Role
from camserver.store import Store, admissions, streamers, viewings
from camserver.store.admissions import Admitted, NotAdmitted, Request, Wish
from camserver.store.sql import Sql
from camserver.store.tx import F, Row, Tx
from tests.rig.clock import ManualClock
from tests.store.people_rows import count_rows
from tests.store.stage import NOW_MS, add_site, statement
from tests.store.viewing_rows import CALM, POLICY, House, ask, furnish, report, sign_in, viewing_rows

pytestmark = pytest.mark.asyncio(loop_scope="module")
TTL_MS = POLICY.modal_ttl_sec * 1000
GRACE_MS = POLICY.heartbeat_grace_sec * 1000


async def admitted(store: Store, principal: Principal, camera: int = 0, now_ms: int = NOW_MS) -> Admitted:
    answer = await ask(store, principal, camera, now_ms=now_ms)
    assert isinstance(answer, Admitted), answer
    return answer


async def beat(store: Store, principal: Principal, lease_id: str, now_ms: int) -> int:
    return await store.as_(principal).write(viewings.heartbeat, lease_id, POLICY, now_ms)


async def valid(store: Store, now_ms: int = NOW_MS, lease_ids: tuple[str, ...] = ()) -> viewings.OnStreamer:
    return await store.read(viewings.valid_on, "streamer-1", lease_ids, now_ms)


async def watched_by(store: Store, people: list[Principal]) -> int:
    return len([one for one in people if isinstance(await ask(store, one), Admitted)])


# Seed 001, section 11.1 ------------------------------------------------------------------------------------------


async def test_within_the_budget_a_lease_is_issued(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    answer = await admitted(fresh_store, house.people[0])
    assert (answer.camera_id, answer.streamer_id, answer.quality) == ("cam_0", "streamer-1", Quality.SUB)
    assert (answer.units, answer.transcode, answer.expires_at) == (1, False, NOW_MS + TTL_MS)
    assert (answer.public_url, answer.port) == ("https://live.example", 8081)
    [one] = (await valid(fresh_store)).viewings
    assert (one.lease_id, one.camera_id, one.kind, one.feed) == (answer.lease_id, "cam_0", Kind.MODAL, "wanted")


async def test_beyond_the_budget_it_is_refused_with_over_capacity(fresh_store: Store) -> None:
    house = await furnish(fresh_store, units=17)  # two are left for viewings
    assert await watched_by(fresh_store, list(house.people)) == 2
    answer = await ask(fresh_store, house.people[2])
    assert isinstance(answer, NotAdmitted)
    assert answer.refusal is Refusal.OVER_CAPACITY
    assert answer.details == {"units_used": 2, "units_budget": 2, "retry_after_sec": 10}
    assert await fresh_store.read(count_rows, "modal_leases") == 2


async def test_an_overload_is_refused_with_system_overload(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    await fresh_store.write(streamers.check_in, report(load=Load(99, 0, 0)), POLICY, NOW_MS)
    answer = await ask(fresh_store, house.people[0], now_ms=NOW_MS + 1)
    assert isinstance(answer, NotAdmitted)
    assert (answer.refusal, answer.details) == (Refusal.SYSTEM_OVERLOAD, {"retry_after_sec": 60})
    later = NOW_MS + 61_000
    await fresh_store.write(streamers.check_in, report(), POLICY, later)
    assert isinstance(await ask(fresh_store, house.people[0], now_ms=later), Admitted)


async def test_a_second_one_of_a_login_is_refused_with_user_already_has_modal(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    first = await admitted(fresh_store, house.people[0])
    answer = await ask(fresh_store, house.people[0], camera=1)
    assert isinstance(answer, NotAdmitted)
    assert answer.refusal is Refusal.USER_ALREADY_HAS_MODAL
    assert answer.details == {"lease_id": first.lease_id, "camera_id": "cam_0", "camera_name": "cam_0"}
    elsewhere = replace(house.people[0], session_id=house.people[1].session_id)
    assert isinstance(await ask(fresh_store, elsewhere, camera=1), Admitted), "another login of the same person"


# Seed 001, section 11.2 ------------------------------------------------------------------------------------------


async def test_a_lease_is_over_when_its_ttl_is(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    one = await admitted(fresh_store, house.people[0])
    for passed_ms in range(30_000, TTL_MS, 30_000):
        assert await beat(fresh_store, house.people[0], one.lease_id, NOW_MS + passed_ms) == TTL_MS - passed_ms
    assert await beat(fresh_store, house.people[0], one.lease_id, NOW_MS + TTL_MS) == 0
    after = NOW_MS + TTL_MS + 1
    with pytest.raises(NotFound, match="over"):
        await beat(fresh_store, house.people[0], one.lease_id, after)
    assert (await valid(fresh_store, after, (one.lease_id,))).gone == ((one.lease_id, "ttl"),)
    assert await fresh_store.write(viewings.forget_over, after) == 1
    assert await fresh_store.read(count_rows, "modal_leases") == 0


async def test_a_lease_is_over_when_its_heartbeat_stops(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    one = await admitted(fresh_store, house.people[0])
    last = NOW_MS + 30_000
    await beat(fresh_store, house.people[0], one.lease_id, last)
    assert len((await valid(fresh_store, last + GRACE_MS)).viewings) == 1
    over = last + GRACE_MS + 1
    assert (await valid(fresh_store, over, (one.lease_id,))).gone == ((one.lease_id, "heartbeat"),)
    with pytest.raises(NotFound):
        await beat(fresh_store, house.people[0], one.lease_id, over)
    assert not await fresh_store.read(viewings.any_over, over - 1)
    assert await fresh_store.read(viewings.any_over, over)
    assert await fresh_store.write(viewings.forget_over, over) == 1


async def test_an_explicit_delete_succeeds(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    one = await admitted(fresh_store, house.people[0])
    assert not await fresh_store.as_(house.people[1]).write(viewings.release, one.lease_id), "somebody else's"
    assert await fresh_store.as_(house.people[0]).write(viewings.release, one.lease_id)
    assert not await fresh_store.as_(house.people[0]).write(viewings.release, one.lease_id)
    assert (await valid(fresh_store, NOW_MS, (one.lease_id,))).gone == ((one.lease_id, "unknown"),)
    assert isinstance(await ask(fresh_store, house.people[0], camera=1), Admitted)


# Seed 001, section 11.3 ------------------------------------------------------------------------------------------


async def test_leases_do_not_accumulate(fresh_store: Store) -> None:
    """People come, stay away and come again for hours; the rows are never more than the budget."""
    house = await furnish(fresh_store, people=4, units=17)
    now_ms = NOW_MS
    for turn in range(24):
        now_ms += 300_000
        await fresh_store.write(streamers.check_in, report(units=17), POLICY, now_ms)
        for number, person in enumerate(house.people):
            await ask(fresh_store, person, camera=(turn + number) % 3, now_ms=now_ms)
        assert await fresh_store.read(count_rows, "modal_leases") == 2
    assert await fresh_store.write(viewings.forget_over, now_ms + TTL_MS) == 2
    assert await fresh_store.read(count_rows, "modal_leases") == 0


async def test_after_24_hours_nothing_has_accumulated(fresh_store: Store) -> None:
    """A day of people who come, stay, leave or are never heard of again: rows and figures stay bounded."""
    house = await furnish(fresh_store, people=4, units=17)  # two are left for viewings
    hour, day = 6, 24 * 6  # in steps
    step_ms = 3_600_000 // hour
    # Figures are noted with each step, and pruned once an hour.
    most = {"modal_leases": 2, "streamers": 1, "admission_metrics": day + hour + 1}
    clock = ManualClock(NOW_MS)
    counts = []
    for step in range(day + 3 * hour):
        await clock.advance(step_ms)
        now_ms = clock.now_ms()
        await fresh_store.write(streamers.check_in, report(units=17), POLICY, now_ms)
        answers = [await ask(fresh_store, one, camera=step % 3, now_ms=now_ms) for one in house.people]
        mine = [(who, one) for who, one in zip(house.people, answers, strict=True) if isinstance(one, Admitted)]
        assert len(mine) == 2, "what earlier ones held is free again"
        # One is given back, the other is heard of once more and then never again.
        (leaver, left), (stayer, stayed) = mine
        assert await fresh_store.as_(leaver).write(viewings.release, left.lease_id)
        await beat(fresh_store, stayer, stayed.lease_id, now_ms + 30_000)
        if step % hour == hour - 1:
            await fresh_store.write(viewings.forget_over, now_ms)
            await fresh_store.write(streamers.prune, now_ms)
        counts.append({name: await fresh_store.read(count_rows, name) for name in most})
        assert all(counts[-1][name] <= most[name] for name in most), counts[-1]
    assert counts[-1] == counts[-1 - hour], "after the first day nothing grows from hour to hour"
    await fresh_store.write(viewings.forget_over, clock.now_ms() + TTL_MS)
    assert await fresh_store.read(count_rows, "modal_leases") == 0


async def test_the_cleanup_deletes_what_is_over_and_nothing_else(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    old = await admitted(fresh_store, house.people[0])
    kept = await admitted(fresh_store, house.people[1], now_ms=NOW_MS + 10_000)
    assert await fresh_store.write(viewings.forget_over, NOW_MS + 46_000) == 1
    assert [one.lease_id for one in (await valid(fresh_store, NOW_MS + 46_000)).viewings] == [kept.lease_id]
    assert old.lease_id != kept.lease_id


async def test_what_was_measured_is_kept_for_a_day(fresh_store: Store) -> None:
    house = await furnish(fresh_store, units=17)
    await watched_by(fresh_store, list(house.people))
    for minute in range(1, 4):
        for second in range(0, 60, 5):
            at = NOW_MS + minute * 60_000 + second * 1000
            await fresh_store.write(streamers.check_in, report(units=17, load=Load(1.5, 2.5, 0)), POLICY, at)
    assert await fresh_store.read(count_rows, "admission_metrics") == 4, "one a minute"
    row = await fresh_store.read(_newest_metric)
    assert row == (0, 0, 1.5, 2.5, 3, 1), "the viewings are over by then; asked three times, refused once"
    day_ms = 24 * 3_600_000
    assert await fresh_store.write(streamers.prune, NOW_MS + 60_000 + day_ms) == 1
    assert await fresh_store.write(streamers.prune, NOW_MS + 2 * day_ms) == 3
    assert await fresh_store.read(count_rows, "streamers") == 1
    await fresh_store.write(streamers.prune, NOW_MS + 9 * day_ms)
    assert await fresh_store.read(count_rows, "streamers") == 0


async def _newest_metric(tx: Tx) -> tuple[object, ...]:
    row = await tx.one("SELECT * FROM admission_metrics ORDER BY metric_id DESC LIMIT 1")
    assert row is not None
    names = ("active_modals", "active_suggest", "cpu_percent", "memory_percent", "requests_total", "rejections_total")
    return tuple(row[name] for name in names)


# Many at once ----------------------------------------------------------------------------------------------------


async def test_requests_at_the_same_time_never_use_more_than_there_is(fresh_pair: tuple[Store, Store]) -> None:
    first, _ = fresh_pair
    house = await furnish(first, people=24, units=22)  # seven are left
    answers = await asyncio.gather(
        *(
            ask(
                fresh_pair[number % 2],
                person,
                camera=number % 3,
                quality=Quality.MAIN if number % 5 == 0 else Quality.SUB,
            )
            for number, person in enumerate(house.people)
        )
    )
    used = sum(one.units for one in answers if isinstance(one, Admitted))
    assert used == 7
    assert {one.refusal for one in answers if isinstance(one, NotAdmitted)} == {Refusal.OVER_CAPACITY}
    assert sum(units for _, _, units in await first.read(viewing_rows)) == used
    assert (await first.read(streamers.states, NOW_MS))[0].held


async def test_requests_that_are_decided_together_keep_the_budget_too(fresh_pair: tuple[Store, Store]) -> None:
    first, _ = fresh_pair
    house = await furnish(first, people=20, units=22)  # seven are left
    wish = Wish("cam_0", Quality.SUB, plays=frozenset({"h264"}))
    parts = [
        tuple(Request(person, wish, "", NOW_MS) for person in house.people[start : start + 5])
        for start in range(0, 20, 5)
    ]
    done = await asyncio.gather(
        *(fresh_pair[number % 2].write(admissions.admit_all, part, POLICY) for number, part in enumerate(parts))
    )
    answers = [one for part in done for one in part]
    assert len([one for one in answers if isinstance(one, Admitted)]) == 7
    assert await first.read(count_rows, "modal_leases") == 7
    twice = (Request(house.people[0], wish, "", NOW_MS + 50_000),) * 2
    await first.write(streamers.check_in, report(units=22), POLICY, NOW_MS + 50_000)
    now, again = await first.write(admissions.admit_all, twice, POLICY)
    assert isinstance(now, Admitted)
    assert isinstance(again, NotAdmitted)
    assert again.details["lease_id"] == now.lease_id


class Counted(Tx):
    """A transaction, and how many statements it took."""

    def __init__(self, tx: Tx) -> None:
        super().__init__()
        self.dialect = tx.dialect
        self._tx = tx
        self.statements = 0

    async def one(self, sql: str | Sql, **params: object) -> Row | None:
        self.statements += 1
        return await self._tx.one(sql, **params)

    async def all(self, sql: str | Sql, **params: object) -> Sequence[Row]:
        self.statements += 1
        return await self._tx.all(sql, **params)

    async def flat(self, kind: type[F], sql: str | Sql, **params: object) -> list[F]:
        self.statements += 1
        return await self._tx.flat(kind, sql, **params)

    async def values(self, sql: str | Sql, **params: object) -> tuple[Any, ...] | None:
        self.statements += 1
        return await self._tx.values(sql, **params)

    async def run(self, sql: str | Sql, **params: object) -> int:
        self.statements += 1
        return await self._tx.run(sql, **params)

    async def many(self, sql: str | Sql, rows: Sequence[Mapping[str, object]]) -> None:
        self.statements += 1
        await self._tx.many(sql, rows)


async def statements_for(tx: Tx, requests: tuple[Request, ...]) -> int:
    counted = Counted(tx)
    answers = await admissions.admit_all(counted, requests, POLICY)
    assert all(isinstance(one, Admitted) for one in answers)
    return counted.statements


async def test_however_many_are_decided_together_they_take_the_same_statements(fresh_store: Store) -> None:
    house = await furnish(fresh_store, people=13)
    wishes = [Wish(f"cam_{number % 3}", Quality.SUB, plays=frozenset({"h264"})) for number in range(13)]
    requests = [Request(person, wish, "", NOW_MS) for person, wish in zip(house.people, wishes, strict=True)]
    alone = await fresh_store.write(statements_for, tuple(requests[:1]))
    assert await fresh_store.write(statements_for, tuple(requests[1:])) == alone
    assert await fresh_store.read(count_rows, "modal_leases") == 13


async def test_heartbeats_and_releases_beside_admissions_keep_the_budget(fresh_pair: tuple[Store, Store]) -> None:
    """Half of the viewings are just over: some beat, some are released, others ask for their place."""
    first, second = fresh_pair
    house = await furnish(first, people=16, units=20)  # five are left
    held = [await ask(first, person) for person in house.people[:5]]
    over = NOW_MS + GRACE_MS + 1
    await first.write(streamers.check_in, report(units=20), POLICY, over)

    async def try_beat(number: int) -> None:
        one = held[number]
        assert isinstance(one, Admitted)
        try:
            # The clock of another process may be behind by a moment.
            await beat(second, house.people[number], one.lease_id, over - 1)
        except NotFound:
            return

    work = [try_beat(number) for number in range(5)]
    await asyncio.gather(*work, *(ask(first, person, camera=1, now_ms=over) for person in house.people[5:]))
    rows = await first.read(viewing_rows)
    assert len(rows) == 5


async def test_one_login_on_two_streamers_at_once_gets_one_viewing(fresh_pair: tuple[Store, Store]) -> None:
    first, second = fresh_pair
    house = await furnish(first)
    await first.write(streamers.check_in, report("streamer-2"), POLICY, NOW_MS)

    async def insist(store: Store, tried: str) -> object:
        for _ in range(3):
            try:
                return await ask(store, house.people[0], tried=frozenset({tried}))
            except Conflict:
                continue
        return None

    answers = await asyncio.gather(insist(first, "streamer-1"), insist(second, "streamer-2"))
    refused = [one for one in answers if isinstance(one, NotAdmitted)]
    assert [one.refusal for one in refused] == [Refusal.USER_ALREADY_HAS_MODAL]
    assert await first.read(count_rows, "modal_leases") == 1


# Streamers -------------------------------------------------------------------------------------------------------


async def test_a_streamer_that_is_silent_or_stopped_gets_no_viewings(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    late = await ask(fresh_store, house.people[0], now_ms=NOW_MS + 15_001)
    assert late == NotAdmitted(Refusal.NO_STREAMER)
    await admitted(fresh_store, house.people[0], now_ms=NOW_MS + 15_000)
    await fresh_store.write(streamers.stopped, "streamer-1")
    assert await ask(fresh_store, house.people[1]) == NotAdmitted(Refusal.NO_STREAMER)
    assert await fresh_store.read(count_rows, "modal_leases") == 0
    assert await fresh_store.read(streamers.states, NOW_MS) == ()


async def test_viewers_of_a_camera_are_put_together_and_others_where_there_is_room(fresh_store: Store) -> None:
    house = await furnish(fresh_store, people=4)
    await fresh_store.write(streamers.check_in, report("streamer-2"), POLICY, NOW_MS)
    places = [
        (await admitted(fresh_store, person, camera)).streamer_id
        for person, camera in zip(house.people, (0, 1, 0, 1), strict=True)
    ]
    assert places == ["streamer-1", "streamer-2", "streamer-1", "streamer-2"]
    await fresh_store.write(streamers.check_in, report("streamer-1", load=Load(99, 0, 0)), POLICY, NOW_MS)
    someone = await fresh_store.write(sign_in, house.tenant_id, "one-more")
    assert (await admitted(fresh_store, someone, 0)).streamer_id == "streamer-2", "the other one is overloaded"


async def test_a_report_without_news_writes_nothing(fresh_store: Store) -> None:
    await furnish(fresh_store)
    await fresh_store.write(streamers.check_in, report(load=None), POLICY, NOW_MS + 9_000)
    [state] = await fresh_store.read(streamers.states, NOW_MS + 15_001)
    assert not state.available
    await fresh_store.write(streamers.check_in, replace(report(load=None), port=9), POLICY, NOW_MS + 16_000)
    [state] = await fresh_store.read(streamers.states, NOW_MS + 16_000)
    assert (state.available, state.load) == (True, CALM)


# Cameras ---------------------------------------------------------------------------------------------------------


async def test_only_cameras_in_reach_are_watched(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    narrow = replace(house.people[0], site_ids=frozenset(), camera_keys=frozenset({house.cameras[1]}))
    with pytest.raises(NotFound):
        await ask(fresh_store, narrow, camera=0)
    assert isinstance(await ask(fresh_store, narrow, camera=1), Admitted)
    with pytest.raises(NotFound):
        await ask(fresh_store, Principal(house.tenant_id + 1, None, Role.SYSTEM_ADMIN), camera=0)


@pytest.mark.parametrize("column", ["enabled = 0", "do_not_process = 1"])
async def test_a_camera_that_is_off_is_not_watched(fresh_store: Store, column: str) -> None:
    house = await furnish(fresh_store)
    one = await admitted(fresh_store, house.people[0])
    await fresh_store.write(statement, f"UPDATE cameras SET {column}", {})
    assert await ask(fresh_store, house.people[1]) == NotAdmitted(Refusal.CAMERA_OFF)
    assert (await valid(fresh_store, NOW_MS, (one.lease_id,))).gone == ((one.lease_id, "camera_gone"),)


async def test_what_a_probe_found_decides_what_is_shown(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    caps = json.dumps({"main": {"codec": "hevc"}, "sub": {"codec": "h264"}})
    await fresh_store.write(statement, "UPDATE cameras SET caps = :caps", {"caps": caps})
    answer = await ask(fresh_store, house.people[0], quality=Quality.MAIN)
    assert isinstance(answer, Admitted)
    assert (answer.quality, answer.units, answer.note) == (Quality.SUB, 1, Note.OTHER_CODEC)


async def test_a_privacy_mask_costs_a_transcode_once(fresh_store: Store) -> None:
    house = await furnish(fresh_store, people=4, units=21)  # six are left: 4 for the first, 1 for each further one
    await fresh_store.write(
        statement,
        "INSERT INTO camera_overrides (camera_key, tenant_id, privacy_masks, updated_at) "
        "SELECT camera_key, tenant_id, '[[[0, 0], [1, 0], [1, 1]]]', 1 FROM cameras",
        {},
    )
    answers = [await ask(fresh_store, person) for person in house.people]
    assert [isinstance(one, Admitted) for one in answers] == [True, True, True, False]
    assert isinstance(answers[0], Admitted)
    assert (answers[0].transcode, answers[0].note) == (True, Note.TRANSCODED_MASK)
    assert [one.units for one in answers if isinstance(one, Admitted)] == [4, 1, 1], "what each of them added"


async def test_a_transcode_that_proves_necessary_later_is_charged_or_refused(fresh_store: Store) -> None:
    house = await furnish(fresh_store, units=19)  # four are left
    one = await ask(fresh_store, house.people[0], quality=Quality.MAIN)
    assert isinstance(one, Admitted)

    async def charge() -> bool:
        camera_key = house.cameras[0]
        return await fresh_store.write(
            viewings.charge_transcode, "streamer-1", camera_key, Quality.MAIN, POLICY, NOW_MS
        )

    assert await charge()
    assert await charge(), "once"
    assert (await valid(fresh_store)).viewings[0].transcode
    assert isinstance(await ask(fresh_store, house.people[1]), NotAdmitted)
    await fresh_store.as_(house.people[0]).write(viewings.release, one.lease_id)
    assert not await charge(), "nobody watches it"
    for person, camera, quality in zip(
        house.people, (0, 1, 2), (Quality.MAIN, Quality.SUB, Quality.SUB), strict=True
    ):
        assert isinstance(await ask(fresh_store, person, camera, quality), Admitted)
    assert not await charge(), "two units more than there are"


async def test_what_each_viewing_takes_is_what_is_in_use(fresh_store: Store) -> None:
    house = await furnish(fresh_store, units=50)
    for person in house.people[:2]:
        assert isinstance(await ask(fresh_store, person, quality=Quality.MAIN), Admitted)

    async def taken() -> list[int]:
        found = await valid(fresh_store)
        costs = viewings.costs_now(found.viewings)
        in_order = sorted(found.viewings, key=lambda one: (one.created_at, one.lease_id))
        held, _ = await fresh_store.read(streamers.held_on, "streamer-1")
        assert sum(costs.values()) == used(held, Kind.MODAL)
        return [costs[one.lease_id] for one in in_order]

    assert await taken() == [2, 2]
    key, quality = house.cameras[0], Quality.MAIN
    assert await fresh_store.write(viewings.charge_transcode, "streamer-1", key, quality, POLICY, NOW_MS)
    assert await taken() == [4, 2], "the first who watches pays for all"
    first = min((await valid(fresh_store)).viewings, key=lambda one: (one.created_at, one.lease_id))
    payer = next(person for person in house.people if viewer_of(person) == first.user_id)
    await fresh_store.as_(payer).write(viewings.release, first.lease_id)
    assert await taken() == [4], "and then the next one"


# Logins ----------------------------------------------------------------------------------------------------------


async def end_session(tx: Tx, house: House) -> None:
    await tx.run("DELETE FROM sessions WHERE session_id = :one", one=house.people[0].session_id)


async def disable(tx: Tx, house: House) -> None:
    await tx.run("UPDATE users SET disabled = 1 WHERE user_id = :one", one=house.people[0].user_id)


async def take_grants(tx: Tx, house: House) -> None:
    await tx.run("UPDATE users SET granted_only = 1 WHERE user_id = :one", one=house.people[0].user_id)


async def remove_camera(tx: Tx, house: House) -> None:
    await tx.run("UPDATE cameras SET deleted_at = 1 WHERE camera_key = :one", one=house.cameras[0])


@pytest.mark.parametrize("by", ["site", "camera"])
async def test_a_viewing_lasts_for_as_long_as_a_grant_reaches_its_camera(fresh_store: Store, by: str) -> None:
    house = await furnish(fresh_store)
    watcher = house.people[0]
    one = await admitted(fresh_store, watcher)
    await fresh_store.write(take_grants, house)
    await fresh_store.write(grant, house, by)
    assert [found.lease_id for found in (await valid(fresh_store)).viewings] == [one.lease_id]
    held = replace(watcher, site_ids=frozenset(), camera_keys=frozenset({house.cameras[0]}))
    assert await beat(fresh_store, held, one.lease_id, NOW_MS) == TTL_MS
    # Another camera instead: neither the streamer nor a heartbeat waits for the cleanup.
    await fresh_store.write(grant, house, "another")
    assert (await valid(fresh_store, NOW_MS, (one.lease_id,))).gone == ((one.lease_id, "camera_gone"),)
    with pytest.raises(NotFound, match="over"):
        await beat(fresh_store, replace(held, camera_keys=frozenset({house.cameras[1]})), one.lease_id, NOW_MS)


async def grant(tx: Tx, house: House, by: str) -> None:
    await tx.run("DELETE FROM grants")
    what = "c.site_id, NULL" if by == "site" else "NULL, c.camera_key"
    await tx.run(
        f"INSERT INTO grants (tenant_id, user_id, site_id, camera_key) SELECT c.tenant_id, :user_id, {what} "
        "FROM cameras c WHERE c.camera_key = :camera_key",
        user_id=house.people[0].user_id,
        camera_key=house.cameras[1 if by == "another" else 0],
    )


async def test_a_viewing_ends_when_its_camera_is_moved_out_of_reach(fresh_store: Store) -> None:
    house = await furnish(fresh_store)
    watcher = house.people[0]
    one = await admitted(fresh_store, watcher)
    await fresh_store.write(take_grants, house)
    await fresh_store.write(grant, house, "site")
    held = replace(watcher, site_ids=frozenset({house.site_id}))
    assert await beat(fresh_store, held, one.lease_id, NOW_MS) == TTL_MS
    assert await fresh_store.as_(held).read(viewings.count_modals, NOW_MS) == 1
    annex_id = await fresh_store.write(add_site, house.tenant_id, "annex", NOW_MS)
    move = "UPDATE cameras SET site_id = :site_id WHERE camera_key = :camera_key"
    await fresh_store.write(statement, move, {"site_id": annex_id, "camera_key": house.cameras[0]})
    assert (await valid(fresh_store, NOW_MS, (one.lease_id,))).gone == ((one.lease_id, "camera_gone"),)
    assert await fresh_store.read(viewings.not_allowed, "", NOW_MS) == ((one.lease_id,), "")
    assert await fresh_store.as_(held).read(viewings.count_modals, NOW_MS) == 0
    with pytest.raises(NotFound, match="over"):
        await beat(fresh_store, held, one.lease_id, NOW_MS)


@pytest.mark.parametrize("what", [end_session, disable, take_grants, remove_camera])
async def test_a_viewing_ends_with_what_allowed_it(fresh_store: Store, what: object) -> None:
    house = await furnish(fresh_store)
    one = await admitted(fresh_store, house.people[0])
    await admitted(fresh_store, house.people[1], camera=1)
    assert await fresh_store.read(viewings.not_allowed, "", NOW_MS) == ((), "")
    await fresh_store.write(what, house)  # type: ignore[arg-type]  # an operation
    gone, after = await fresh_store.read(viewings.not_allowed, "", NOW_MS)
    assert (gone, after) == ((one.lease_id,), "")
    reason = "session_over" if what in (end_session, disable) else "camera_gone"
    assert (await valid(fresh_store, NOW_MS, (one.lease_id,))).gone == ((one.lease_id, reason),)
    assert await fresh_store.write(viewings.forget, gone) == 1
    assert len((await valid(fresh_store)).viewings) == 1
