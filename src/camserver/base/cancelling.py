"""Being told to stop, where something else is caught.

A task that is cancelled gives back what it holds on its way out. When that fails too, what is raised is no longer the
cancellation but that failure; a loop that catches failures and goes on would then never stop. `asyncio.wait_for` of
Python 3.11, also inside a library, forgets a cancellation that comes at the same moment as what was waited for.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def apart(work: Coroutine[Any, Any, T]) -> T:
    """Awaits it in a task of its own, which is cancelled with ours.

    For groups of tasks: one of Python 3.11 in which something fails leaves its own task looking cancelled, so that
    `go_on_unless_cancelled` would end it.
    """
    return await asyncio.create_task(work)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Awaits what must not be left half done, giving back what is held above all; a cancellation waits for it."""
    working = asyncio.create_task(work)
    told: asyncio.CancelledError | None = None
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError as error:
            told = error
    if told is None:
        return working.result()
    if not working.cancelled() and (failed := working.exception()) is not None:
        raise failed from told
    raise told


def go_on_unless_cancelled() -> None:
    """For whoever has just caught an error and means to go on: raises the cancellation that the error may hide."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
