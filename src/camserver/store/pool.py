"""A bounded pool of database connections with a time-out for getting one.

Used for both servers, so that exhaustion, lost connections and shutdown behave the same on them. A connection
whose state is unknown (cancelled or failed in the middle) is closed, never reused.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from camserver.base.errors import StoreBusy, StoreUnavailable

C = TypeVar("C")


class Lend(Generic[C]):
    """A connection on loan. Unless its user vouches that it is `clean`, the pool closes it on return."""

    __slots__ = ("clean", "connection")

    def __init__(self, connection: C) -> None:
        self.connection = connection
        self.clean = False


class Pool(Generic[C]):
    def __init__(
        self,
        connect: Callable[[], Awaitable[C]],
        disconnect: Callable[[C], Awaitable[None]],
        *,
        size_max: int,
        acquire_timeout_sec: float,
    ) -> None:
        self._connect = connect
        self._disconnect = disconnect
        self._free: deque[C] = deque()
        self._places = asyncio.Semaphore(size_max)
        self._closed = False
        self.size_max = size_max
        self.acquire_timeout_sec = acquire_timeout_sec
        self.in_use = 0

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Lend[C]]:
        await self._take_place()
        try:
            self.in_use += 1
            loan = Lend(self._free.pop() if self._free else await self._connect())
            try:
                yield loan
            finally:
                await self._give_back(loan)
        finally:
            self.in_use -= 1
            self._places.release()

    async def _take_place(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        try:
            async with asyncio.timeout(self.acquire_timeout_sec):
                await self._places.acquire()
        except TimeoutError:
            raise StoreBusy(
                f"no database connection became free within {self.acquire_timeout_sec:g} s: all {self.size_max} are "
                "in use; try again, or raise [store] pool_size",
                pool_size=self.size_max,
            ) from None

    async def _give_back(self, loan: Lend[C]) -> None:
        if not loan.clean or self._closed:
            await self._disconnect(loan.connection)
        else:
            self._free.append(loan.connection)

    async def forget_free(self) -> None:
        """Closes the idle connections, for instance after the server went away under one of them."""
        while self._free:
            await self._disconnect(self._free.pop())

    async def close(self) -> None:
        self._closed = True
        await self.forget_free()
