"""Group work: what many tasks submit while a batch is under way goes into the next one.

So a batch costs nobody a wait: a lone item runs at once, and under load batches grow by themselves. An item that
can't be done hurts only the task that submitted it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar, cast

from camserver.base.errors import Bug, Retry, StoreBusy

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_Submitted = tuple[Item, asyncio.Future[Answer]]


class Batcher(Generic[Item, Answer]):
    """`run` gets up to `size_max` items and does all of them, answering in their order, or raises and does none.

    When it asks to retry later, all of its items do. When it fails in another way, each item is run alone, since one
    of them may be what the others failed for. Whoever stops waiting has its item run all the same.
    `linger_sec` says how long a batch waits for more items before it runs, asked anew for each. With `gathers` it
    waits no longer than until as many are there as when the last batch ended, so one who comes alone does not wait.
    With `at_once` above 1 so many batches may be under way together, for a `run` that mostly waits; which of them
    ends first is open. One begins beside another when `beside_min` items wait, since few large ones cost less than
    many small ones.
    """

    def __init__(
        self,
        run: Callable[[tuple[Item, ...]], Awaitable[Sequence[Answer]]],
        *,
        size_max: int,
        waiting_max: int,
        linger_sec: Callable[[], float] | None = None,
        at_once: int = 1,
        beside_min: int = 1,
        gathers: bool = False,
    ) -> None:
        self._run = run
        self._size_max = size_max
        self._waiting_max = waiting_max
        self._linger_sec = linger_sec
        self._at_once = at_once
        self._beside_min = beside_min
        self._gathers = gathers
        self._crowd = 1  # items of the last batch, and those that waited when it ended
        self._gathered: asyncio.Future[None] | None = None  # as many are there; None: nobody waits for that
        self._waiting: deque[_Submitted[Item, Answer]] = deque()
        self._runners: set[asyncio.Task[None]] = set()
        self._is_collecting = False  # one of the runners is about to take what waits

    async def submit(self, item: Item) -> Answer:
        if len(self._waiting) >= self._waiting_max:
            raise StoreBusy(f"{self._waiting_max} writes are waiting already; try again")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._gathered is not None and len(self._waiting) >= self._crowd:
            self._end_gathering()
        self._start_runner()
        return await future

    async def close(self) -> None:
        """Waits until everything submitted so far was run."""
        while self._runners:
            await asyncio.wait(self._runners)

    def _start_runner(self) -> None:
        if self._is_due(len(self._runners)) and not self._is_collecting and len(self._runners) < self._at_once:
            self._is_collecting = True
            self._runners.add(asyncio.create_task(self._run_batches()))

    def _is_due(self, others: int) -> bool:
        """Whether enough waits for one more batch beside the others; without others, anything is enough."""
        return len(self._waiting) >= (self._beside_min if others else 1)

    async def _run_batches(self) -> None:
        batch: list[_Submitted[Item, Answer]] = []
        try:
            while self._is_due(len(self._runners) - 1):
                self._is_collecting = True
                if self._linger_sec is not None and len(self._waiting) < self._size_max:
                    await self._linger(self._linger_sec())
                batch = [self._waiting.popleft() for _ in range(min(self._size_max, len(self._waiting)))]
                self._is_collecting = False
                self._start_runner()
                await self._run_batch(batch)
                self._crowd = min(len(batch) + len(self._waiting), self._size_max)
                if self._is_collecting:  # another one has taken over
                    return
        except BaseException:
            # Cancelled: nobody is left to answer these.
            for _, future in (*batch, *self._waiting):
                future.cancel()
            self._waiting.clear()
            self._is_collecting = False
            raise
        finally:
            self._runners.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _linger(self, seconds: float) -> None:
        if seconds <= 0 or (self._gathers and len(self._waiting) >= self._crowd):
            return
        if not self._gathers:
            await asyncio.sleep(seconds)
            return
        loop = asyncio.get_running_loop()
        self._gathered = loop.create_future()
        timer = loop.call_later(seconds, self._end_gathering)
        try:
            await self._gathered
        finally:
            timer.cancel()
            self._gathered = None

    def _end_gathering(self) -> None:
        if self._gathered is not None and not self._gathered.done():
            self._gathered.set_result(None)

    async def _run_batch(self, batch: Sequence[_Submitted[Item, Answer]]) -> None:
        try:
            answers = await self._run(tuple(item for item, _ in batch))
        except Exception as error:
            if isinstance(error, Retry) or len(batch) == 1:
                _fail(batch, error)
                return
            for single in batch:
                await self._run_batch([single])
            return
        if len(answers) != len(batch):
            _fail(batch, Bug(f"a batch of {len(batch)} items got {len(answers)} answers"))
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)


def _fail(batch: Sequence[tuple[object, asyncio.Future[Answer]]], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
