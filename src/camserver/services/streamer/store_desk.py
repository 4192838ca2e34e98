"""The desk where several processes may open the database: the store itself."""

from dataclasses import dataclass

from camserver.base.clock import Clock
from camserver.domain.admission import AdmissionPolicy
from camserver.store import Store, live_feeds
from camserver.wire.live import Sync, Synced


@dataclass(frozen=True, slots=True)
class StoreDesk:
    """A `Desk`."""

    store: Store
    clock: Clock
    policy: AdmissionPolicy

    async def sync(self, sync: Sync) -> Synced:
        return await live_feeds.sync(self.store, sync, self.policy, self.clock.now_ms())
