"""The epoch under which this process writes objects (decision 13).

Opened at start, renewed while the process lives, and replaced when somebody ended it because this process was
thought dead. What was written under the ended one must be written again.
"""

import asyncio

from camserver.base.clock import Clock
from camserver.base.errors import Retry, Unavailable
from camserver.base.log import get_logger
from camserver.base.ready import Ready
from camserver.store import Store
from camserver.store.epochs import end_epoch, open_epoch, renew_epoch

log = get_logger(__name__)

RENEW_EVERY_SEC = 10.0
OPEN_RETRY_SEC = 1.0


class Epoch:
    def __init__(self, store: Store, clock: Clock, owner: str) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._replacing = asyncio.Lock()
        self._current: int | None = None
        # The first one names this process for as long as it lives: workers' rows say which process has their socket.
        self._first: int | None = None

    @property
    def current(self) -> int:
        return _opened(self._current)

    @property
    def process_id(self) -> int:
        return _opened(self._first)

    async def open(self) -> None:
        self._current = await self._store.write(open_epoch, self._owner, self._clock.now_ms())
        self._first = self._first or self._current
        log.info("epoch opened", epoch_id=self._current)

    async def replace(self, ended: int) -> None:
        """Opens a new epoch after `ended`; of several who notice, one does."""
        async with self._replacing:
            if self._current == ended:
                log.warning("this process was thought dead and its epoch ended", epoch_id=ended)
                await self.open()

    async def keep(self, ready: Ready, serving: asyncio.Event) -> None:
        """Opens the epoch and renews it until cancelled; the service is ready while that works."""
        await serving.wait()
        while True:
            try:
                if self._current is None:
                    await self.open()
                elif not await self._store.write(renew_epoch, self._current, self._clock.now_ms()):
                    await self.replace(self._current)
                ready.set("control")
            except Retry as error:
                log.warning("the epoch can't be renewed now", cause=error.message)
                ready.clear("control", error.message)
            await self._clock.sleep(OPEN_RETRY_SEC if self._current is None else RENEW_EVERY_SEC)

    async def close(self) -> None:
        """Ends the epoch on the way out, so that its leftovers are swept soon; if not now, the sweep finds out."""
        if self._current is not None:
            try:
                await self._store.write(end_epoch, self._current, self._clock.now_ms())
            except Retry as error:
                log.warning("the epoch is left to the sweep", epoch_id=self._current, cause=error.message)


def _opened(epoch_id: int | None) -> int:
    if epoch_id is None:
        raise Unavailable("the server is starting; try again in a moment")
    return epoch_id
