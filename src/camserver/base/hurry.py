"""A deadline for work that is under way already: nobody knows it when the work begins.

Beside the time-outs that work has of its own. It is for whoever must end and waits for somebody who does not answer.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Hurry:
    def __init__(self) -> None:
        self._until: float | None = None
        self._under_way: set[asyncio.Timeout] = set()

    def within(self, seconds: float) -> None:
        """All that is under way, or begins from now on, ends within so long: with TimeoutError if need be."""
        self._until = asyncio.get_running_loop().time() + seconds
        for patience in self._under_way:
            patience.reschedule(self._until)

    @asynccontextmanager
    async def heeded(self) -> AsyncIterator[None]:
        async with asyncio.timeout_at(self._until) as patience:
            self._under_way.add(patience)
            try:
                yield
            finally:
                self._under_way.discard(patience)
