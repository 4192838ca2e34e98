"""A worker's hold on one camera: a generation, and until when it counts (decision 36).

Time is the boot-time clock, which a frozen process or a changed wall clock can't cheat: whoever captures asks
`covers` with the moment of the capture. A hold that ran out is not over: when nobody else took the camera, the next
renewal covers it again at the same generation.
"""

import asyncio
from collections.abc import Callable

from camserver.base.clock import Clock
from camserver.services.worker.waiting import event_within


class Hold:
    """Not covered until the first renewal: a START alone does not say when its lease was granted."""

    def __init__(self, camera_id: str, generation: int, clock: Clock) -> None:
        self.camera_id = camera_id
        self.generation = generation
        self._clock = clock
        self._deadline_boot_ms: int | None = None
        self._renewed = asyncio.Event()

    @property
    def is_covered(self) -> bool:
        return self.covers(self._clock.boot_ms())

    def covers(self, boot_ms: int) -> bool:
        """Whether a picture taken at this moment is taken as the camera's holder."""
        return self._deadline_boot_ms is not None and boot_ms < self._deadline_boot_ms

    def renew(self, deadline_boot_ms: int) -> None:
        """Answers may overtake one another; an earlier deadline never replaces a later one."""
        if self._deadline_boot_ms is None or deadline_boot_ms > self._deadline_boot_ms:
            self._deadline_boot_ms = deadline_boot_ms
            self._renewed.set()

    async def until_covered(self) -> None:
        while not self.is_covered:
            self._renewed.clear()
            await self._renewed.wait()

    def poke(self) -> None:
        """Has whoever sleeps ask again until when."""
        self._renewed.set()

    async def sleep_until(self, until_boot_ms: Callable[[], int]) -> bool:
        """Waits for that moment of the boot-time clock, which may change. False when the hold runs out before."""
        while self._deadline_boot_ms is not None and self.is_covered:
            now_boot_ms, boot_ms = self._clock.boot_ms(), until_boot_ms()
            if now_boot_ms >= boot_ms:
                return True
            self._renewed.clear()
            pause_ms = min(boot_ms, self._deadline_boot_ms) - now_boot_ms
            await event_within(self._clock, pause_ms / 1000, self._renewed)
        return False
