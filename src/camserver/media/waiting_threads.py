"""Threads for what may hang: each kind of waiting has a few of its own, so that what hangs holds up only its like.

The event loop's own threads are for work that ends by itself.
"""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class WaitingThreads:
    def __init__(self, name: str, count: int) -> None:
        """They are made when they are needed."""
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` returns. Nobody waits for it any more when this is cancelled, but it goes on."""
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: context.run(work, *args, **kwargs))


NAMES = WaitingThreads("names", 8)  # the name service: seconds, when it does not answer
FILES = WaitingThreads("camera-files", 8)  # pictures in files, perhaps of a network drive
PROBES = WaitingThreads("probes", 16)  # connections to cameras that are tried for the first time
