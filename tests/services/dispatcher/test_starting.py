"""A dispatcher that starts knows its receivers before it decides anything: what it finds is told, and told once."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from camserver.base.errors import StoreUnavailable
from camserver.base.ready import Ready
from camserver.services.dispatcher import service
from camserver.store import Store
from tests.fakes.analyzer import Seen
from tests.fakes.webhook import FakeWebhook
from tests.rig.polling import until
from tests.services.dispatcher.stage import Stage, StoreProxy
from tests.services.dispatcher.test_faults import Countdown, FailingStore
from tests.services.dispatcher.test_health import FAILED
from tests.services.dispatcher.test_outbox import add_webhook
from tests.store.scenery import NOW_MS
from tests.store.stage import statement

R = TypeVar("R")
SEC = 1000
DANGER = Seen("human", ("count.single",), severity=2)


def struck_once(stage: Stage, operation: str) -> tuple[Store, Countdown]:
    countdown = Countdown()
    if operation:
        countdown.arm((operation, 0))
    return FailingStore(stage.store, countdown, is_done=False), countdown


async def until_told(stage: Stage) -> None:
    async def told() -> bool:
        found = await stage.rows("SELECT status FROM deliveries")
        return [row["status"] for row in found] == ["done", "done"]

    await stage.pass_time_until_found(told, "the notice and its message are done")


@pytest.fixture
def reachable(stage: Stage) -> Stage:
    stage.settings = replace(stage.settings, deliveries=replace(stage.settings.deliveries, allow_loopback=True))
    return stage


@pytest.mark.parametrize("fails", ["", "home", "version", "everywhere"])
async def test_a_camera_that_was_down_before_the_start_is_told_once(reachable: Stage, fails: str) -> None:
    stage = reachable
    lease = "UPDATE camera_sessions SET lease_expires_at = :until"
    await stage.store.write(statement, lease, {"until": NOW_MS + 86_400 * SEC})
    store, countdown = struck_once(stage, fails)
    async with FakeWebhook(key="0123456789abcdef") as hook:
        await add_webhook(stage, hook)
        for _ in range(3):
            await stage.look(0, **FAILED)
        await stage.clock.advance(120 * SEC)
        async with stage.dispatcher(store):
            await until_told(stage)
            await stage.pass_time(60, 10)
    assert countdown.struck == ([fails] if fails else [])
    (event,) = await stage.events()
    assert event["subject"] == "offline"
    (got,) = hook.received
    assert got.body["severity"] == 3


async def test_looks_that_waited_for_the_start_are_told(reachable: Stage) -> None:
    async with FakeWebhook(key="0123456789abcdef") as hook:
        await add_webhook(reachable, hook)
        await reachable.look(0, DANGER)
        async with reachable.dispatcher():
            await until_told(reachable)
    assert len(hook.received) == 1


class NoReceivers(StoreProxy):
    """Never says who receives what."""

    refused = 0

    async def around(self, name: str, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        if name == "version":
            self.refused += 1
            raise StoreUnavailable("cut off by the test")
        return await call()


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_one_that_waits_for_its_receivers_works_on_nothing_and_can_be_stopped(reachable: Stage) -> None:
    stage, ready = reachable, Ready()
    store = NoReceivers(stage.store)
    await stage.look(0, DANGER)
    task = asyncio.create_task(service.run(store, stage.objects, stage.clock, stage.settings, ready))
    await until(lambda: store.refused > 3, "the receivers are asked for again and again")
    assert not ready.is_ready
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await stage.counts() == {"queued": 1}
