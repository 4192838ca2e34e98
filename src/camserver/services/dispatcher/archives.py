"""The archives that a dispatcher can reach, by the kind of their receivers."""

from typing import TYPE_CHECKING

from camserver.base.clock import Clock
from camserver.clients.archives import all_archives
from camserver.clients.outgoing import OutgoingHttp
from camserver.domain.archive import Archive
from camserver.domain.deliveries import Receiver, ReceiverKind
from camserver.store import Store, archive

if TYPE_CHECKING:
    from camserver.config import Settings


def open_archives(
    store: Store, http: OutgoingHttp, clock: Clock, settings: "Settings"
) -> dict[ReceiverKind, Archive]:
    async def held_before(receiver: Receiver) -> bool:
        return await store.read(archive.holds_copies, receiver.receiver_id)

    return all_archives(http, clock, settings.archive.folders, settings.drive.api_url, held_before)
