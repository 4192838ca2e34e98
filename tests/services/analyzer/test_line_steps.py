"""The line by itself: what is prepared ahead, who waits too long, and which detectors a request gets."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from camserver.base.errors import BadInput, Bug
from camserver.services.analyzer.crew import Crew, Profile
from camserver.services.analyzer.detector import Detector
from camserver.services.analyzer.line import AHEAD, Line, NotWanted, Overloaded, Steps
from tests.rig.polling import until
from tests.services.analyzer.rig import ScriptedDetector

PATIENCE_SEC = 10.0


@dataclass(slots=True)
class HandClock:
    """Moved by hand, from any thread."""

    at_ms: int = 1_000_000

    def now_ms(self) -> int:
        return self.at_ms

    def boot_ms(self) -> int:
        return self.at_ms

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


@dataclass(slots=True)
class Work:
    """Requests to a line, whose detectors are stopped by clearing `open`."""

    line: Line
    clock: HandClock
    open: threading.Event = field(default_factory=threading.Event)
    prepared: list[Crew] = field(default_factory=list)
    found: list[Detector] = field(default_factory=list)
    took_ms: int = 0
    error: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.open.set()

    def steps(self, profile: Profile = "standard") -> Steps[Crew, Detector, tuple[Crew, Detector]]:
        return Steps(profile, self._prepare, self._find, lambda crew, detector: (crew, detector))

    async def ask(self, profile: Profile = "standard") -> tuple[Crew, Detector]:
        with self.line.place() as place:
            return await self.line.run(self.steps(profile), place)

    def start(self, profile: Profile = "standard") -> asyncio.Task[tuple[Crew, Detector]]:
        return asyncio.create_task(self.ask(profile))

    def _prepare(self, crew: Crew) -> Crew:
        self.prepared.append(crew)
        self.error()
        return crew

    def _find(self, crew: Crew, detector: Detector) -> Detector:
        self.found.append(detector)
        assert self.open.wait(60)
        self.clock.at_ms += self.took_ms
        return detector


def crew(*, seats: int = 1, fast: int = 0) -> Crew:
    return Crew([ScriptedDetector() for _ in range(seats)], [ScriptedDetector() for _ in range(fast)])


@asynccontextmanager
async def working(
    chosen: Crew, waiting_max: int = 20, patience_sec: float = PATIENCE_SEC, *, has_spare_core: bool = True
) -> AsyncIterator[Work]:
    clock = HandClock()
    work = Work(Line(chosen, waiting_max, patience_sec, clock, has_spare_core=has_spare_core), clock)
    try:
        yield work
    finally:
        work.open.set()
        await work.line.close()


async def test_the_next_picture_is_prepared_while_the_detector_has_one_but_no_more() -> None:
    async with working(crew()) as work:
        work.open.clear()
        asked = [work.start() for _ in range(6)]
        await until(lambda: len(work.prepared) == AHEAD and len(work.found) == 1, "the next is prepared")
        # Whoever could go further has done so.
        assert (len(work.prepared), work.line.taken) == (AHEAD, 6)
        work.open.set()
        await asyncio.gather(*asked)
        assert (len(work.prepared), len(work.found), work.line.taken) == (6, 6, 0)


async def test_without_a_spare_core_nothing_is_prepared_before_its_turn() -> None:
    async with working(crew(seats=2), has_spare_core=False) as work:
        work.open.clear()
        asked = [work.start() for _ in range(6)]
        await until(lambda: len(work.found) == 2, "both detectors have one")
        assert (len(work.prepared), work.line.taken) == (2, 6)
        left = work.start()
        await until(lambda: work.line.taken == 7, "one more waits")
        left.cancel()
        work.open.set()
        await asyncio.gather(*asked)
        assert (len(work.prepared), len(work.found), work.line.taken) == (6, 6, 0)


async def test_without_a_spare_core_an_error_reaches_whoever_asked() -> None:
    async with working(crew(), has_spare_core=False) as work:

        def refuse() -> None:
            raise BadInput("no picture")

        work.error = refuse
        with pytest.raises(BadInput, match="no picture"):
            await work.ask()
        work.error = lambda: None
        await work.ask()
        assert work.line.taken == 0


async def test_who_waited_longer_than_the_caller_does_is_not_worked_on() -> None:
    async with working(crew()) as work:
        work.open.clear()
        first, second = work.start(), work.start()
        await until(lambda: len(work.prepared) == AHEAD and len(work.found) == 1, "the next is prepared")
        third = work.start()
        await until(lambda: work.line.taken == 3, "the third waits")
        work.clock.at_ms += int(PATIENCE_SEC * 1000) + 1
        work.open.set()
        await first
        for late in (second, third):
            with pytest.raises(Overloaded, match="in time for an answer within 10 s"):
                await late
        assert (len(work.prepared), len(work.found)) == (AHEAD, 1)
        await work.ask()


async def test_whose_answer_would_come_too_late_is_refused_at_once() -> None:
    """Its own picture counts too: two before it take 6 s, and with it the answer came after 9 of 10."""
    async with working(crew(), waiting_max=1000) as work:
        work.took_ms = 3_000
        for _ in range(40):  # until it has learned how long a picture takes
            await work.ask()
        work.open.clear()
        first, second = work.start(), work.start()
        await until(lambda: work.line.taken == 2, "two are in the line")
        with pytest.raises(Overloaded, match="9 s until this picture's answer") as refused:
            await work.ask()
        assert 6 <= refused.value.retry_after_sec <= 30
        work.open.set()
        work.took_ms = 0
        await asyncio.gather(first, second)


async def test_what_takes_too_long_itself_is_not_begun_behind_another() -> None:
    async with working(crew()) as work:
        work.took_ms = 6_000
        for _ in range(40):
            await work.ask()
        work.open.clear()
        first = work.start()
        await until(lambda: len(work.found) == 41, "the detector is busy")
        with pytest.raises(Overloaded, match="until this picture's answer"):
            await work.ask()
        work.open.set()
        await first
        # It comes straight to the detector, but its body took 5 of 10 s to arrive and a picture takes 6.
        with work.line.place() as place:
            work.clock.at_ms += 5_000
            with pytest.raises(Overloaded, match="in time"):
                await work.line.run(work.steps(), place)
        assert len(work.found) == 41


async def test_a_slow_time_does_not_close_the_line_for_ever() -> None:
    async with working(crew()) as work:
        work.took_ms = 60_000
        for _ in range(40):
            await work.ask()
        work.took_ms = 0
        await work.ask()
        assert len(work.found) == 41


async def test_who_waits_behind_one_that_never_ends_is_told_in_time() -> None:
    """Both who waits to be prepared and who waits for the detector."""
    async with working(crew(), patience_sec=0.6) as work:
        work.open.clear()
        stuck = work.start()
        await until(lambda: len(work.found) == 1, "the detector is busy")
        late = [work.start() for _ in range(3)]
        told = await asyncio.gather(*late, return_exceptions=True)
        assert [type(one) for one in told] == [Overloaded] * 3
        assert work.line.taken == 1
        assert not stuck.done()
        work.open.set()
        await stuck
        await until(lambda: len(work.prepared) == AHEAD, "nothing waits")
        assert len(work.found) == 1


async def test_a_step_that_never_ends_makes_the_line_stuck() -> None:
    async with working(crew()) as work:
        work.open.clear()
        asked = work.start()
        await until(lambda: len(work.found) == 1, "the detector is busy")
        work.clock.at_ms += 60_000
        assert work.line.stuck_sec is None
        work.clock.at_ms += 1
        assert work.line.stuck_sec == pytest.approx(60.001)
        work.open.set()
        await asked
        assert work.line.stuck_sec is None


async def test_who_leaves_while_its_picture_is_prepared_costs_no_detection() -> None:
    async with working(crew()) as work:
        work.open.clear()
        first, second = work.start(), work.start()
        await until(lambda: len(work.prepared) == AHEAD and len(work.found) == 1, "the next is prepared")
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert work.line.taken == 1
        work.open.set()
        await first
        await work.ask()
        assert len(work.found) == 2
        # Nothing of it is still held: as many as ever are prepared ahead.
        work.open.clear()
        more = [work.start() for _ in range(3)]
        await until(lambda: len(work.prepared) == AHEAD + 1 + AHEAD and len(work.found) == 3, "the next is prepared")
        work.open.set()
        await asyncio.gather(*more)


async def test_a_request_stays_with_the_crew_it_was_prepared_for() -> None:
    old, new = crew(), crew()
    async with working(old) as work:
        work.open.clear()
        before = [work.start() for _ in range(AHEAD)]
        await until(lambda: len(work.prepared) == AHEAD, "two are prepared")
        after = [work.start() for _ in range(3)]
        await until(lambda: work.line.taken == 5, "three wait")
        work.line.replace(new.standard)
        work.open.set()
        for made_for, detector in await asyncio.gather(*before):
            assert (made_for, detector) == (old, old.standard[0])
        for made_for, detector in await asyncio.gather(*after):
            assert made_for.standard[0] is detector is new.standard[0]


async def test_a_crew_of_another_size_is_not_taken() -> None:
    async with working(crew(seats=2)) as work:
        with pytest.raises(Bug):
            work.line.replace(crew(seats=1).standard)
        await work.ask()
    with pytest.raises(Bug):
        crew(seats=2, fast=1)


async def test_the_fast_profile_has_its_own_detectors_where_there_are_any() -> None:
    both, one = crew(fast=1), crew()
    async with working(both) as work:
        assert (await work.ask("fast"))[1] is both.fast[0]
        assert (await work.ask())[1] is both.standard[0]
        work.line.replace(one.standard)
        assert (await work.ask("fast"))[1] is both.fast[0]
        assert (await work.ask())[1] is one.standard[0]
    async with working(one) as work:
        assert (await work.ask("fast"))[1] is one.standard[0]


async def test_a_step_that_fails_tells_who_asked_and_nothing_is_held() -> None:
    async with working(crew()) as work:

        def fail() -> None:
            raise BadInput("no picture")

        work.error = fail
        for _ in range(2 * AHEAD):
            with pytest.raises(BadInput, match="no picture"):
                await work.ask()
        work.error = lambda: None
        await work.ask()
        assert len(work.found) == 1


async def test_who_is_gone_already_is_not_prepared() -> None:
    async with working(crew()) as work:
        with work.line.place() as place:
            pass
        with pytest.raises(NotWanted):
            await work.line.run(work.steps(), place)
        assert work.prepared == []
        await work.ask()
