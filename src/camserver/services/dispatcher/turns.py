"""How a dispatcher's loops wait: for their turn, for a store that is away, for something to happen."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger

log = get_logger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

# A clock that jumps ahead is noticed this soon.
STEP_SEC = 1.0
# How often a store that is away is tried again.
STORE_PAUSE_SEC = 1.0


async def take_turns(clock: Clock, every_ms: int, name: str, turn: Callable[[], Awaitable[None]]) -> None:
    """Calls `turn` until cancelled, at most once in `every_ms`. A store that is away is waited for."""
    due_boot_ms = 0
    while True:
        started_boot_ms = clock.boot_ms()
        if started_boot_ms >= due_boot_ms:
            due_boot_ms = started_boot_ms + every_ms
            try:
                await turn()
            except Retry as error:
                log.warning(f"{name}_put_off", why=error.message)
            except Exception:
                # What is broken here must not keep the analysis from going on.
                log.exception(f"{name}_broke")
            go_on_unless_cancelled()
        await clock.sleep(STEP_SEC)


async def patiently(clock: Clock, call: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
    """Repeats a call while the store is away. What was done without our learning of it finds its fence gone."""
    while True:
        try:
            return await call(*args, **kwargs)
        except Retry as error:
            log.warning("store_awaited", why=error.message)
            go_on_unless_cancelled()
            await clock.sleep(STORE_PAUSE_SEC)


async def until_set(event: asyncio.Event, clock: Clock, at_most_sec: float) -> None:
    """Until the event is set or the time is over, whichever is first."""
    woken = asyncio.create_task(event.wait())
    idle = asyncio.ensure_future(clock.sleep(at_most_sec))
    try:
        await asyncio.wait({woken, idle}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        woken.cancel()
        idle.cancel()
