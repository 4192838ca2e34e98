"""A clock that stands still until a test moves it.

`await clock.advance(ms)` goes from one sleeper's moment to the next, in order, and after each lets every task
run until it waits for something. Work outside the loop (files, sockets, threads) is not waited for: after it,
wait for its effect, or for the task to sleep again with `until_sleeping`.
"""

import asyncio
import heapq
import itertools

START_MS = 1_767_225_600_000  # 2026-01-01 00:00:00 UTC; the boot-time clock starts at another value on purpose
START_BOOT_MS = 5_000_000
TURNS_MAX = 10_000
# Where the loop does not show whether something is left to run, this many turns must do.
BLIND_TURNS = 100
WAIT_TIMEOUT_SEC = 60


class ManualClock:
    """Implements `camserver.base.clock.Clock`; moved only by `advance` and `jump_wall`."""

    def __init__(self, now_ms: int = START_MS, boot_ms: int = START_BOOT_MS) -> None:
        self._boot_ms = boot_ms
        self._offset_ms = now_ms - boot_ms
        self._order = itertools.count()
        # (boot-time ms when due, order of arrival, what to wake)
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals: list[tuple[int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self._boot_ms + self._offset_ms

    def boot_ms(self) -> int:
        return self._boot_ms

    async def sleep(self, seconds: float) -> None:
        """Waits until the clock was moved `seconds` on; a sleep of nothing only lets others run."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        # Rounded up: a sleeper that wakes must find its time passed.
        due_ms = self._boot_ms + -int(-seconds * 1000 // 1)
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (due_ms, next(self._order), wake))
        self._tell_arrivals()
        await wake

    @property
    def sleeping(self) -> int:
        """How many tasks sleep now."""
        return sum(not wake.done() for _, _, wake in self._sleepers)

    @property
    def next_due_ms(self) -> int | None:
        """How far the next sleeper is away."""
        self._forget_cancelled()
        return self._sleepers[0][0] - self._boot_ms if self._sleepers else None

    async def advance(self, ms: int) -> None:
        """Moves on by `ms`, waking sleepers at their moments, also those who fall asleep again meanwhile."""
        if ms < 0:
            raise ValueError(f"the boot-time clock never goes back, and this would be {-ms} ms; see jump_wall")
        target_ms = self._boot_ms + ms
        await self._rest()
        while (due_ms := self._due_by(target_ms)) is not None:
            self._boot_ms = due_ms
            _, _, wake = heapq.heappop(self._sleepers)
            wake.set_result(None)
            await self._rest()
        self._boot_ms = target_ms

    async def _rest(self) -> None:
        """Lets everything run that can without this clock."""
        await settle()

    def jump_wall(self, ms: int) -> None:
        """Sets the wall clock forward or back; the boot-time clock and sleepers do not notice."""
        self._offset_ms += ms

    async def until_sleeping(self, count: int = 1) -> None:
        """Waits, in real time, until at least `count` tasks sleep: for tasks with I/O before their sleep."""
        if self.sleeping >= count:
            return
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals.append((count, arrived))
        try:
            await asyncio.wait_for(arrived, WAIT_TIMEOUT_SEC)
        except TimeoutError as error:
            raise TimeoutError(f"{self.sleeping} of {count} tasks sleep after {WAIT_TIMEOUT_SEC} s") from error

    def _due_by(self, target_ms: int) -> int | None:
        self._forget_cancelled()
        if self._sleepers and self._sleepers[0][0] <= target_ms:
            return self._sleepers[0][0]
        return None

    def _forget_cancelled(self) -> None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)

    def _tell_arrivals(self) -> None:
        for count, arrived in self._arrivals:
            if self.sleeping >= count and not arrived.done():
                arrived.set_result(None)
        self._arrivals = [(count, arrived) for count, arrived in self._arrivals if not arrived.done()]


async def settle() -> None:
    """Lets every task of the loop run until it waits for a timer, the outside or another task."""
    ready = getattr(asyncio.get_running_loop(), "_ready", None)
    for _ in range(BLIND_TURNS if ready is None else TURNS_MAX):
        await asyncio.sleep(0)
        # While this runs, the queue holds exactly the callbacks that could run without us waiting.
        if ready is not None and not ready:
            return
    if ready is not None:
        raise RuntimeError(f"tasks still run after {TURNS_MAX} turns of the loop: does one of them spin?")
