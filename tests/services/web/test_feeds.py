"""Tails and readers of the change feed, without sockets."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from camserver.base.errors import Bug, Retry, StoreUnavailable, Unavailable
from camserver.domain.people import Principal, Role
from camserver.services.web import feeds
from camserver.services.web.feeds import Changes, End, Feeds, News, Ping, Reader, Resync
from camserver.services.web.following import converse
from camserver.store import Scoped, Store, Tx, changes, feed, tenants
from camserver.store.feed import Item
from tests.rig.clock import ManualClock
from tests.rig.polling import until
from tests.store.people_rows import NOW_MS, prepare

TIMEOUT_SEC = 60


def item(seq: int, site_id: int | None = None) -> Item:
    return Item(seq, "event", NOW_MS, site_id, None, None, f"e{seq}")


def reader(site_ids: frozenset[int] | None = None) -> Reader:
    return Reader(Principal(1, 1, Role.VIEWER, site_ids), 0)


async def taken(what: Reader) -> News:
    return await asyncio.wait_for(what.next(), TIMEOUT_SEC)


async def note(tx: Tx, tenant_id: int, count: int = 1, site_id: int | None = None) -> None:
    for _ in range(count):
        tx.changed(tenant_id=tenant_id, kind="look", at_ms=NOW_MS, site_id=site_id)


# --- readers ---


async def test_a_reader_gets_each_change_once_and_in_order() -> None:
    one = reader()
    one.start_at(2)
    one.offer([item(2), item(3)], 3, 0)
    one.offer([item(3), item(4)], 4, 0)
    assert await taken(one) == Changes((item(3), item(4)), 4)


async def test_what_came_while_catching_up_is_not_told_twice() -> None:
    one = reader()
    one.offer([item(5), item(6), item(7)], 7, 0)
    one.start_at(6)
    assert await taken(one) == Changes((item(7),), 7)


async def test_changes_of_other_sites_move_the_cursor_only() -> None:
    one = reader(frozenset({7}))
    one.offer([item(1, 7), item(2, 8), item(3), item(4, 8)], 4, 0)
    assert await taken(one) == Changes((item(1, 7), item(3)), 4)


async def test_many_changes_are_several_messages_whose_cursor_is_never_ahead() -> None:
    one = reader()
    count = feeds.MESSAGE_CHANGES_MAX + 1
    one.offer([item(seq) for seq in range(1, count + 1)], count + 5, 0)
    first, second = await taken(one), await taken(one)
    assert isinstance(first, Changes)
    assert isinstance(second, Changes)
    assert (len(first.items), first.last_seq) == (count - 1, count - 1)
    assert (len(second.items), second.last_seq) == (1, count + 5)


async def test_a_reader_that_is_too_slow_is_ended() -> None:
    one = reader()
    one.offer([item(seq) for seq in range(1, feeds.WAITING_MAX + 1)], feeds.WAITING_MAX, 0)
    assert one.end_code is None
    one.offer([item(feeds.WAITING_MAX + 1)], feeds.WAITING_MAX + 1, 0)
    assert one.end_code is End.TOO_SLOW
    assert one.ended.is_set()
    # The first reason counts.
    one.end(End.FAILED)
    assert one.end_code is End.TOO_SLOW


async def test_a_quiet_reader_is_pinged_and_a_busy_one_is_not() -> None:
    one = reader()
    one.start_at(4)
    one.ping_if_quiet(feeds.PING_MS - 1)
    one.ping_if_quiet(feeds.PING_MS)
    assert await taken(one) == Ping(4)
    one.offer([item(5)], 5, 2 * feeds.PING_MS)
    one.ping_if_quiet(3 * feeds.PING_MS - 1)
    assert await taken(one) == Changes((item(5),), 5)
    one.resync(9, 3 * feeds.PING_MS)
    assert await taken(one) == Resync(9)


class StuckLine:
    """A browser that reads nothing and says nothing."""

    async def tell(self, text: str, last_seq: int) -> bool:
        await asyncio.Event().wait()
        raise AssertionError("never woken")

    async def hear(self) -> int | None:
        await asyncio.Event().wait()
        raise AssertionError("never woken")


class TailAt:
    async def position(self) -> int:
        return 3


async def test_a_line_that_is_stuck_in_telling_is_ended_with_a_code() -> None:
    one = reader()
    conversation = asyncio.create_task(converse(StuckLine(), cast(Any, None), cast(Any, TailAt()), one, None))
    one.end(End.TOO_SLOW)
    assert await asyncio.wait_for(conversation, TIMEOUT_SEC) == 4008


# --- tails ---


@pytest.fixture
async def following(store: Store, clock: ManualClock) -> AsyncIterator[Feeds]:
    made = Feeds(store, clock)
    yield made
    await made.close()


async def next_of(clock: ManualClock, one: Reader) -> News:
    """The next thing that is no ping; moves the clock until it comes."""
    while True:
        taking = asyncio.create_task(one.next())
        async with asyncio.timeout(TIMEOUT_SEC):
            while not taking.done():
                await clock.advance(200)
                await asyncio.wait([taking], timeout=0.01)
        found = taking.result()
        if not isinstance(found, Ping):
            return found


async def test_only_what_happens_from_now_on_is_told(store: Store, clock: ManualClock, following: Feeds) -> None:
    home = await prepare(store)
    other = await store.write(tenants.ensure, "other", NOW_MS)
    await store.write(note, home.tenant_id, 3)
    who = Principal(home.tenant_id, None, Role.VIEWER)
    async with following.join(who) as (tail, one):
        start = await asyncio.wait_for(tail.position(), TIMEOUT_SEC)
        one.start_at(start)
        await store.write(note, other)
        await store.write(note, home.tenant_id, 2)
        told: list[int] = []
        while len(told) < 2:
            found = await next_of(clock, one)
            assert isinstance(found, Changes)
            told += [change.seq for change in found.items]
    assert (start, told) == (3, [4, 5])


async def test_a_tail_that_was_overtaken_by_pruning_asks_for_a_resync(
    store: Store, clock: ManualClock, following: Feeds
) -> None:
    home = await prepare(store)
    async with following.join(Principal(home.tenant_id, None, Role.VIEWER)) as (tail, one):
        await asyncio.wait_for(tail.position(), TIMEOUT_SEC)
        await store.write(prune_after_two, home.tenant_id)
        assert await next_of(clock, one) == Resync(2)
        await store.write(note, home.tenant_id)
        assert await next_of(clock, one) == Changes((Item(3, "look", NOW_MS, None, None, None, None),), 3)


async def prune_after_two(tx: Tx, tenant_id: int) -> None:
    """Two changes of which only the number is left, in one transaction."""
    await tx.run("UPDATE change_counters SET last_seq = 2 WHERE tenant_id = :tenant_id", tenant_id=tenant_id)


async def test_all_readers_of_a_tenant_share_one_poll_which_ends_with_the_last(
    sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = await prepare(sqlite_store)
    following = Feeds(sqlite_store, clock)
    polls = 0
    real = feed.after

    async def counted(tx: Scoped, seq: int, limit: int) -> feed.Page:
        nonlocal polls
        polls += 1
        return await real(tx, seq, limit)

    monkeypatch.setattr(feed, "after", counted)
    who = Principal(home.tenant_id, None, Role.VIEWER)
    async with following.join(who) as (tail, _), following.join(who) as (same, _), following.join(who):
        assert tail is same
        await tail.position()
        # One that polls, one that looks who is to be pinged.
        for expected in (1, 2, 3):
            await clock.until_sleeping(2)
            assert clock.sleeping == 2
            await clock.advance(200)
            await until(lambda expected=expected: polls == expected, "a poll")  # type: ignore[misc]  # bound by default
        await clock.until_sleeping(2)
    assert clock.sleeping == 0


async def test_a_store_that_is_away_is_waited_for(
    sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = await prepare(sqlite_store)
    following = Feeds(sqlite_store, clock)
    real, failures = feed.after, 3

    async def failing(tx: Scoped, seq: int, limit: int) -> feed.Page:
        nonlocal failures
        if failures:
            failures -= 1
            raise StoreUnavailable("away")
        return await real(tx, seq, limit)

    async with following.join(Principal(home.tenant_id, None, Role.VIEWER)) as (tail, one):
        await tail.position()
        monkeypatch.setattr(feed, "after", failing)
        await sqlite_store.write(note, home.tenant_id)
        found = await next_of(clock, one)
    assert (failures, isinstance(found, Changes)) == (0, True)
    assert issubclass(StoreUnavailable, Retry)


class NotedLine(StuckLine):
    """A browser that takes everything."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    async def tell(self, text: str, last_seq: int) -> bool:
        self.told.append(json.loads(text))
        return True


