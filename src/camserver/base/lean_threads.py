"""A few threads for short pieces of work that would block the event loop, such as a read of a file.

An executor's futures cost as much as a short read: each is made, locked and chained to one of the loop. Here work
goes through a queue, and its result straight back to the loop.

Threads and loop share one interpreter, so each that is woken costs the others time. What is asked for in one turn of
the loop is handed over when that turn ends, and one thread does it all while it keeps up; results that are there
before the loop looks for them come back together. Others are woken when work has waited for a moment: behind
something slow.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

R = TypeVar("R")
_Work = tuple["_Home", asyncio.Future[Any], Callable[[], Any]]
_Result = tuple[asyncio.Future[Any], object, BaseException | None]

# How long work waits for a thread that is busy before another one is woken.
PATIENCE_SEC = 0.005


class _Home:
    """A loop that asks, and results that are on their way to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.asked: list[_Work] = []
        self.done: deque[_Result] = deque()
        self._is_told = False

    def give(self, result: _Result) -> None:
        """By a thread."""
        self.done.append(result)
        if not self._is_told:
            self._is_told = True
            # Whoever asked in a loop that is closed waits no more.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        # Before the results are taken: what comes from now on is told of again.
        self._is_told = False
        while self.done:
            future, result, error = self.done.popleft()
            if future.done():  # whoever asked was cancelled
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)


class LeanThreads:
    """Started with the first piece of work. They end with the process, or when they are closed."""

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._work: deque[_Work] = deque()
        self._lock = threading.Lock()
        self._idle: list[threading.Lock] = []  # of threads that wait, the one that worked last at the end
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._is_watched = False
        self._begun = 0  # pieces of work so far
        self._home: _Home | None = None

    def run(self, work: Callable[[], R]) -> asyncio.Future[R]:
        loop = asyncio.get_running_loop()
        home = self._home
        if home is None or home.loop is not loop:
            home = self._home = _Home(loop)
        if not self._threads:
            self._start()
        future: asyncio.Future[R] = loop.create_future()
        home.asked.append((home, future, work))
        if len(home.asked) == 1:
            loop.call_soon(self._hand_over, home)
        return future

    def _start(self) -> None:
        self._threads = [
            threading.Thread(target=self._serve, name=f"{self._name}-{number}", daemon=True)
            for number in range(self._count)
        ]
        for thread in self._threads:
            thread.start()

    def _hand_over(self, home: _Home) -> None:
        with self._lock:
            self._work.extend(home.asked)
            home.asked.clear()
            all_wait, is_one = len(self._idle) == self._count, len(self._work) == 1
        if all_wait:
            self._wake()
        if not self._is_watched and not (all_wait and is_one):
            # One is at work and takes this next, unless it is slow.
            self._is_watched = True
            home.loop.call_later(PATIENCE_SEC, self._watch, home.loop, self._begun)

    def _watch(self, loop: asyncio.AbstractEventLoop, begun: int) -> None:
        """Wakes one more thread where work waits and none was begun for a while."""
        self._is_watched = bool(self._work) and (self._begun != begun or self._wake())
        if self._is_watched:
            loop.call_later(PATIENCE_SEC, self._watch, loop, self._begun)

    def _wake(self) -> bool:
        with self._lock:
            bell = self._idle.pop() if self._idle else None
        if bell is not None:
            bell.release()
        return bell is not None

    def _serve(self) -> None:
        bell = threading.Lock()
        bell.acquire()
        while (asked := self._next(bell)) is not None:
            home, future, work = asked
            result, error = None, None
            try:
                result = work()
            except BaseException as caught:
                error = caught
            home.give((future, result, error))
            # Nothing of a piece of work outlives it here until the next one comes.
            del asked, home, future, work, result, error

    def _next(self, bell: threading.Lock) -> _Work | None:
        """The next piece of work, waiting for it; None: there is none any more."""
        while True:
            with self._lock:
                if self._work:
                    self._begun += 1
                    return self._work.popleft()
                if self._is_closed:
                    return None
                self._idle.append(bell)
            bell.acquire()

    def close(self) -> None:
        """Waits for what is under way."""
        with self._lock:
            if self._home is not None:
                self._work.extend(self._home.asked)
                self._home.asked.clear()
            self._is_closed = True
            bells, self._idle = self._idle, []
        for bell in bells:
            bell.release()
        for thread in self._threads:
            thread.join()
