"""Dispatchers that die at any step of a job, and ones with wrong clocks: everything is still there once."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from camserver.base.errors import StoreUnavailable
from camserver.store import Store
from tests.fakes.analyzer import FakeAnalyzer, Fault, Rule, Seen
from tests.rig.polling import until
from tests.services.dispatcher.stage import SkewedClock, Stage, StoreProxy
from tests.store.scenery import NOW_MS

R = TypeVar("R")
SEC = 1000
HUMAN = Seen("human", ("count.single",))
CAMERAS = 3
# Operations of the store at which a dispatcher dies, one after the other.
STEPS = ("claim", "apply", "fail", "renew", "promote_delayed")
# Past every gap, so that each one's looks are events of their own.
ROUND_SEC = 600


class DyingStore(StoreProxy):
    """Its dispatcher dies at the first call of one kind, before it was made or just after: nothing comes through any
    more, and no answer."""

    def __init__(self, real: Store, last: str, is_done: bool) -> None:
        super().__init__(real)
        self.last = last
        self.is_done = is_done
        self.is_dead = False

    async def around(self, name: str, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        if self.is_dead:
            raise StoreUnavailable("dead")
        if name != self.last:
            return await call()
        self.is_dead = True
        if self.is_done:
            await call()
        raise StoreUnavailable("dead")


async def work_off(stage: Stage, done: int) -> None:
    """Until all that the dead one held came back and is done."""

    async def all_done() -> bool:
        return await stage.counts() == {"done": done}

    await stage.pass_time_until_found(all_done, f"{done} jobs done", 15)


async def check_everything_is_there_once(stage: Stage, looks: int, rounds: int = 1) -> None:
    events = await stage.events()
    assert sum(event["frame_count"] for event in events) == looks
    assert len(events) == CAMERAS * rounds
    assert len(await stage.rows("SELECT * FROM frame_tags")) == looks
    changes = await stage.rows("SELECT object_id FROM changes WHERE kind = 'frame'")
    assert len(changes) == len({change["object_id"] for change in changes}) == looks


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
async def test_dispatchers_die_at_each_step(stage: Stage, is_done: bool) -> None:
    for number, last in enumerate(STEPS, 1):
        await _dies_at(stage, last, is_done)
        async with stage.dispatcher():
            await work_off(stage, number * 2 * CAMERAS)
        await check_everything_is_there_once(stage, number * 2 * CAMERAS, number)
        stage.clock.leap(ROUND_SEC * SEC)
    assert max(job["attempt"] for job in await stage.jobs()) <= 3


async def _dies_at(stage: Stage, last: str, is_done: bool) -> None:
    if last == "fail":
        stage.analyzer.add_fault(Rule(Fault.answer_status(500), times=2))
    if last == "renew":
        stage.analyzer.add_fault(Rule(Fault.hold(), times=CAMERAS))
    now_ms = stage.clock.now_ms()
    for camera in range(CAMERAS):
        await stage.look(camera, HUMAN, now_ms)
        await stage.look(camera, HUMAN, now_ms + 1)
    dying = DyingStore(stage.store, last, is_done)
    async with stage.dispatcher(dying):
        if last == "renew":
            await until(lambda: stage.analyzer.in_flight == CAMERAS, "analyses under way")
        if not dying.is_dead:
            await stage.pass_time_until(lambda: dying.is_dead, f"the death at {last}", 5)
    stage.analyzer.heal()


@pytest.mark.parametrize("ahead_sec", [-15, 15])
async def test_clocks_that_differ_a_little_cost_nobody_a_claim(
    two_stores: tuple[Store, Store], analyzer: FakeAnalyzer, tmp_path: Path, ahead_sec: int
) -> None:
    """Less than what a lock holds beyond its renewal: slow analyses stay with those who have them."""
    stage = await Stage.open(two_stores[0], analyzer, tmp_path)
    stage.with_jobs(batch=2)
    analyzer.add_fault(Fault.hold())
    for camera in range(CAMERAS):
        await stage.look(camera, HUMAN)
        await stage.look(camera, HUMAN, NOW_MS + 1)
    skewed = SkewedClock(stage.clock, ahead_sec * SEC)
    async with stage.dispatcher(two_stores[0]), stage.dispatcher(two_stores[1], clock=skewed):
        await stage.until_status(running=2 * CAMERAS)
        await analyzer.until_received(2 + 4)
        await stage.pass_time(120, 5)
        analyzer.heal()
        await stage.until_status(done=2 * CAMERAS)
    assert {job["attempt"] for job in await stage.jobs()} == {1}
    assert len(analyzer.analyses()) == 2 * CAMERAS
    await check_everything_is_there_once(stage, 2 * CAMERAS)


async def test_a_clock_that_is_far_ahead_takes_jobs_away_but_nothing_is_done_twice(
    two_stores: tuple[Store, Store], analyzer: FakeAnalyzer, tmp_path: Path
) -> None:
    """As no clock that follows the database is: each lock looks run out to it. The fence holds all the same."""
    stage = await Stage.open(two_stores[0], analyzer, tmp_path)
    analyzer.add_fault(Rule(Fault.hold(), times=CAMERAS))
    for camera in range(CAMERAS):
        await stage.look(camera, HUMAN)
    async with stage.dispatcher(two_stores[0]):
        await until(lambda: analyzer.in_flight == CAMERAS, "analyses under way")
        async with stage.dispatcher(two_stores[1], clock=SkewedClock(stage.clock, 600 * SEC)):
            await stage.pass_time(10, 5)
            analyzer.heal()
            await until(lambda: analyzer.in_flight == 0, "the first answers")
            await stage.pass_time(5, 5)
        await stage.pass_time_until_nothing_waits()
    done = (await stage.counts()).get("done", 0)
    assert len(await stage.rows("SELECT frame_id FROM frames WHERE analyzed = 1")) == done
    assert sum(event["frame_count"] for event in await stage.events()) == done
    assert len(await stage.rows("SELECT * FROM frame_tags")) == done