@pytest.mark.parametrize("after", [None, 2])
async def test_whoever_comes_while_the_store_is_away_is_pinged_until_it_is_back(
    sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, after: int | None
) -> None:
    home = await prepare(sqlite_store)
    await sqlite_store.write(note, home.tenant_id, 3)
    following, line, is_away, real = Feeds(sqlite_store, clock), NotedLine(), True, feed.newest
    who = Principal(home.tenant_id, None, Role.VIEWER)
    call = cast(Any, SimpleNamespace(store=sqlite_store.as_(who)))

    async def newest(tx: Scoped) -> int:
        if is_away:
            raise StoreUnavailable("away")
        return await real(tx)

    async def clock_until(count: int) -> None:
        async with asyncio.timeout(TIMEOUT_SEC):
            while len(line.told) < count:
                await clock.advance(200)
                await asyncio.sleep(0.01)

    monkeypatch.setattr(feed, "newest", newest)
    async with following.join(who) as (tail, one):
        conversation = asyncio.create_task(converse(line, call, tail, one, after))
        await clock_until(2)
        assert line.told == [{"type": "ping", "last_seq": after or 0}] * 2
        is_away = False
        await clock_until(3)
        [*_, first] = line.told
        assert (first["type"], first["last_seq"], first["live"]) == ("changes", 3, False)
        assert [change["seq"] for change in first["changes"]] == ([] if after is None else [3])
        one.end(End.SESSION_OVER)
        assert await asyncio.wait_for(conversation, TIMEOUT_SEC) == End.SESSION_OVER


