"""The archives that a dispatcher can reach, by the kind of their receivers."""

from typing import TYPE_CHECKING

from camserver.base.clock import Clock
from camserver.clients.archive_folder import FolderArchive
from camserver.clients.archive_s3 import S3Archive
from camserver.clients.drive import DriveArchive
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

    return {
        ReceiverKind.FOLDER: FolderArchive(settings.archive.folders, held_before),
        ReceiverKind.S3: S3Archive(http, clock),
        ReceiverKind.DRIVE: DriveArchive(http, clock, settings.drive.api_url),
    }
