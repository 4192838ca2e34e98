"""The delivery loop: nobody waits for a receiver that is slow or away, and everything ends as it should."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from camserver.base.errors import StoreUnavailable
from camserver.base.secrets import Secret
from camserver.domain.deliveries import (
    Claimed,
    DeliveryError,
    Done,
    Ending,
    Later,
    ReceiverKind,
    Suppressed,
    Trouble,
)
from camserver.domain.facts import DeliveryKind
from camserver.services.dispatcher.delivery_desk import AHEAD, DeliveryDesk
from camserver.services.dispatcher.receivers import ReceiverBook
from camserver.store import Store, deliveries, delivery_pages, receivers, tenants
from camserver.store.deliveries import Wanted
from tests.fakes.webhook import Act, FakeWebhook
from tests.rig.polling import until
from tests.services.dispatcher.delivery_stage import KEY, DeliveryStage
from tests.store.stage import statement

ON_SQLITE = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)


@pytest.fixture
async def stage(store: Store) -> DeliveryStage:
    return await DeliveryStage.open(store)


async def test_a_notice_reaches_every_receiver_once(stage: DeliveryStage) -> None:
    async with FakeWebhook(key="0123456789abcdef") as first, FakeWebhook() as second:
        for hook in (first, second):
            await stage.receiver(hook, hook.url)
        await stage.notices(10)
        async with stage.desk() as desk:
            await stage.until(done=30)
            # Counted once the desk has heard that they are written.
            await until(lambda: desk.counters.done == 30, "all thirty are counted")
        for hook in (first, second):
            assert sorted(one.body["n"] for one in hook.received) == list(range(10))
            assert len(hook.distinct) == 10
        assert {one.signed for one in first.received} == {True}
        assert first.distinct | second.distinct == {row["delivery_uuid"] for row in await stage.messages()}
        told = await stage.rows("SELECT last_ok_at, last_error FROM receivers")
        assert told == [{"last_ok_at": stage.clock.now_ms(), "last_error": None}] * 2


async def test_a_slow_receiver_holds_up_nobody(stage: DeliveryStage) -> None:
    gate = asyncio.Event()
    async with FakeWebhook(always=Act(held=gate)) as slow, FakeWebhook() as quick:
        await stage.receiver(slow, "slow")
        await stage.receiver(quick, "quick")
        await stage.notices(40)
        async with stage.desk():
            await until(lambda: len(quick.distinct) == 40, "the quick one has everything")
            assert slow.received == []
            await until(lambda: slow.asked == stage.policy.receiver_in_flight, "the slow one has its share")
            gate.set()
            await stage.until(done=120)
        assert slow.most_at_once <= stage.policy.receiver_in_flight
        assert len(slow.distinct) == 40


@ON_SQLITE
async def test_a_claim_without_room_for_a_lane_says_nothing_about_it(stage: DeliveryStage) -> None:
    """It would stand still until somebody looks at the queue again, though all of its places are free."""
    gate = asyncio.Event()
    count = 3 * AHEAD
    async with FakeWebhook(always=Act(held=gate)) as hook:
        await stage.receiver(hook)
        await stage.notices(count)
        async with stage.desk() as desk:
            held = AHEAD + stage.policy.receiver_in_flight
            await stage.until(done=count, running=held, queued=count - held)
            await stage.clock.some_turns()
            assert [lane.has_more for lane in desk.lanes.values() if isinstance(lane.key, int)] == [True]
            gate.set()
            await stage.until(done=2 * count)
        assert len(hook.distinct) == count


@ON_SQLITE
async def test_mail_servers_and_archives_get_fewer_at_once(stage: DeliveryStage) -> None:
    async with FakeWebhook() as hook:
        uuids = {kind: await stage.receiver(hook, kind.value) for kind in ReceiverKind}
    for kind, uuid in uuids.items():
        await stage.store.write(
            statement,
            "UPDATE receivers SET kind = :kind WHERE receiver_uuid = :uuid",
            {"kind": kind.value, "uuid": uuid},
        )
    rows = await stage.rows("SELECT receiver_id, receiver_uuid FROM receivers")
    keys = {row["receiver_uuid"]: row["receiver_id"] for row in rows}
    desk = DeliveryDesk(
        "desk", stage.store, stage.clock, stage.policy, ReceiverBook(stage.store, stage.clock, KEY), {}
    )
    await desk.book.refresh()
    heavy = {kind for kind, uuid in uuids.items() if desk.lane(claimed_for(keys[uuid])).most == 4}
    assert heavy == {ReceiverKind.EMAIL, ReceiverKind.FOLDER, ReceiverKind.S3, ReceiverKind.DRIVE}
    assert desk.lane(claimed_for(999)).most == stage.policy.receiver_in_flight


def claimed_for(receiver_id: int) -> Claimed:
    return Claimed(1, "u", "t", 1, None, None, DeliveryKind.MESSAGE, "r", None, None, None, receiver_id, None, 1, 0)


async def test_what_is_claimed_after_a_change_goes_to_the_receiver_as_it_is_now(stage: DeliveryStage) -> None:
    """The book was read before the change, and its next round is not waited for."""
    async with FakeWebhook() as old, FakeWebhook() as new:
        uuid = await stage.receiver(old)
        book = ReceiverBook(stage.store, stage.clock, KEY)
        await book.refresh()
        before = await tried(stage, uuid, "before")
        await stage.change(uuid, sealed=stage.sealed(new, uuid), name="renamed")
        after = await tried(stage, uuid, "after")
        for claimed in (after, before):  # what was claimed before is not made to wait for the old one
            found = await book.receiver_of(claimed)
            assert found is not None
            assert (found.name, found.secrets["url"]) == ("renamed", Secret(new.url))


async def test_a_delivery_never_goes_to_another_receiver_of_the_same_number(stage: DeliveryStage) -> None:
    async with FakeWebhook() as hook:
        uuid = await stage.receiver(hook)
        claimed = await tried(stage, uuid, "trial")
        book = ReceiverBook(stage.store, stage.clock, KEY)
        assert await book.receiver_of(claimed) is not None
        assert await book.receiver_of(replace(claimed, tenant_id=claimed.tenant_id + 1)) is None
        assert await book.receiver_of(replace(claimed, receiver_uuid="another")) is None
        assert await book.receiver_of(replace(claimed, receiver_id=999)) is None
        # Its number is given to somebody else while it is claimed.
        await stage.store.write(
            statement, "UPDATE receivers SET receiver_uuid = 'other', updated_at = updated_at + 1", {}
        )
        await book.refresh()
        assert await book.receiver_of(claimed) is None
        assert (await tried(stage, "other", "again")).receiver_uuid == "other"
        # A row of another tenant under that number is no receiver of this delivery from the claim on.
        await stage.store.as_(stage.owner).write(receivers.queue_trial, "other", "last", "", stage.clock.now_ms())
        stranger = await stage.store.write(tenants.ensure, "stranger", stage.clock.now_ms())
        await stage.store.write(statement, "UPDATE receivers SET tenant_id = :tenant_id", {"tenant_id": stranger})
        async with stage.desk():
            await stage.until(dead=1, running=2)
        assert hook.asked == 0


async def tried(stage: DeliveryStage, receiver_uuid: str, delivery_uuid: str) -> Claimed:
    """A trial of a receiver, claimed."""
    now_ms = stage.clock.now_ms()
    await stage.store.as_(stage.owner).write(receivers.queue_trial, receiver_uuid, delivery_uuid, "", now_ms)
    claim = await stage.store.write(deliveries.claim, "me", delivery_uuid, Wanted(1, (), 1), now_ms + 60_000)
    (claimed,) = claim.deliveries
    return claimed


@ON_SQLITE
async def test_an_outage_of_hours_loses_nothing_and_hammers_nobody(stage: DeliveryStage) -> None:
    async with FakeWebhook(always=Act(503)) as hook:
        await stage.receiver(hook)
        await stage.notices(60)
        async with stage.desk():
            for _ in range(4 * 60):
                await stage.clock.advance(60_000)
                await stage.clock.some_turns(4)
            assert hook.asked < 4 * 60, "less than once a minute, though sixty messages wait"
            hook.always = None
            await stage.until_over(step_sec=30)
        assert await stage.counts() == {"done": 120}
        assert len(hook.distinct) == 60


@ON_SQLITE
async def test_what_a_receiver_asks_for_is_granted(stage: DeliveryStage) -> None:
    async with FakeWebhook() as hook:
        hook.acts.append(Act(429, {"Retry-After": "120"}))
        await stage.receiver(hook)
        await stage.notices(1)
        async with stage.desk():
            await stage.until(done=1, delayed=1)
            (message,) = await stage.messages()
            assert message["available_at"] == stage.clock.now_ms() + 120_000
            assert message["attempt"] == 0, "refunded"
            await stage.clock.advance(119_000)
            await stage.clock.some_turns()
            assert hook.asked == 1
            await stage.clock.advance(1_000)
            await stage.until(done=2)
        assert len(hook.received) == 1


async def test_failures_count_until_it_is_dead_and_it_can_be_queued_again(stage: DeliveryStage) -> None:
    async with FakeWebhook(always=Act(500, body=b"out of order")) as hook:
        await stage.receiver(hook)
        await stage.notices(1)
        async with stage.desk():
            await stage.until_over(step_sec=600)
            (dead,) = await stage.messages()
            assert dead["status"] == "dead"
            assert dead["attempt"] == hook.asked == stage.policy.max_attempt
            assert "attempt 12 of 12" in dead["last_error"]
            assert "out of order" in dead["last_error"]
            hook.always = None
            await stage.store.as_(stage.owner).write(
                delivery_pages.requeue, dead["delivery_uuid"], "", stage.clock.now_ms()
            )
            await stage.until_over()
        assert hook.distinct == {dead["delivery_uuid"]}
        changes = await stage.rows("SELECT kind FROM changes WHERE kind = 'delivery'")
        assert len(changes) == 2, "that it died, and that it was queued again"


@ON_SQLITE
@pytest.mark.parametrize(("status", "reason"), [(400, "refused"), (410, "gone")])
async def test_what_stays_wrong_is_dead_at_once(stage: DeliveryStage, status: int, reason: str) -> None:
    async with FakeWebhook(always=Act(status)) as hook:
        await stage.receiver(hook)
        await stage.notices(1)
        async with stage.desk():
            await stage.until(done=1, dead=1)
        assert hook.asked == 1
        assert (await stage.messages())[0]["last_error"].startswith(f"{reason}: ")


@ON_SQLITE
async def test_after_a_day_it_is_given_up(stage: DeliveryStage) -> None:
    async with FakeWebhook(always=Act(503)) as hook:
        await stage.receiver(hook)
        await stage.notices(1)
        async with stage.desk():
            await stage.until(done=1, delayed=1)
            await stage.clock.advance(stage.policy.max_age_sec * 1000 + 1)
            await stage.until(done=1, dead=1)
        assert "tried for 86400 s" in (await stage.messages())[0]["last_error"]


@ON_SQLITE
async def test_receivers_that_are_off_removed_or_unreadable(stage: DeliveryStage) -> None:
    async with FakeWebhook() as hook:
        off = await stage.receiver(hook, "off")
        gone = await stage.receiver(hook, "gone")
        await stage.receiver(hook, "sealed with another key", key=bytes(32))
        await stage.notices(1)
        async with stage.desk() as desk:
            desk.handlers = {DeliveryKind.NOTIFY: desk.handlers[DeliveryKind.NOTIFY]}
            await stage.until(done=1, dead=3)
            await stage.change(off, enabled=False)
            await stage.store.as_(stage.owner).write(receivers.remove, gone, "", stage.clock.now_ms())
        await stage.rows("SELECT 1")
        await stage.store.write(_revive, stage.clock.now_ms())
        async with stage.desk():
            await stage.until(done=1, suppressed=1, dead=1, delayed=1)
            found = {row["status"]: row["last_error"] for row in await stage.messages()}
        assert found["suppressed"] == "the receiver is switched off"
        assert found["dead"] == "refused: the receiver was removed"
        assert "sealed with another key" in found["delayed"]
        assert hook.asked == 0


async def _revive(tx: Any, now_ms: int) -> None:
    await tx.run("UPDATE deliveries SET status = 'queued', attempt = 0 WHERE status = 'dead'")


@ON_SQLITE
async def test_a_receiver_of_a_kind_nobody_knows_freezes_nobody_else(stage: DeliveryStage) -> None:
    """A newer version may have added one; then this one goes on with what it knows, and says so."""
    async with FakeWebhook() as hook:
        unknown = await stage.receiver(hook, "unknown")
        await stage.store.write(statement, "UPDATE receivers SET kind = 'telegraph'", {})
        async with stage.desk() as desk:
            await stage.receiver(hook, "known")
            await stage.clock.advance(5_000)
            await stage.notices(1)
            await stage.until_over()
            assert [one.name for one in desk.book.everywhere] == ["known"]
            await desk.book.write_reports()
    (delivered,) = await stage.messages()
    assert delivered["status"] == "done"
    (told,) = await stage.rows("SELECT last_error FROM receivers WHERE receiver_uuid = :uuid", uuid=unknown)
    assert "can't be used by this version" in told["last_error"]


async def test_endings_of_every_kind(stage: DeliveryStage) -> None:
    """A fault of ours counts; a store that a handler finds away does not, nor blames it the receiver."""
    turns: dict[int, int] = {}

    async def handle(claimed: Claimed) -> Ending:
        number = int(claimed.request["n"])
        turns[number] = turns.get(number, 0) + 1
        if number == 0:
            return Suppressed("on purpose")
        if number == 1 and turns[number] == 1:
            return Later(stage.clock.now_ms() + 5_000, "not yet")
        if number == 2 and turns[number] == 1:
            raise ValueError("a fault of ours")
        if number == 3 and turns[number] == 1:
            raise StoreUnavailable("away")
        if number == 4 and turns[number] == 1:
            raise DeliveryError(Trouble.FAILED, "cut", progress={"sent": 3})
        return Done({"attempt": claimed.attempt, "before": dict(claimed.result)})

    await stage.notices(6)
    async with stage.desk(handlers={DeliveryKind.NOTIFY: handle}):
        await stage.until_over()
    rows = await stage.rows()
    assert [row["status"] for row in rows] == ["suppressed", *["done"] * 5]
    assert [row["attempt"] for row in rows] == [1, 1, 2, 1, 2, 1]
    assert '"sent": 3' in rows[4]["result"]


@ON_SQLITE
async def test_kinds_that_nobody_here_handles_wait(stage: DeliveryStage) -> None:
    await stage.notices(1, kind=DeliveryKind.LLM_REVIEW)
    async with stage.desk():
        await stage.clock.some_turns()
    assert await stage.counts() == {"queued": 1}


async def test_what_a_dead_dispatcher_held_is_done_by_another(stage: DeliveryStage) -> None:
    async with FakeWebhook() as hook:
        await stage.receiver(hook)
        await stage.notices(3)
        async with stage.desk():
            await stage.until(done=6)
        hook.received.clear()
        await stage.notices(2)
        wanted = Wanted(10, ((DeliveryKind.NOTIFY, 10),), 10)
        until_ms = stage.clock.now_ms() + stage.policy.lock_sec * 1000
        held = await stage.store.write(deliveries.claim, "dead", "token", wanted, until_ms)
        assert len(held.deliveries) == 2
        async with stage.desk(name="other"):
            await stage.clock.some_turns()
            assert hook.received == []
            await stage.clock.advance(stage.policy.lock_sec * 1000 + 1)
            await stage.until_over()
        assert len(hook.distinct) == 2


async def test_two_dispatchers_share_the_work(stage: DeliveryStage) -> None:
    async with FakeWebhook() as first, FakeWebhook() as second:
        await stage.receiver(first, "first")
        await stage.receiver(second, "second")
        await stage.notices(60)
        async with stage.desk(name="a"), stage.desk(name="b"):
            await stage.until_over()
        assert await stage.counts() == {"done": 180}
        for hook in (first, second):
            assert len(hook.received) == len(hook.distinct) == 60


@ON_SQLITE
async def test_stopping_gives_back_what_was_claimed(stage: DeliveryStage) -> None:
    gate = asyncio.Event()
    async with FakeWebhook(always=Act(held=gate)) as hook:
        await stage.receiver(hook)
        count = 2 * stage.policy.receiver_in_flight
        await stage.notices(count)
        async with stage.desk():
            await until(lambda: hook.asked == stage.policy.receiver_in_flight, "its share is under way")
        assert await stage.counts() == {"done": count, "queued": count}
        assert {row["attempt"] for row in await stage.messages()} == {0}
        gate.set()


async def test_what_takes_long_keeps_its_claim(stage: DeliveryStage) -> None:
    gate = asyncio.Event()
    async with FakeWebhook(always=Act(held=gate)) as hook:
        await stage.receiver(hook)
        await stage.notices(6)
        async with stage.desk(name="a"), stage.desk(name="b"):
            await until(lambda: hook.asked >= 4, "some are under way")
            for _ in range(3 * stage.policy.lock_sec // stage.policy.renew_every_sec):
                await stage.clock.advance(stage.policy.renew_every_sec * 1000)
                await stage.clock.until_asleep()
            gate.set()
            await stage.until_over()
        assert len(hook.received) == len(hook.distinct) == 6, "nobody took over what was renewed"
        assert {row["attempt"] for row in await stage.messages()} == {1}


@ON_SQLITE
async def test_what_was_taken_from_us_is_dropped(stage: DeliveryStage) -> None:
    """As after a pause of the whole machine: others have it by now, and we learn of it with the next renewal."""
    dropped = asyncio.Event()

    async def handle(claimed: Claimed) -> Ending:
        try:
            await asyncio.Event().wait()
        finally:
            dropped.set()
        return Done()

    await stage.notices(1)
    async with stage.desk(handlers={DeliveryKind.NOTIFY: handle}) as desk:
        await until(lambda: bool(desk.at_work), "it is under way")
        await stage.store.write(_take_away, stage.clock.now_ms() + 10**9)
        await stage.clock.advance(stage.policy.renew_every_sec * 1000)
        await asyncio.wait_for(dropped.wait(), 60)
    (row,) = await stage.rows()
    assert (row["status"], row["locked_by"]) == ("running", "other")


async def _take_away(tx: Any, until_ms: int) -> None:
    await tx.run(
        "UPDATE deliveries SET locked_by = 'other', locked_token = 'theirs', locked_until = :until_ms",
        until_ms=until_ms,
    )


@ON_SQLITE
async def test_what_a_receiver_says_back_is_stored_without_our_secrets(stage: DeliveryStage) -> None:
    async with FakeWebhook(key="a-very-secret-signing-key") as hook:
        hook.always = Act(400, body=b"bad signature, expected a-very-secret-signing-key")
        await stage.receiver(hook)
        await stage.notices(1)
        async with stage.desk():
            await stage.until(done=1, dead=1)
        told = await stage.rows("SELECT last_error FROM receivers")
        for error in ((await stage.messages())[0]["last_error"], told[0]["last_error"]):
            assert "bad signature" in error
            assert "a-very-secret-signing-key" not in error
