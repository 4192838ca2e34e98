"""The archives there can be, by the kind of their receivers: to store copies in, and to read them again."""

from camserver.base.clock import Clock
from camserver.clients.archive_folder import FolderArchive, HeldBefore
from camserver.clients.archive_s3 import S3Archive
from camserver.clients.drive import DriveArchive
from camserver.clients.outgoing import OutgoingHttp
from camserver.domain.archive import Archive
from camserver.domain.deliveries import ReceiverKind


def all_archives(
    http: OutgoingHttp, clock: Clock, folders: tuple[str, ...], drive_url: str, held_before: HeldBefore
) -> dict[ReceiverKind, Archive]:
    return {
        ReceiverKind.FOLDER: FolderArchive(folders, held_before),
        ReceiverKind.S3: S3Archive(http, clock),
        ReceiverKind.DRIVE: DriveArchive(http, clock, drive_url),
    }
