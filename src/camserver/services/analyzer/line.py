"""The line in front of the detectors: bounded, first come first served, and nobody waits for what is not wanted.

A request takes a place before its body is read, so the places bound the memory too. When all are taken, or when its
answer would come after its caller has given up, it is refused with the time after which it is worth asking again. Who
waits in vain is told so at that time.

A detector shall never wait for a picture: while it has one, the next is decoded beside it (`AHEAD`), and what follows
from its finds is worked out elsewhere. More than that is not decoded ahead: a decoded picture is large. Where
detectors take every core there is nothing to be gained beside them, and one thread does all of a picture, which is
then not handed over from thread to thread.

A thread can't be stopped. One that never comes back makes the line `stuck`, and only another process helps.
"""

import asyncio
import math
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from camserver.base.clock import Clock
from camserver.base.errors import Bug, Retry, TooManyTries
from camserver.base.log import get_logger
from camserver.services.analyzer.crew import Crew, Profile
from camserver.services.analyzer.detector import Detector

log = get_logger(__name__)

P = TypeVar("P")
F = TypeVar("F")
T = TypeVar("T")

# Pictures decoded for each detector: the one it has and the next.
AHEAD = 2
# The first guess of how long a picture takes; what is measured then replaces it bit by bit.
FIRST_GUESS_SEC = 0.1
NEWEST_WEIGHT = 0.1
RETRY_AFTER_SEC_MAX = 30
REPORT_EVERY_MS = 10_000
# Of what the caller waits, so much is for the line; the rest is for the way and for pictures that take longer.
PROMISED_SHARE = 0.8
# A step that takes so many times what anybody waits for, and at least this long, never ends.
STUCK_AFTER_PATIENCES = 6
STUCK_AFTER_MS_MIN = 60_000


class Overloaded(TooManyTries):
    code = "overloaded"

    def __init__(self, message: str, retry_after_sec: int = 1) -> None:
        super().__init__(message, retry_after_sec=retry_after_sec)
        self.retry_after_sec = retry_after_sec


class NotWanted(Retry):
    """Whoever asked is gone; there is nobody to answer."""

    code = "not_wanted"


@dataclass(slots=True)
class Place:
    """Room for one request, from before its body is read until it is answered."""

    expires_ms: int  # boot time; nobody waits for the answer any longer
    left: bool = False
    step_since_ms: int | None = None  # boot time; a thread works on it


@dataclass(frozen=True, slots=True)
class Steps(Generic[P, F, T]):
    """The work for one request. `find` has its detector for itself; the others run beside those of other requests."""

    profile: Profile
    prepare: Callable[[Crew], P]
    find: Callable[[P, Detector], F]
    conclude: Callable[[P, F], T]


