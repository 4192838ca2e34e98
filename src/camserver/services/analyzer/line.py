"""The line in front of the detectors: bounded, first come first served, and nobody waits for what is not wanted.

A request takes a place before its body is read, so the places bound the memory too. When all are taken it is refused
with the time after which it is worth asking again.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from camserver.base.clock import Clock
from camserver.base.errors import Retry, TooManyTries
from camserver.base.log import get_logger
from camserver.services.analyzer.detector import Detector

log = get_logger(__name__)

T = TypeVar("T")

# The first guess of how long a picture takes; what is measured then replaces it bit by bit.
FIRST_GUESS_SEC = 0.1
NEWEST_WEIGHT = 0.1
RETRY_AFTER_SEC_MAX = 30
REPORT_EVERY_MS = 10_000


class Overloaded(TooManyTries):
    code = "overloaded"

    def __init__(self, message: str, retry_after_sec: int = 1) -> None:
        super().__init__(message, retry_after_sec=retry_after_sec)
        self.retry_after_sec = retry_after_sec


class NotWanted(Retry):
    """Whoever asked is gone; there is nobody to answer."""

    code = "not_wanted"


class Line:
    def __init__(self, detectors: Sequence[Detector], waiting_max: int, clock: Clock) -> None:
        self._idle: asyncio.Queue[Detector] = asyncio.Queue()
        for detector in detectors:
            self._idle.put_nowait(detector)
        self._threads = ThreadPoolExecutor(len(detectors), thread_name_prefix="detector")
        self._detectors = len(detectors)
        self._places_max = len(detectors) + waiting_max
        self._clock = clock
        self._taken = 0
        self._picture_sec = FIRST_GUESS_SEC
        self._refused = 0
        self._reported_ms: int | None = None

    @property
    def taken(self) -> int:
        """Requests that are being read, wait or are worked on."""
        return self._taken

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place in the line; Overloaded when there is none."""
        if self._taken >= self._places_max:
            self._report_refused()
            raise Overloaded(
                f"{self._taken} pictures wait or are being analyzed, and there is no room for more; ask again later",
                self._retry_after_sec(),
            )
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1

    async def run(self, work: Callable[[Detector], T], is_wanted: Callable[[], Awaitable[bool]]) -> T:
        """Runs `work` in a thread with the next free detector, unless it is no longer wanted by then."""
        detector = await self._idle.get()
        try:
            wanted = await is_wanted()
        except BaseException:
            self._idle.put_nowait(detector)
            raise
        if not wanted:
            self._idle.put_nowait(detector)
            raise NotWanted("the client left before its picture's turn")
        started_ms = self._clock.boot_ms()
        working = asyncio.get_running_loop().run_in_executor(self._threads, work, detector)
        # A cancelled request does not stop the thread, and a detector is for one thread at a time.
        working.add_done_callback(lambda done: self._finished(done, detector, started_ms))
        return await asyncio.shield(working)

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)

    def _finished(self, done: asyncio.Future[T], detector: Detector, started_ms: int) -> None:
        self._idle.put_nowait(detector)
        if not done.cancelled() and done.exception() is None:
            took_sec = (self._clock.boot_ms() - started_ms) / 1000
            self._picture_sec += NEWEST_WEIGHT * (took_sec - self._picture_sec)

    def _retry_after_sec(self) -> int:
        """When those in the line now should be through."""
        wait_sec = self._taken * self._picture_sec / self._detectors
        return min(max(math.ceil(wait_sec), 1), RETRY_AFTER_SEC_MAX)

    def _report_refused(self) -> None:
        self._refused += 1
        now_ms = self._clock.boot_ms()
        if self._reported_ms is None or now_ms - self._reported_ms >= REPORT_EVERY_MS:
            self._reported_ms = now_ms
            log.warning("overloaded", refused_in_all=self._refused, places=self._places_max)
