"""Claims, fences and locks: several dispatchers, slow ones, dead ones, and ones that stop."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from camserver.domain.jobs import JobPolicy
from camserver.store import Store, jobs
from tests.fakes.analyzer import FakeAnalyzer, Fault, Rule, Seen
from tests.rig.polling import until
from tests.services.dispatcher.stage import CutStore, Stage, StoreProxy
from tests.store.scenery import NOW_MS

R = TypeVar("R")
EVERY_DATABASE = True  # locks are what they differ in (tests/rig/dealt.py)
SEC = 1000
HUMAN = Seen("human", ("count.single",))


async def test_two_dispatchers_share_the_work_and_do_nothing_twice(
    two_stores: tuple[Store, Store], analyzer: FakeAnalyzer, tmp_path: Path
) -> None:
    stage = await Stage.open(two_stores[0], analyzer, tmp_path)
    stage.with_jobs(batch=10)
    for number in range(10):
        for camera in range(3):
            await stage.look(camera, HUMAN, NOW_MS + number * SEC)
    analyzer.add_fault(Fault.hold())
    async with stage.dispatcher(two_stores[0]), stage.dispatcher(two_stores[1]):
        # Each asks ten questions and has up to five jobs at hand for when they are answered: how many depends on what
        # the other one was claiming at the same moment.
        await analyzer.until_received(2 + 20)
        held = Counter(job["locked_by"] for job in await stage.jobs() if job["status"] == "running")
        assert len(held) == 2, "neither took everything"
        assert all(10 <= count <= 15 for count in held.values()), held
        # All at once, so that the results of one camera meet: each moves the state the others were decided on.
        analyzer.heal()
        await stage.until_status(done=30)
    asked = [record.request_id for record in analyzer.analyses()]
    assert len(asked) == len(set(asked)) == 30
    assert analyzer.in_flight_max == 20
    assert [job["attempt"] for job in await stage.jobs()] == [1] * 30
    events = await stage.events()
    assert sum(event["frame_count"] for event in events) == 30
    assert {event["camera_key"] for event in events} == set(stage.scene.camera_keys)
    spans = {(event["start_at"], event["last_seen_at"]) for event in events if event["state"] == "open"}
    assert spans == {(NOW_MS, NOW_MS + 9 * SEC)}, "whatever the order, one event holds them all"
    assert len(events) == 3


async def test_a_slow_analysis_keeps_its_lock(stage: Stage) -> None:
    stage.analyzer.add_fault(Fault.hold())
    await stage.look(0, HUMAN)
    async with stage.dispatcher():
        await stage.analyzer.until_received(2)
        for _ in range(6):
            await pass_time_until_renewed(stage)
        stage.analyzer.heal()
        await stage.until_status(done=1)
    assert (await stage.jobs())[0]["attempt"] == 1
    assert len(stage.analyzer.analyses()) == 1


async def pass_time_until_renewed(stage: Stage) -> None:
    """Whenever its loop falls asleep: it may do so late. Never so far that the lock could run out meanwhile."""
    held_until = await lock_of_the_job(stage)

    async def is_renewed() -> bool:
        return await lock_of_the_job(stage) > held_until

    for _ in range(9):
        await stage.pass_time(5, 5)
        if await is_renewed():
            return
    await stage.until(is_renewed, "a renewed lock")


async def lock_of_the_job(stage: Stage) -> int:
    [job] = await stage.jobs()
    return int(job["locked_until"])


async def test_the_jobs_of_a_dispatcher_that_died_come_back(stage: Stage) -> None:
    stage.analyzer.add_fault(Rule(Fault.hold(), times=3))
    for camera in range(3):
        await stage.look(camera, HUMAN)
    dying = CutStore(stage.store)
    async with stage.dispatcher(dying):
        await stage.until_status(running=3)
        await stage.analyzer.until_received(4)
        dying.is_cut = True  # it can't put anything down any more
    async with stage.dispatcher():
        await stage.pass_time(60, 10)
        assert await stage.counts() == {"running": 3}, "not before its locks ran out"
        await stage.pass_time(10, 5)
        await stage.pass_time(5, 1)
        await stage.until_status(done=3)
    assert [job["attempt"] for job in await stage.jobs()] == [2] * 3, "the job may be what killed it: that counts"


async def test_a_dispatcher_that_lost_its_fence_writes_nothing(stage: Stage) -> None:
    """Cut off from the store while it waits for the analyzer; meanwhile another one does the job."""
    stage.analyzer.add_fault(Rule(Fault.hold(), times=1))
    await stage.look(0, HUMAN)
    first_store = CutStore(stage.store)
    async with stage.dispatcher(first_store):
        await stage.until_status(running=1)
        await stage.analyzer.until_received(2)
        first_store.is_cut = True
        async with stage.dispatcher():
            await stage.pass_time(75, 5)
            await stage.until_status(done=1)
            before = await stage.rows("SELECT * FROM camera_state ORDER BY camera_key")
            stage.analyzer.heal()
            await until(lambda: stage.analyzer.in_flight == 0, "the first answer is sent")
            await stage.clock.some_turns()
            first_store.is_cut = False
            await stage.pass_time(5, 1)
        assert await stage.rows("SELECT * FROM camera_state ORDER BY camera_key") == before
        await stage.look(1, HUMAN)
        await stage.until_status(done=2)  # and it works on
    assert [event["frame_count"] for event in await stage.events()] == [1, 1]
    assert len(stage.analyzer.analyses()) == 3


async def _taken_back(stage: Stage, now_ms: int) -> None:
    """By a sweep at that time. One that finds the row locked leaves it to the next one."""
    await stage.until(lambda: stage.store.write(jobs.return_expired, now_ms, JobPolicy(), 0.0), "the sweep takes it")


async def test_a_job_claimed_again_by_the_same_dispatcher_is_done_once(stage: Stage) -> None:
    stage.analyzer.add_fault(Rule(Fault.hold(), times=1))
    await stage.look(0, HUMAN)
    async with stage.dispatcher():
        await stage.analyzer.until_received(2)
        # Another dispatcher, whose clock runs ahead, takes the job back while its first analysis is under way.
        await _taken_back(stage, NOW_MS + 61 * SEC)
        await stage.until(lambda: stage.store.write(jobs.promote_delayed, NOW_MS + 70 * SEC), "it is queued again")
        await stage.until_status(done=1)
        stage.analyzer.heal()
        await until(lambda: stage.analyzer.in_flight == 0, "the first answer is sent")
        await stage.clock.some_turns()
        await stage.look(0, HUMAN, NOW_MS + 10 * SEC)
        await stage.until_status(done=2)
    (event,) = await stage.events()
    assert event["frame_count"] == 2


async def test_a_job_whose_claim_is_gone_is_dropped_and_makes_room(stage: Stage) -> None:
    stage.with_jobs(batch=1)
    stage.analyzer.add_fault(Rule(Fault.hold(), times=1))
    lost = await stage.look(0, HUMAN)
    async with stage.dispatcher():
        await stage.analyzer.until_received(2)
        await _taken_back(stage, NOW_MS + 3600 * SEC)
        await stage.look(1, HUMAN)
        await stage.until_status(delayed=1, running=1)  # the next one is at hand
        last = await stage.look(2, HUMAN)
        await stage.clock.some_turns()
        assert (await stage.job(last))["status"] == "queued", "one at a time, and that one is under way"
        assert len(stage.analyzer.analyses()) == 1
        await stage.clock.advance(20 * SEC)  # the renewal notices
        await stage.until_status(done=2, delayed=1)
    assert (await stage.job(lost))["status"] == "delayed"


async def test_stopping_gives_back_what_is_under_way(stage: Stage) -> None:
    stage.analyzer.add_fault(Fault.hold())
    for camera in range(3):
        await stage.look(camera, HUMAN)
    async with stage.dispatcher():
        await stage.until_status(running=3)
        await stage.analyzer.until_received(4)
    jobs_left = await stage.jobs()
    assert [(job["status"], job["attempt"], job["locked_by"]) for job in jobs_left] == [("queued", 0, None)] * 3
    stage.analyzer.heal()
    async with stage.dispatcher():
        await stage.until_status(done=3)  # at once: no lock to wait for
    assert [job["attempt"] for job in await stage.jobs()] == [1] * 3


class SlowApply(StoreProxy):
    """Holds `apply` until told to go on."""

    def __init__(self, real: Store) -> None:
        super().__init__(real)
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def around(self, name: str, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        if name == "apply":
            self.reached.set()
            await self.go_on.wait()
        return await call()


async def test_stopping_lets_results_through_that_are_being_written(stage: Stage) -> None:
    slow = SlowApply(stage.store)
    await stage.look(0, HUMAN)
    async with stage.dispatcher(slow) as task:
        await slow.reached.wait()
        task.cancel()
        await stage.clock.advance(0)
        assert not task.done(), "it waits for the write under way"
        slow.go_on.set()
        await asyncio.wait([task])
    await stage.until_status(done=1)
    assert len(await stage.events()) == 1
