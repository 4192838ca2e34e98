"""Waiting bounded by the service's clock: for an event, or for something that may take too long.

The clock is the one a service was given, so a test that moves it moves these bounds as well.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from camserver.base.clock import Clock

T = TypeVar("T")


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns; it is cancelled and TimeoutError raised when `seconds` pass first."""
    task = asyncio.ensure_future(work)
    if await _first(clock, seconds, task):
        return task.result()
    raise TimeoutError(f"not done within {seconds:g} s")


async def event_within(clock: Clock, seconds: float, event: asyncio.Event) -> bool:
    """Whether `event` was set before `seconds` passed."""
    if event.is_set():
        return True
    return await _first(clock, seconds, asyncio.ensure_future(event.wait())) or event.is_set()


async def _first(clock: Clock, seconds: float, task: "asyncio.Future[Any]") -> bool:
    """Whether `task` ended before the time was up; afterwards neither of the two is left running."""
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        return task.done()
    finally:
        await end(task, timer)


async def end(*tasks: "asyncio.Future[Any]") -> None:
    """Cancels what still runs and waits until it has ended; what it raised stays in it."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
