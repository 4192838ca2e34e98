"""Copies at archives as answers: read from where they lie, for whoever has a signed link; whole or a part."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fastapi import Response
from starlette.datastructures import Headers

from camserver.base.clock import Clock
from camserver.base.credentials import open_sealed
from camserver.base.errors import NotFound, Unavailable
from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.clients.archives import all_archives
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.domain.archive import media_type
from camserver.domain.deliveries import DeliveryError, Receiver, ReceiverKind
from camserver.services.web import ranges
from camserver.services.web.messages import Language
from camserver.store.archive_links import LinkedCopy
from camserver.store.receivers import StoredReceiver, secrets_of

if TYPE_CHECKING:
    from camserver.config import Secrets, Settings

log = get_logger(__name__)


class ArchiveFiles:
    """Reads copies. Connections are kept open between requests; `close` lets them go."""

    def __init__(self, clock: Clock, settings: "Settings", secrets: "Secrets") -> None:
        self._secrets = secrets
        policy = OutgoingPolicy(allow_loopback=settings.deliveries.allow_loopback)
        self._http = OutgoingHttp(policy, settings.deliveries.timeout_sec)
        self._archives = all_archives(
            self._http, clock, settings.archive.folders, settings.drive.api_url, _never_asked
        )

    async def response(
        self, asked: Headers, copy: LinkedCopy, headers: Mapping[str, str], language: Language
    ) -> Response:
        """The copy, the part of it that is asked for, or 304 when the browser has it: a copy never changes.

        What an archive says of itself is for the log: it may name hosts and folders.
        """
        sent = {"ETag": f'"{copy.sha256}"', **headers}
        if ranges.is_known(asked, sent["ETag"]):
            return Response(status_code=304, headers=sent)
        kind = ReceiverKind(copy.receiver.kind)
        try:
            data = await self._archives[kind].read(self._opened(copy.receiver), copy.archive_file_id)
        except DeliveryError as error:
            log.warning("archive_file_not_read", receiver=copy.receiver.name, why=error.message)
            raise Unavailable("the archive that holds this copy does not answer", reason="archive_away") from None
        if data is None:
            raise NotFound("this copy is gone from its archive", reason="picture_gone", kind="archive")
        return ranges.whole_or_part(asked, data, media_type(copy.path), sent, language)

    async def close(self) -> None:
        for archive in self._archives.values():
            await archive.close()
        await self._http.close()

    def _opened(self, stored: StoredReceiver) -> Receiver:
        secrets: dict[str, Secret] = {}
        if stored.sealed is not None:
            key = self._secrets.credential_keys
            plain = open_sealed(key, stored.tenant_id, secrets_of(stored.receiver_uuid), stored.sealed)
            secrets = {name: Secret(str(value)) for name, value in json.loads(plain).items()}
        return Receiver(
            receiver_id=stored.receiver_id,
            receiver_uuid=stored.receiver_uuid,
            tenant_id=stored.tenant_id,
            name=stored.name,
            kind=ReceiverKind(stored.kind),
            config=json.loads(stored.config),
            secrets=secrets,
        )


async def _never_asked(receiver: Receiver) -> bool:
    """Only whoever stores copies wants to know whether an archive held some."""
    return True
