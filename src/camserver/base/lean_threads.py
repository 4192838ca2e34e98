"""A few threads for short pieces of work that would block the event loop, such as a read of a file.

An executor's futures cost as much as a short read: each is made, locked and chained to one of the loop. Here work
goes through a queue, and its result straight back to the loop.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

R = TypeVar("R")
_Work = tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]]


class LeanThreads:
    """Started with the first piece of work. They end with the process, or when they are closed."""

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._asked: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def run(self, work: Callable[[], R]) -> asyncio.Future[R]:
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._serve, name=f"{self._name}-{number}", daemon=True)
                for number in range(self._count)
            ]
            for thread in self._threads:
                thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._asked.put((loop, future, work))
        return future

    def _serve(self) -> None:
        while (asked := self._asked.get()) is not None:
            loop, future, work = asked
            result, error = None, None
            try:
                result = work()
            except BaseException as caught:
                error = caught
            # Whoever asked in a loop that is closed waits no more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, future, result, error)
            # Nothing of a piece of work outlives it here until the next one comes.
            del asked, loop, future, work, result, error

    def close(self) -> None:
        """Waits for what is under way."""
        for _ in self._threads:
            self._asked.put(None)
        for thread in self._threads:
            thread.join()


def _settle(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():  # whoever asked was cancelled
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
