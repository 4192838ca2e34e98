"""Messages that are read, reserved and ended together: whatever fails, each is told and counted as if alone."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from camserver.store import notice_facts
from camserver.store.notice_facts import Asked
from tests.fakes.analyzer import Seen
from tests.fakes.webhook import Act, FakeWebhook
from tests.services.dispatcher.stage import Stage
from tests.services.dispatcher.test_faults import Countdown, FailingStore, rounds_of
from tests.services.dispatcher.test_outbox import add_webhook

UNKNOWN = Seen("unknown", ("reason.unknown_activity",), confidence=0.4)
CAMERAS = 3
# Past every cooldown, so that each round's looks are events of their own.
ROUND_SEC = 700
STEP_SEC = 10
# Operations of the store, and how many calls of each are let through before one fails.
STEPS = (
    *(("tellings", 0), ("tellings", 1)),
    *(("reserve_each", 0), ("reserve_each", 1)),
    *(("settle", 0), ("settle", 1), ("settle", 2)),
)


@pytest.fixture
async def hooks(stage: Stage) -> AsyncIterator[tuple[FakeWebhook, FakeWebhook]]:
    """Two receivers of a stage that may have them on this machine."""
    stage.settings = replace(stage.settings, deliveries=replace(stage.settings.deliveries, allow_loopback=True))
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(FakeWebhook(key="0123456789abcdef"))
        second = await stack.enter_async_context(FakeWebhook(key="0123456789abcdef"))
        for name, hook in (("first", first), ("second", second)):
            await add_webhook(stage, hook, name)
        yield first, second


async def look_everywhere(stage: Stage, told: int) -> None:
    """Something is seen by each camera, and all that follows is done: so many messages altogether."""

    async def is_over() -> bool:
        waiting = await stage.rows("SELECT 1 AS one FROM deliveries WHERE status IN ('queued','delayed','running')")
        found = await stage.rows("SELECT status FROM deliveries WHERE kind = 'message'")
        return not waiting and len(found) == told

    for camera in range(CAMERAS):
        await stage.look(camera, UNKNOWN, full_bytes=None)
    await stage.pass_time_until_found(is_over, f"{told} messages are told", STEP_SEC)
    await stage.leap(ROUND_SEC)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
async def test_any_call_of_the_store_may_fail_while_many_are_told(
    stage: Stage, hooks: tuple[FakeWebhook, FakeWebhook], is_done: bool
) -> None:
    countdown = Countdown()
    each = rounds_of(STEPS)
    async with stage.dispatcher(FailingStore(stage.store, countdown, is_done)):
        for number, steps in enumerate(each, 1):
            countdown.arm(*steps)
            # What is sent in vain is given up together with what is sent.
            hooks[0].acts.append(Act(503))
            await look_everywhere(stage, number * CAMERAS * len(hooks))
    rounds = len(each)
    assert set(countdown.struck) == {name for name, _ in STEPS}
    statuses = await stage.rows("SELECT DISTINCT kind, status FROM deliveries ORDER BY kind")
    assert [(row["kind"], row["status"]) for row in statuses] == [("message", "done"), ("notify", "done")]
    for hook in hooks:
        assert len(hook.distinct) == rounds * CAMERAS
    # Nothing is remembered twice, every hour's count is what was told in it, and no reservation is left behind.
    assert len(await stage.rows("SELECT delivery_id FROM notifications")) == rounds * CAMERAS * len(hooks)
    sent = await stage.rows("SELECT receiver_id, SUM(sent) AS sent FROM receiver_hours GROUP BY receiver_id")
    assert [int(row["sent"]) for row in sent] == [rounds * CAMERAS] * len(hooks)
    assert not await stage.rows("SELECT * FROM cooldowns WHERE scope = '~' AND until <> 0")


async def test_what_is_read_together_is_what_each_would_read(
    stage: Stage, hooks: tuple[FakeWebhook, FakeWebhook]
) -> None:
    async with stage.dispatcher():
        await look_everywhere(stage, CAMERAS * len(hooks))
    tenant_id, now_ms = stage.scene.tenant_id, stage.clock.now_ms()
    events = await stage.rows("SELECT event_id, best_frame_id FROM events ORDER BY event_id")
    receiver_ids = [row["receiver_id"] for row in await stage.rows("SELECT receiver_id FROM receivers")]
    asked = (
        *(Asked(tenant_id, row["event_id"], row["best_frame_id"], receiver_ids[0]) for row in events),
        *(Asked(tenant_id, row["event_id"], None, receiver_ids[1]) for row in events),
        Asked(tenant_id, events[0]["event_id"]),
        Asked(tenant_id, events[0]["event_id"], events[1]["best_frame_id"], receiver_ids[0]),
        Asked(tenant_id, events[0]["event_id"], 999_999, 999_999),
        Asked(tenant_id, 999_999),
        Asked(tenant_id + 1, events[0]["event_id"]),
    )
    together = await stage.store.read(notice_facts.tellings, asked, now_ms)
    one_by_one = [
        await stage.store.read(
            notice_facts.telling, one.tenant_id, one.event_id, one.frame_id, one.receiver_id, now_ms
        )
        for one in asked
    ]
    assert list(together) == one_by_one
    assert [one is None for one in together] == [False] * (2 * CAMERAS + 3) + [True, True]
    found = [one for one in together if one is not None]
    assert [one.event.camera_key for one in found[:CAMERAS]] == list(stage.scene.camera_keys)
    assert [len(one.recipients) for one in found] == [1] * 2 * CAMERAS + [2, 1, 0]
    assert await stage.store.read(notice_facts.tellings, (), now_ms) == ()
