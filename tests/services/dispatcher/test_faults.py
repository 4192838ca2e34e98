"""A fault at every step of a job: nothing is lost, and nothing is done twice but, at worst, an analysis.

Each round brings new looks and faults: the n-th call of one kind fails, counted from the round's start. A round has
one call of each kind that fails so early; in `make soak` each has a round of its own.
"""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from camserver.base.errors import StoreUnavailable, Unavailable
from camserver.objects.local import LocalObjects
from camserver.store import Store
from tests.fakes.analyzer import Fault, Rule, Seen
from tests.rig.effort import THOROUGH, times
from tests.services.dispatcher.stage import Stage, StoreProxy
from tests.store.scenery import NOW_MS

R = TypeVar("R")
Step = tuple[str, int]
HUMAN = Seen("human", ("count.single", "carry.bag"))
CAMERAS = 2
# Rounds of faults outside the store: one for each request or picture that may be struck.
ROUNDS = times(CAMERAS * 2, 12)
# Past every gap, so that each round's looks are events of their own.
ROUND_SEC = 600
# Operations of the store, and how many calls of each are let through before one fails.
STEPS: tuple[Step, ...] = (
    *(("claim", 0), ("claim", 1), ("claim", 2)),
    *(("apply", 0), ("apply", 1), ("apply", 2)),
    *(("claimed", 0), ("claimed", 1)),
    ("fail", 0),
    ("promote_delayed", 0),
    ("return_expired", 0),
    ("close_stale", 0),
)
# Whether a state moves under a decision, and is read again, is a matter of luck.
BY_LUCK = {"claimed"}


def rounds_of(steps: Iterable[Step]) -> list[tuple[Step, ...]]:
    """The steps of each round: all of as many calls together; alone, where tests are thorough."""
    if THOROUGH:
        return [(step,) for step in steps]
    together: dict[int, list[Step]] = {}
    for name, calls in steps:
        together.setdefault(calls, []).append((name, calls))
    return [tuple(found) for found in together.values()]


@dataclass(slots=True)
class Countdown:
    """Strikes once for each name, at its n-th call after it was armed."""

    left: dict[str, int] = field(default_factory=dict)
    struck: list[str] = field(default_factory=list)

    def arm(self, *steps: Step) -> None:
        """With these and no others."""
        self.left = dict(steps)

    def strikes(self, name: str) -> bool:
        if name not in self.left:
            return False
        self.left[name] -= 1
        if self.left[name] >= 0:
            return False
        del self.left[name]
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


async def looks_done_in_a_round(stage: Stage) -> None:
    """Two looks a camera, the first of them in flight with the second."""
    now_ms = stage.clock.now_ms()
    for camera in range(CAMERAS):
        await stage.look(camera, HUMAN, now_ms)
        await stage.look(camera, HUMAN, now_ms + 1)
    await stage.pass_time_until_nothing_waits()


async def looks_done_in_rounds(stage: Stage, arm: Callable[[int], None], **dispatcher: Any) -> None:
    async with stage.dispatcher(**dispatcher):
        for number in range(ROUNDS):
            arm(number)
            await looks_done_in_a_round(stage)
            await stage.leap(ROUND_SEC)


async def check_everything_is_there_once(stage: Stage, rounds: int = ROUNDS) -> None:
    frames = rounds * CAMERAS * 2
    assert await stage.counts() == {"done": frames}
    assert len(await stage.rows("SELECT frame_id FROM frames WHERE analyzed = 1")) == frames
    events = await stage.events()
    assert [event["frame_count"] for event in events] == [2] * (rounds * CAMERAS)
    assert [event["last_seen_at"] - event["start_at"] for event in events] == [1] * (rounds * CAMERAS)
    incidents = await stage.rows("SELECT event_count FROM incidents")
    assert [incident["event_count"] for incident in incidents] == [1] * (rounds * CAMERAS)
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
    rounds = rounds_of(STEPS)
    async with stage.dispatcher(FailingStore(stage.store, countdown, is_done)):
        for steps in rounds:
            countdown.arm(*steps)
            # So that there is a failure to write, too.
            stage.analyzer.faults.rules[:] = [Rule(Fault.answer_status(503), times=1)]
            await looks_done_in_a_round(stage)
            await stage.leap(ROUND_SEC)
            # Sweeps come by themselves; their next one is soon.
            coming = {name for name, calls in steps if calls == 0} - BY_LUCK
            await stage.pass_time_until_found(_is_struck(countdown, coming), f"faults in {sorted(coming)}")
    await check_everything_is_there_once(stage, len(rounds))
    assert {name for name, _ in STEPS} - BY_LUCK <= set(countdown.struck)
    assert analyses_done(stage) == len(rounds) * CAMERAS * 2, "the results at hand were not thrown away"


def _is_struck(countdown: Countdown, names: set[str]) -> Callable[[], Coroutine[Any, Any, bool]]:
    async def is_struck() -> bool:
        return names.isdisjoint(countdown.left)

    return is_struck


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_any_reading_of_a_picture_may_fail(stage: Stage) -> None:
    assert isinstance(stage.objects, LocalObjects)
    objects = FailingObjects(stage.objects.root)
    objects.countdown = Countdown()
    await looks_done_in_rounds(
        stage, lambda number: objects.countdown.arm(("get", number % (CAMERAS * 2))), objects=objects
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

    await looks_done_in_rounds(stage, arm)
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
            countdown.arm(("apply", number % 2))
            await stage.clock.some_turns(10)
            task.cancel()
        stage.analyzer.heal()
        async with stage.dispatcher():
            await stage.pass_time_until_nothing_waits()
        stage.clock.leap(ROUND_SEC * 1000)
    assert await stage.counts() == {"done": 4 * CAMERAS * 2}
    assert [event["frame_count"] for event in await stage.events()] == [2] * (4 * CAMERAS)
    assert stage.clock.now_ms() > NOW_MS
