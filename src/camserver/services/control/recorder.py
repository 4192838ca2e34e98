"""Records looks in batches: those that arrive together share one transaction.

A batch is what waits when a writer becomes free, so a lone look is not held back and a storm is not written one by
one. A look that makes its batch fail is found by trying each alone: it must not fail its neighbours.
"""

import asyncio
from dataclasses import dataclass

from camserver.base.errors import Retry, StoreBusy
from camserver.base.log import get_logger
from camserver.domain.leases import LeasePolicy
from camserver.store import Store
from camserver.store.frames import Look, Recorded, record

log = get_logger(__name__)

BATCH_MAX = 64
WAITING_MAX = 1024
WRITERS = 4


@dataclass(frozen=True, slots=True)
class _Waiting:
    look: Look
    answer: asyncio.Future[Recorded]


class Recorder:
    def __init__(self, store: Store, policy: LeasePolicy) -> None:
        self._store = store
        self._policy = policy
        self._waiting: asyncio.Queue[_Waiting] = asyncio.Queue(WAITING_MAX)

    async def record(self, look: Look) -> Recorded:
        """Returns once the look is durable, or raises: then it may or may not be, and a repeat tells."""
        waiting = _Waiting(look, asyncio.get_running_loop().create_future())
        try:
            self._waiting.put_nowait(waiting)
        except asyncio.QueueFull:
            log.warning("looks arrive faster than they can be recorded", waiting=WAITING_MAX)
            raise StoreBusy(f"{WAITING_MAX} looks are waiting to be recorded; try again") from None
        return await waiting.answer

    async def run(self) -> None:
        """Writes until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._write_on())

    async def _write_on(self) -> None:
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < BATCH_MAX and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            # One who hung up does not wait for an answer; its look, if still wanted, comes again.
            batch = [waiting for waiting in batch if not waiting.answer.done()]
            if batch:
                await self._write(batch)

    async def _write(self, batch: list[_Waiting]) -> None:
        looks = tuple(waiting.look for waiting in batch)
        try:
            answers = await self._store.write(record, looks, self._policy)
        except Exception as error:
            if len(batch) == 1 or isinstance(error, Retry):
                _fail(batch, error)
                return
            for waiting in batch:
                await self._write([waiting])
            return
        except BaseException:
            for waiting in batch:
                waiting.answer.cancel()
            raise
        for waiting, answer in zip(batch, answers, strict=True):
            if not waiting.answer.done():
                waiting.answer.set_result(answer)


def _fail(batch: list[_Waiting], error: Exception) -> None:
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