class HangingStore:
    """One that answers nothing for a while, as when its machine hangs."""

    def __init__(self, store: Any, goes_on: asyncio.Event) -> None:
        self._store = store
        self._goes_on = goes_on

    def as_(self, principal: Principal) -> "HangingStore":
        return HangingStore(self._store.as_(principal), self._goes_on)

    async def read(self, *asked: Any) -> Any:
        await self._goes_on.wait()
        return await self._store.read(*asked)


async def test_a_store_that_hangs_keeps_nobody_from_being_pinged(sqlite_store: Store, clock: ManualClock) -> None:
    home = await prepare(sqlite_store)
    await sqlite_store.write(note, home.tenant_id, 3)
    goes_on = asyncio.Event()
    goes_on.set()
    store = HangingStore(sqlite_store, goes_on)
    following, here, late = Feeds(cast(Any, store), clock), NotedLine(), NotedLine()
    who = Principal(home.tenant_id, None, Role.VIEWER)
    call = cast(Any, SimpleNamespace(store=store.as_(who)))

    async def clock_until(line: NotedLine, count: int) -> None:
        async with asyncio.timeout(TIMEOUT_SEC):
            while len(line.told) < count:
                await clock.advance(200)
                await asyncio.sleep(0.01)

    async with following.join(who) as (tail, one), following.join(who) as (_, other):
        conversations = [asyncio.create_task(converse(here, call, tail, one, 3))]
        await clock_until(here, 1)
        goes_on.clear()
        conversations.append(asyncio.create_task(converse(late, call, tail, other, 2)))
        await clock_until(here, 3)
        await clock_until(late, 2)
        assert here.told[1:] == [{"type": "ping", "last_seq": 3}] * 2
        assert late.told[:2] == [{"type": "ping", "last_seq": 2}] * 2
        goes_on.set()
        while late.told[-1]["type"] == "ping":
            await clock_until(late, len(late.told) + 1)
        assert [change["seq"] for change in late.told[-1]["changes"]] == [3]
        for reader_of in (one, other):
            reader_of.end(End.SESSION_OVER)
        assert await asyncio.wait_for(asyncio.gather(*conversations), TIMEOUT_SEC) == [End.SESSION_OVER] * 2


