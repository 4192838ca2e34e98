"""Records looks in batches: those that arrive together share one transaction."""

from camserver.base.batches import Batcher
from camserver.domain.leases import LeasePolicy
from camserver.store import Store
from camserver.store.frames import Look, Recorded, record

BATCH_MAX = 64
WAITING_MAX = 1024


class Recorder:
    def __init__(self, store: Store, policy: LeasePolicy) -> None:
        self._store = store
        self._policy = policy
        self._batcher: Batcher[Look, Recorded] = Batcher(self._write, size_max=BATCH_MAX, waiting_max=WAITING_MAX)

    async def record(self, look: Look) -> Recorded:
        """Returns once the look is durable, or raises: then it may or may not be, and a repeat tells."""
        return await self._batcher.submit(look)

    async def close(self) -> None:
        await self._batcher.close()

    async def _write(self, looks: tuple[Look, ...]) -> tuple[Recorded, ...]:
        return await self._store.write(record, looks, self._policy)