class Line:
    """`patience_sec`: how long a caller waits for an answer, as the contract has it.

    `has_spare_core`: whether there is one besides those that the detectors take.
    """

    def __init__(
        self, crew: Crew, waiting_max: int, patience_sec: float, clock: Clock, *, has_spare_core: bool = True
    ) -> None:
        seats = crew.seats
        self._crew = crew
        self._seats: queue.SimpleQueue[int] = queue.SimpleQueue()
        for seat in range(seats):
            self._seats.put(seat)
        self._ahead = asyncio.Semaphore(AHEAD * seats)
        self._finding = ThreadPoolExecutor(seats, thread_name_prefix="detector")
        self._beside = (
            ThreadPoolExecutor(AHEAD * seats, thread_name_prefix="picture") if has_spare_core else self._finding
        )
        self._places_max = seats + waiting_max
        self._patience_ms = round(patience_sec * 1000)
        self._clock = clock
        self._taken = 0
        self._picture_sec = FIRST_GUESS_SEC
        self._refused = 0
        self._reported_ms: int | None = None
        self._worked_on: dict[int, Place] = {}

    @property
    def stuck_sec(self) -> float | None:
        """For how long a step has been at work that will never end; None while there is none."""
        now_ms = self._clock.boot_ms()
        since = [place.step_since_ms for place in list(self._worked_on.values())]
        longest_ms = max((now_ms - at_ms for at_ms in since if at_ms is not None), default=0)
        limit_ms = max(STUCK_AFTER_PATIENCES * self._patience_ms, STUCK_AFTER_MS_MIN)
        return longest_ms / 1000 if longest_ms > limit_ms else None

    @property
    def taken(self) -> int:
        """Requests that are being read, wait or are worked on."""
        return self._taken

    @property
    def patience_sec(self) -> float:
        return self._patience_ms / 1000

    def replace(self, detectors: Sequence[Detector]) -> None:
        """From now on these: whoever waits gets one of them. A picture under way stays with the detectors that it was
        begun for, which are then let go. Those of the fast profile stay."""
        crew = Crew(tuple(detectors), self._crew.fast)
        if crew.seats != self._crew.seats:
            raise Bug(f"{crew.seats} detectors can't take the seats of {self._crew.seats}")
        self._crew = crew

    @contextmanager
    def place(self) -> Iterator[Place]:
        """A place in the line; Overloaded when there is none."""
        if self._taken >= self._places_max:
            raise self._refusal(f"{self._taken} pictures wait or are being analyzed, and there is no room for more")
        answer_sec = self._wait_sec() + self._picture_sec
        # Where a detector is free there is nothing to wait for, however long pictures took before.
        if self._taken >= self._crew.seats and answer_sec * 1000 > PROMISED_SHARE * self._patience_ms:
            raise self._refusal(f"it would take {answer_sec:.0f} s until this picture's answer")
        place = Place(self._clock.boot_ms() + self._patience_ms)
        self._taken += 1
        try:
            yield place
        finally:
            self._taken -= 1
            place.left = True

    async def run(self, steps: Steps[P, F, T], place: Place) -> T:
        """Works on a request when its turn comes. Who leaves the place before that (cancels) costs no more work.

        Overloaded when its turn does not come in time. A picture that is being worked on then is the one that takes
        too long, and that its caller shall find out for itself: such a failure counts.
        """
        try:
            async with asyncio.timeout(self.left_sec(place)):
                await self._ahead.acquire()
        except TimeoutError:
            raise self._late() from None
        try:
            self._check(place)
        except BaseException:
            self._ahead.release()
            raise
        work: Future[T] = self._start(steps, self._crew, place)
        working = asyncio.wrap_future(work)
        # A cancelled request does not stop the threads, and what they hold must stay counted.
        working.add_done_callback(self._done)
        await asyncio.wait((working,), timeout=self.left_sec(place))
        if not working.done() and place.step_since_ms is None:
            raise self._late()
        return await asyncio.shield(working)

    def left_sec(self, place: Place) -> float:
        """For how long the caller still waits."""
        return max(place.expires_ms - self._clock.boot_ms(), 0) / 1000

    async def close(self) -> None:
        for threads in (self._finding, self._beside):
            await asyncio.to_thread(threads.shutdown, cancel_futures=True)

    def _done(self, working: "asyncio.Future[T]") -> None:
        self._ahead.release()
        if not working.cancelled():
            working.exception()  # whoever asked may be gone, and then nobody else looks at it

    def _start(self, steps: Steps[P, F, T], crew: Crew, place: Place) -> "Future[T]":
        """The steps one after the other, each thread handing over to the next; the event loop hears of the end.

        A prepared picture is handed over before a detector is free: the one that becomes free goes on at once.
        """
        answer: Future[T] = Future()

        def prepare() -> None:
            self._check(place)
            with self._at_work(place):
                prepared = steps.prepare(crew)
            go_on(self._finding, lambda: find(prepared))

        def find(prepared: P) -> None:
            with self._at_work(place):
                found = self._find(steps, crew, place, prepared)
            go_on(self._beside, lambda: conclude(prepared, found))

        def conclude(prepared: P, found: F) -> None:
            with self._at_work(place):
                concluded = steps.conclude(prepared, found)
            answer.set_result(concluded)

        def go_on(threads: ThreadPoolExecutor, step: Callable[[], None]) -> None:
            if self._beside is self._finding:
                step()
            else:
                hand_over(threads, step)

        def hand_over(threads: ThreadPoolExecutor, step: Callable[[], None]) -> None:
            threads.submit(step).add_done_callback(ended)

        def ended(step: "Future[None]") -> None:
            if step.cancelled():
                answer.cancel()
            elif error := step.exception():
                answer.set_exception(error)

        hand_over(self._beside, prepare)
        return answer

    def _find(self, steps: Steps[P, F, T], crew: Crew, place: Place, prepared: P) -> F:
        """Only as many threads come here as there are seats, so none waits for one."""
        # At most what was promised, so that whoever comes straight through is looked at however long others took.
        self._check(place, needs_ms=min(self._picture_sec * 1000, PROMISED_SHARE * self._patience_ms))
        seat = self._seats.get_nowait()
        try:
            started_ms = self._clock.boot_ms()
            found = steps.find(prepared, crew.detector(steps.profile, seat))
            took_sec = (self._clock.boot_ms() - started_ms) / 1000
            self._picture_sec += NEWEST_WEIGHT * (took_sec - self._picture_sec)
            return found
        finally:
            self._seats.put(seat)

    @contextmanager
    def _at_work(self, place: Place) -> Iterator[None]:
        """While a thread has a step of it."""
        place.step_since_ms = self._clock.boot_ms()
        self._worked_on[id(place)] = place
        try:
            yield
        finally:
            place.step_since_ms = None
            self._worked_on.pop(id(place), None)

    def _check(self, place: Place, needs_ms: float = 0.0) -> None:
        if place.left:
            raise NotWanted("the client left before its picture's turn")
        if self._clock.boot_ms() + needs_ms > place.expires_ms:
            raise self._late()

    def _late(self) -> Overloaded:
        return self._refusal(f"this picture's turn did not come in time for an answer within {self.patience_sec:g} s")

    def _wait_sec(self) -> float:
        """When those in the line now should be through."""
        return self._taken * self._picture_sec / self._crew.seats

    def _refusal(self, cause: str) -> Overloaded:
        self._refused += 1
        now_ms = self._clock.boot_ms()
        if self._reported_ms is None or now_ms - self._reported_ms >= REPORT_EVERY_MS:
            self._reported_ms = now_ms
            log.warning("overloaded", refused_in_all=self._refused, places=self._places_max, cause=cause)
        retry_after_sec = min(max(math.ceil(self._wait_sec()), 1), RETRY_AFTER_SEC_MAX)
        return Overloaded(f"{cause}; ask again later", retry_after_sec)
