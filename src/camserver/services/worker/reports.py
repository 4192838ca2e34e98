"""What the worker has to tell the server: EVENTs, kept while the socket is down, in order and bounded.

A report is forgotten once it was written to a socket. Those that must not be missed are made again: pipeline_ready
with every new connection and every repeated START, pipeline_stopped with every repeated STOP.
"""

import asyncio
import itertools
from collections import deque

from pydantic import JsonValue

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.wire.worker import Report

log = get_logger(__name__)

WAITING_MAX = 1000


class Reports:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seq = itertools.count(1)
        self._waiting: deque[Report] = deque()
        self._came = asyncio.Event()
        self._left = asyncio.Event()
        self.dropped = 0

    def add(
        self,
        event_type: str,
        camera_id: str | None = None,
        generation: int | None = None,
        **payload: JsonValue,
    ) -> None:
        """Queues a report; past the bound the oldest is dropped, which the metrics show."""
        if len(self._waiting) >= WAITING_MAX:
            oldest = self._waiting.popleft()
            self.dropped += 1
            log.warning("report dropped: too many wait", event_type=oldest.event_type, seq=oldest.seq)
        self._waiting.append(
            Report(
                camera_id=camera_id,
                generation=generation,
                seq=next(self._seq),
                event_type=event_type,
                ts=self._clock.now_ms(),
                boot_ms=self._clock.boot_ms(),
                payload=payload,
            )
        )
        self._came.set()

    async def first(self) -> Report:
        """The oldest report, which stays until `sent`."""
        while not self._waiting:
            self._came.clear()
            await self._came.wait()
        return self._waiting[0]

    def sent(self, report: Report) -> None:
        """Forgets it, unless the bound has done so meanwhile."""
        if self._waiting and self._waiting[0] is report:
            self._waiting.popleft()
            self._left.set()

    async def until_sent(self) -> None:
        """Until nothing waits."""
        while self._waiting:
            self._left.clear()
            await self._left.wait()

    def __len__(self) -> int:
        return len(self._waiting)
