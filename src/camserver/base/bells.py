"""Words between the parts of one process: there is something to do for you, look at once.

Nothing depends on a bell. Whoever listens looks now and then as well, because what another process did rings nothing
here; a bell saves people the wait where the parts share a process.
"""

import asyncio
from dataclasses import dataclass, field

from camserver.base.clock import Clock


class Bell:
    """For one listener. What rings while nobody waits is heard by the next wait."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    @property
    def is_rung(self) -> bool:
        return self._rung.is_set()

    async def wait(self, clock: Clock, seconds: float) -> bool:
        """Until it rings, or so long; whether it rang."""
        if not self._rung.is_set():
            timer = asyncio.ensure_future(clock.sleep(seconds))
            rung = asyncio.ensure_future(self._rung.wait())
            try:
                await asyncio.wait({timer, rung}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                timer.cancel()
                rung.cancel()
        was_rung = self._rung.is_set()
        self._rung.clear()
        return was_rung


@dataclass(frozen=True, slots=True)
class Bells:
    """Those of a process."""

    live: Bell = field(default_factory=Bell)  # a viewing wants to be fed
    errands: Bell = field(default_factory=Bell)  # a worker is to do something for somebody