async def test_a_tail_that_breaks_ends_its_readers_and_is_replaced(
    sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = await prepare(sqlite_store)
    following = Feeds(sqlite_store, clock)
    who = Principal(home.tenant_id, None, Role.VIEWER)

    async def broken(*_: object) -> changes.Page:
        raise Bug("broken")

    async with following.join(who) as (tail, one):
        await tail.position()
        with monkeypatch.context() as patch:
            patch.setattr(feed, "after", broken)
            async with asyncio.timeout(TIMEOUT_SEC):
                while not one.ended.is_set():
                    await clock.advance(200)
                    await asyncio.sleep(0.01)
        assert one.end_code is End.FAILED
        async with following.join(who) as (second, other):
            assert second is not tail
            await second.position()
            await sqlite_store.write(note, home.tenant_id)
            assert isinstance(await next_of(clock, other), Changes)


async def test_there_is_room_for_so_many(
    sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = await prepare(sqlite_store)
    following = Feeds(sqlite_store, clock)
    monkeypatch.setattr(feeds, "READERS_MAX", 3)
    monkeypatch.setattr(feeds, "READERS_PER_SESSION_MAX", 2)
    first, second, third = (Principal(home.tenant_id, 1, Role.VIEWER, session_id=number) for number in (1, 2, 3))
    async with following.join(first), following.join(first):
        with pytest.raises(Unavailable):
            following.require_room(first)
        async with following.join(second):
            with pytest.raises(Unavailable):
                following.require_room(third)
        following.require_room(third)
    following.require_room(first)


@pytest.mark.parametrize(
    "first",
    [
        Principal(1, 1, Role.VIEWER, token_id=1),
        Principal(1, 1, Role.VIEWER, session_id=1),
        Principal(1, None, Role.SYSTEM_ADMIN),
    ],
    ids=["a token", "a sign-in", "the local admin token"],
)
async def test_nobody_takes_the_places_of_others(
    first: Principal, sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await prepare(sqlite_store)
    following = Feeds(sqlite_store, clock)
    monkeypatch.setattr(feeds, "READERS_PER_PERSON_MAX", 2)
    # Other sign-ins and tokens of the same person are no more places.
    same = replace(first, token_id=2, session_id=None) if first.user_id is not None else first
    async with following.join(first), following.join(same):
        for one in (first, same):
            with pytest.raises(Unavailable) as caught:
                following.require_room(one)
            assert caught.value.details["reason"] == "feed_full_of_yours"
        for other in (
            Principal(1, 2, Role.VIEWER, token_id=3),
            Principal(2, 1, Role.VIEWER),
            Principal(2, None, first.role),
        ):
            following.require_room(other)
    following.require_room(first)


async def test_a_session_that_is_over_is_noticed_without_any_change(sqlite_store: Store, clock: ManualClock) -> None:
    home = await prepare(sqlite_store)
    following = Feeds(sqlite_store, clock)
    async with following.join(Principal(home.tenant_id, 1, Role.VIEWER, session_id=77)) as (tail, one):
        await tail.position()
        async with asyncio.timeout(TIMEOUT_SEC):
            while not one.ended.is_set():
                await clock.advance(200)
                await asyncio.sleep(0.01)
    assert one.end_code is End.SESSION_OVER
