"""Waiting for what only the outside world can bring about: bounded, generous, and it says what never came."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

# Far above what any machine needs: reaching it means it will never happen.
TIMEOUT_SEC = 60.0
# What is waited for is often there at once: looked at often first, then seldom.
FIRST_STEP_SEC = 0.001
STEP_SEC = 0.02


def poll(probe: Callable[[], T | None], what: str, timeout_sec: float = TIMEOUT_SEC) -> T:
    """The first answer of `probe` that is neither None nor False."""
    deadline = time.monotonic() + timeout_sec
    step_sec = FIRST_STEP_SEC
    while True:
        answer = probe()
        if answer is not None and answer is not False:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_sec:g} s")
        time.sleep(step_sec)
        step_sec = min(2 * step_sec, STEP_SEC)


async def poll_async(probe: Callable[[], Awaitable[T | None]], what: str, timeout_sec: float = TIMEOUT_SEC) -> T:
    """`poll` for a probe that awaits; the loop stays free meanwhile."""
    deadline = time.monotonic() + timeout_sec
    step_sec = FIRST_STEP_SEC
    while True:
        answer = await probe()
        if answer is not None and answer is not False:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_sec:g} s")
        await asyncio.sleep(step_sec)
        step_sec = min(2 * step_sec, STEP_SEC)


async def until(condition: Callable[[], bool], what: str, timeout_sec: float = TIMEOUT_SEC) -> None:
    """Waits until `condition()` holds."""

    async def probe() -> bool:
        return condition()

    await poll_async(probe, what, timeout_sec)
