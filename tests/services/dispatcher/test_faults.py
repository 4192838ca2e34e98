"""A fault at every step of a job: nothing is lost, and nothing is done twice but, at worst, an analysis.

Each round brings new looks and one fault: the n-th call of one kind fails, counted from the round's start.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from camserver.base.errors import StoreUnavailable, Unavailable
from camserver.objects.local import LocalObjects
from camserver.store import Store
from tests.fakes.analyzer import Fault, Rule, Seen
from tests.services.dispatcher.stage import Stage, StoreProxy
from tests.store.scenery import NOW_MS

R = TypeVar("R")
SEC = 1000
HUMAN = Seen("human", ("count.single", "carry.bag"))
CAMERAS = 2
# Operations of the store, and how many calls of each are let through before one fails; a round for each.
STEPS = (
    *(("claim", 0), ("claim", 1), ("claim", 2)),
    *(("apply", 0), ("apply", 1), ("apply", 2)),
    *(("claimed", 0), ("claimed", 1)),
    ("fail", 0),
    ("promote_delayed", 0),
    ("return_expired", 0),
    ("close_stale", 0),
)
ROUNDS = len(STEPS)


@dataclass(slots=True)
class Countdown:
    """Strikes once, at the n-th call of a name after it was armed."""

    name: str = ""
    left: int | None = None
    struck: list[str] = field(default_factory=list)

    def arm(self, name: str, calls: int) -> None:
        self.name, self.left = name, calls

    def strikes(self, name: str) -> bool:
        if self.left is None or name != self.name:
            return False
        self.left -= 1
        if self.left >= 0:
            return False
        self.left = None
        self.struck.append(name)
        return True


class FailingStore(StoreProxy):
    """Fails before the call is made, or after it was made and only its answer is lost."""

    def __init__(self, real: Store, countdown: Countdown, is_done: bool) -> None:
        super().__init__(real)
        self.countdown = countdown
        self.is_done = is_done

    async def around(self, name: str, call: Callable[[], Coroutine[Any, Any, R]]) -> R:
        if not self.countdown.strikes(name):
            return await call()
        if self.is_done:
            await call()
        raise StoreUnavailable("struck by the test; the write may or may not stand")


class FailingObjects(LocalObjects):
    countdown: Countdown

    async def get(self, key: str) -> bytes:
        if self.countdown.strikes("get"):
            raise Unavailable("struck by the test")
        return await super().get(key)

    async def get_each(self, keys: Sequence[str]) -> list[bytes | None]:
        # Nothing is read ahead, so that each picture has its turn to fail.
        return [None] * len(keys)


async def looks_done_one_round_after_the_other(stage: Stage, arm: Callable[[int], None], **dispatcher: Any) -> None:
    """In each round two looks a camera, the first of them in flight with the second; ten minutes between rounds."""
    async with stage.dispatcher(**dispatcher):
        for number in range(ROUNDS):
            now_ms = stage.clock.now_ms()
            arm(number)
            for camera in range(CAMERAS):
                await stage.look(camera, HUMAN, now_ms)
                await stage.look(camera, HUMAN, now_ms + 1)
            await stage.pass_time_until_nothing_waits()
            await stage.clock.advance(600 * SEC)
            await stage.clock.some_turns(6)


async def check_everything_is_there_once(stage: Stage) -> None:
    frames = ROUNDS * CAMERAS * 2
    assert await stage.counts() == {"done": frames}
    assert len(await stage.rows("SELECT frame_id FROM frames WHERE analyzed = 1")) == frames
    events = await stage.events()
    assert [event["frame_count"] for event in events] == [2] * (ROUNDS * CAMERAS)
    assert [event["last_seen_at"] - event["start_at"] for event in events] == [1] * (ROUNDS * CAMERAS)
    incidents = await stage.rows("SELECT event_count FROM incidents")
    assert [incident["event_count"] for incident in incidents] == [1] * (ROUNDS * CAMERAS)
    assert len(await stage.rows("SELECT * FROM frame_tags")) == 2 * frames
    assert len(await stage.rows("SELECT * FROM event_tags")) == 2 * len(events)
    changes = await stage.rows("SELECT object_id FROM changes WHERE kind = 'frame'")
    assert len(changes) == len({change["object_id"] for change in changes}) == frames
    numbers = await stage.rows("SELECT tenant_id, seq FROM changes ORDER BY tenant_id, seq")
    assert [row["seq"] for row in numbers] == list(range(1, len(numbers) + 1)), "no hole in the feed"


def analyses_done(stage: Stage) -> int:
    return len([record for record in stage.analyzer.analyses() if record.status == 200])


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
async def test_any_call_of_the_store_may_fail(stage: Stage, is_done: bool) -> None:
    countdown = Countdown()

    def arm(number: int) -> None:
        countdown.arm(*STEPS[number])
        # So that there is a failure to write, too.
        stage.analyzer.faults.rules[:] = [Rule(Fault.answer_status(503), times=1)]

    store = FailingStore(stage.store, countdown, is_done)
    await looks_done_one_round_after_the_other(stage, arm, store=store)
    await check_everything_is_there_once(stage)
    # Whether a state moves under a decision, and "claimed" reads it again, is a matter of luck.
    assert {name for name, _ in STEPS} - {"claimed"} <= set(countdown.struck)
    assert analyses_done(stage) == ROUNDS * CAMERAS * 2, "the results at hand were not thrown away"


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_any_reading_of_a_picture_may_fail(stage: Stage) -> None:
    assert isinstance(stage.objects, LocalObjects)
    objects = FailingObjects(stage.objects.root)
    objects.countdown = Countdown()
    await looks_done_one_round_after_the_other(
        stage, lambda number: objects.countdown.arm("get", number % (CAMERAS * 2)), objects=objects
    )
    await check_everything_is_there_once(stage)
    assert len(objects.countdown.struck) == ROUNDS


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "fault",
    [Fault.reset(), Fault.cut_off(), Fault.answer_status(503), Fault.answer_status(409), Fault.malformed()],
    ids=lambda fault: fault.kind if fault.status == 200 else str(fault.status),
)
async def test_any_request_to_the_analyzer_may_fail(stage: Stage, fault: Fault) -> None:
    def arm(number: int) -> None:
        stage.analyzer.faults.rules[:] = [Rule(fault, after=number % (CAMERAS * 2), times=1)]

    await looks_done_one_round_after_the_other(stage, arm)
    await check_everything_is_there_once(stage)


async def test_the_fence_holds_when_everything_fails_in_turn(stage: Stage) -> None:
    """Faults of all kinds at once, a dispatcher killed in each round: still everything is there once."""
    countdown = Countdown()
    for number in range(4):
        now_ms = stage.clock.now_ms()
        stage.analyzer.faults.rules[:] = [Rule(Fault.cut_off(), after=number, times=1), Rule(Fault.hold(), times=1)]
        for camera in range(CAMERAS):
            await stage.look(camera, HUMAN, now_ms)
            await stage.look(camera, HUMAN, now_ms + 1)
        store = FailingStore(stage.store, countdown, is_done=bool(number % 2))
        async with stage.dispatcher(store=store) as task:
            countdown.arm("apply", number % 2)
            await stage.clock.some_turns(10)
            task.cancel()
        stage.analyzer.heal()
        async with stage.dispatcher():
            await stage.pass_time_until_nothing_waits()
        await stage.clock.advance(600 * SEC)
    assert await stage.counts() == {"done": 4 * CAMERAS * 2}
    assert [event["frame_count"] for event in await stage.events()] == [2] * (4 * CAMERAS)
    assert stage.clock.now_ms() > NOW_MS
