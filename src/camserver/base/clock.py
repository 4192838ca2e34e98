"""Time as services see it.

Time is UTC epoch milliseconds. Nothing asks the wall clock directly: a service gets a `Clock`, in production
a `StoreClock`, which is the machine's boot-time clock plus the offset to the database's time. So a wall clock
that jumps moves no lease, lock or cooldown. Tests pass a clock of their own and move it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from camserver.base.errors import Retry
from camserver.base.log import get_logger

log = get_logger(__name__)

SYNC_EVERY_SEC = 30.0
# An answer that took longer says too little about when it was given; the next one is 30 s away.
ROUND_TRIP_MAX_MS = 2_000


class Clock(Protocol):
    """Where a service gets its time from."""

    def now_ms(self) -> int:
        """UTC epoch milliseconds."""

    def boot_ms(self) -> int:
        """Milliseconds since boot, suspend included; never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Waits at least `seconds` of this clock."""


def boot_time_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def wall_time_ms() -> int:
    return time.time_ns() // 1_000_000


def boot_id() -> str:
    """Names this boot of the machine, so that a spool knows whether its boot-time stamps still count."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class StoreClock:
    """Boot-time clock plus an offset: to the database's time in a server, to the server's time in a worker.

    Until the first `set_offset` it is anchored at the wall clock of its making.
    """

    def __init__(self) -> None:
        self._offset_ms = wall_time_ms() - boot_time_ms()
        self.synced = False

    def now_ms(self) -> int:
        return boot_time_ms() + self._offset_ms

    def boot_ms(self) -> int:
        return boot_time_ms()

    def at_boot_ms(self, boot_ms: int) -> int:
        """What this clock calls a moment that was stamped with the boot-time clock."""
        return boot_ms + self._offset_ms

    def observe(self, remote_ms: int, sent_boot_ms: int, received_boot_ms: int) -> None:
        """Takes a remote time answered between two local moments; half the round trip is the best guess."""
        self._offset_ms = remote_ms - (sent_boot_ms + received_boot_ms) // 2
        self.synced = True

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def sync(clock: StoreClock, ask: Callable[[], Awaitable[int | None]]) -> bool:
    """Asks for the remote time once. False when there is none to follow: the clock then stays as it is."""
    sent_boot_ms = clock.boot_ms()
    remote_ms = await ask()
    received_boot_ms = clock.boot_ms()
    if remote_ms is None:
        return False
    round_trip_ms = received_boot_ms - sent_boot_ms
    if clock.synced and round_trip_ms > ROUND_TRIP_MAX_MS:
        log.warning("answer about the time was too slow to be used", round_trip_ms=round_trip_ms)
    else:
        clock.observe(remote_ms, sent_boot_ms, received_boot_ms)
    return True


async def follow(clock: StoreClock, ask: Callable[[], Awaitable[int | None]]) -> None:
    """Keeps the clock at the remote time until cancelled; in an outage it runs on with its last offset."""
    while True:
        await clock.sleep(SYNC_EVERY_SEC)
        try:
            await sync(clock, ask)
        except Retry as error:
            log.warning("the time could not be asked for; the last offset stays", cause=error.message)
