"""Where the streamer learns which viewings are valid and says what they need: the store, or control's API."""

from typing import Protocol

from camserver.wire.live import Sync, Synced


class Desk(Protocol):
    async def sync(self, sync: Sync) -> Synced:
        """What is valid now. Retry (such as Unavailable) when it can't be said."""
