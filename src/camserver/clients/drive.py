"""Copies of pictures on Google Drive: plain REST, resumable uploads.

An upload is a session with an address of its own, which is kept with the delivery before the first byte is sent:
after a cut, a restart or a crash the same session goes on where Drive says it stopped. Only when the session is gone
an upload is begun anew, and then Drive is first asked for a file of this delivery (its appProperties name it). So
nothing is stored twice. Folders are found or made once and remembered.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from camserver.base.clock import Clock
from camserver.clients.drive_answers import DriveFile, file_of, reason_of, received_bytes, trouble
from camserver.clients.drive_tokens import Tokens
from camserver.clients.outgoing import ANSWER_MAX_BYTES, Answered, OutgoingHttp
from camserver.domain.archive import COPY_MAX_BYTES, Copy, KeepProgress, Stored
from camserver.domain.deliveries import DeliveryError, Receiver, Trouble

GOOGLE_URL: Final = "https://www.googleapis.com"
GOOGLE_TOKEN_URL: Final = "https://oauth2.googleapis.com/token"
FOLDER: Final = "application/vnd.google-apps.folder"
FILE_FIELDS: Final = "id,size,sha256Checksum,trashed"
# Our mark on a file; only this service account sees it.
DELIVERY: Final = "camserverDelivery"
ALL_DRIVES: Final = {"supportsAllDrives": "true"}
# A slow line takes its time with a picture.
UPLOAD_TIMEOUT_SEC: Final = 120.0
# How often one attempt goes on after a cut. Each time Drive must have received more than before.
RESUMES_MAX: Final = 10
PIECE_BYTES: Final = 262_144
FOLDERS_REMEMBERED_MAX: Final = 5000
SESSION: Final = "session"


class DriveArchive:
    def __init__(self, http: OutgoingHttp, clock: Clock, api_url: str = GOOGLE_URL) -> None:
        self._http = http
        self._api = api_url.rstrip("/")
        token_url = GOOGLE_TOKEN_URL if self._api == GOOGLE_URL else f"{self._api}/token"
        self._tokens = Tokens(http, clock, token_url)
        # By receiver, parent and name; the oldest are forgotten and found again.
        self._folders: OrderedDict[tuple[int, str, str], str] = OrderedDict()
        self._making: dict[int, asyncio.Lock] = {}

    async def store(self, receiver: Receiver, copy: Copy, keep: KeepProgress) -> Stored:
        session = copy.progress.get(SESSION)
        if isinstance(session, str) and self._is_ours(session):
            found = await self._go_on(receiver, copy, session)
            if found is not None:
                return await self._checked(receiver, copy, found)
        if session is not None or copy.attempt > 1:
            found = await self._find(receiver, copy.delivery_uuid)
            if found is not None:
                return await self._checked(receiver, copy, found, repeat=True)
        session = await self._begin(receiver, copy)
        await keep({SESSION: session})
        found = await self._upload(receiver, copy, session, 0)
        return await self._checked(receiver, copy, found)

    async def read(self, receiver: Receiver, external_id: str) -> bytes | None:
        query = {"alt": "media", **ALL_DRIVES}
        path = f"/drive/v3/files/{external_id}"
        answer = await self._ask(receiver, "GET", path, query, answer_max_bytes=COPY_MAX_BYTES)
        if answer.status == 404:
            return None
        if not answer.ok or not answer.whole:
            raise trouble(receiver.name, answer)
        return answer.body

    async def remove(self, receiver: Receiver, external_id: str) -> None:
        path = f"/drive/v3/files/{external_id}"
        answer = await self._ask(receiver, "DELETE", path, ALL_DRIVES)
        if answer.status == 403 and reason_of(answer) == "insufficientFilePermissions":
            # Only a manager of a shared drive deletes for good; others put into its bin, which empties itself.
            answer = await self._ask(receiver, "PATCH", path, ALL_DRIVES, body={"trashed": True})
        if not answer.ok and answer.status != 404:
            raise trouble(receiver.name, answer)

    async def close(self) -> None:
        """The connections are the caller's."""

    # -----------------------------------------------------------------------------------------------------------
    # Uploads
    # -----------------------------------------------------------------------------------------------------------

    async def _begin(self, receiver: Receiver, copy: Copy) -> str:
        """The address of a new upload. A folder that is gone since it was remembered is made again, once."""
        folder, _, name = copy.path.rpartition("/")
        metadata: dict[str, Any] = {
            "name": name,
            "mimeType": copy.media_type,
            "appProperties": {DELIVERY: copy.delivery_uuid, "sha256": copy.sha256},
        }
        headers = {"X-Upload-Content-Type": copy.media_type, "X-Upload-Content-Length": str(len(copy.data))}
        query = {"uploadType": "resumable", "fields": FILE_FIELDS, **ALL_DRIVES}
        for is_last in (False, True):
            metadata["parents"] = [await self._folder(receiver, folder)]
            answer = await self._ask(
                receiver, "POST", "/upload/drive/v3/files", query, body=metadata, headers=headers
            )
            if answer.status != 404 or is_last:
                break
            self._forget_folders(receiver)
        if answer.status == 404:
            raise _no_folder(receiver)
        session = answer.headers.get("Location", "")
        if not answer.ok:
            raise trouble(receiver.name, answer)
        if not self._is_ours(session):
            raise DeliveryError(Trouble.FAILED, f"{receiver.name}: Google Drive began an upload without an address")
        return session

    async def _go_on(self, receiver: Receiver, copy: Copy, session: str) -> DriveFile | None:
        """What becomes of an upload that was begun before; None when Drive knows it no more."""
        received = await self._received(receiver, copy, session)
        if received is None or isinstance(received, DriveFile):
            return received
        return await self._upload(receiver, copy, session, received)

    async def _upload(self, receiver: Receiver, copy: Copy, session: str, begin: int) -> DriveFile:
        """Sends the rest from `begin` on. After a cut it asks how far it came, and goes on from there."""
        received: DriveFile | int | None = begin
        for _ in range(RESUMES_MAX):
            if not isinstance(received, int):
                break
            begin = received
            cut: DeliveryError | None = None
            try:
                answer = await self._put(session, copy, begin)
                received = self._progress(receiver, copy, answer)
            except DeliveryError as error:
                if error.kind not in (Trouble.RETRY, Trouble.FAILED) or error.retry_after_sec is not None:
                    raise
                cut = error
                received = await self._received(receiver, copy, session)
            if isinstance(received, int) and received <= begin:
                # Nothing arrived: the line is bad, or Drive busy. The next attempt asks again.
                raise cut or DeliveryError(Trouble.RETRY, f"{receiver.name}: Google Drive took none of the upload")
        if isinstance(received, DriveFile):
            return received
        raise DeliveryError(
            Trouble.RETRY, f"{receiver.name}: Google Drive lost an upload that it had begun; it is begun anew"
        )

    async def _received(self, receiver: Receiver, copy: Copy, session: str) -> DriveFile | int | None:
        """How far an upload came: the file when it is whole, None when the session is gone."""
        answer = await self._put(session, copy, None)
        return self._progress(receiver, copy, answer)

    def _progress(self, receiver: Receiver, copy: Copy, answer: Answered) -> DriveFile | int | None:
        if answer.status in (200, 201):
            found = file_of(answer.json())
            if found is None:
                raise DeliveryError(Trouble.FAILED, f"{receiver.name}: Google Drive stored a file without an id")
            return found
        if answer.status == 308:
            # One that contradicts itself can't be gone on with: as if the session were gone.
            return received_bytes(answer, len(copy.data))
        if answer.status in (404, 410):
            return None
        raise trouble(receiver.name, answer)

    async def _put(self, session: str, copy: Copy, begin: int | None) -> Answered:
        """Sends the rest of an upload; without `begin`, asks how far it came."""
        total = len(copy.data)
        data = b"" if begin is None else copy.data[begin:]
        sent = "*" if begin is None else f"{begin}-{total - 1}"
        headers = {
            "Content-Range": f"bytes {sent}/{total}",
            "Content-Length": str(len(data)),
            "Content-Type": copy.media_type,
        }
        return await self._http.request(
            "PUT", session, headers=headers, data=_once(data), timeout_sec=UPLOAD_TIMEOUT_SEC
        )

    async def _checked(self, receiver: Receiver, copy: Copy, found: DriveFile, repeat: bool = False) -> Stored:
        """Believes that a file is there only when Drive says so, with our size and hash."""
        if found.size_bytes is None or found.sha256 is None:
            found = await self._looked_at(receiver, found)
        if found.trashed:
            raise DeliveryError(
                Trouble.RETRY,
                f"{receiver.name}: Google Drive does not have the file it named; it is uploaded anew",
                progress={SESSION: ""},
            )
        if found.size_bytes is None:
            raise DeliveryError(Trouble.FAILED, f"{receiver.name}: Google Drive does not say what it stored")
        if found.is_copy(len(copy.data), copy.sha256):
            return Stored(found.file_id, {"file_id": found.file_id, **({"repeat": True} if repeat else {})})
        await self.remove(receiver, found.file_id)
        raise DeliveryError(
            Trouble.FAILED,
            f"{receiver.name}: Google Drive stored other bytes than were sent",
            # Its session would answer with the file that was removed.
            progress={SESSION: ""},
        )

    async def _looked_at(self, receiver: Receiver, found: DriveFile) -> DriveFile:
        """A file as Drive has it now, asked for once; one that it does not have is as good as trashed."""
        query = {"fields": FILE_FIELDS, **ALL_DRIVES}
        answer = await self._ask(receiver, "GET", f"/drive/v3/files/{found.file_id}", query)
        if answer.status == 404:
            return replace(found, trashed=True)
        if not answer.ok:
            raise trouble(receiver.name, answer)
        told = file_of(answer.json())
        return found if told is None or told.file_id != found.file_id else told

    async def _find(self, receiver: Receiver, delivery_uuid: str) -> DriveFile | None:
        """The file that an earlier attempt of this delivery left."""
        wanted = f"appProperties has {{ key='{DELIVERY}' and value='{_quoted(delivery_uuid)}' }} and trashed=false"
        files = await self._list(receiver, wanted)
        return next((found for one in files if (found := file_of(one)) is not None), None)

    # -----------------------------------------------------------------------------------------------------------
    # Folders
    # -----------------------------------------------------------------------------------------------------------

    async def _folder(self, receiver: Receiver, path: str) -> str:
        """The id of a folder, made where it is missing. One at a time: Drive allows two of the same name."""
        lock = self._making.setdefault(receiver.receiver_id, asyncio.Lock())
        async with lock:
            parent = await self._root(receiver)
            for name in path.split("/"):
                parent = await self._child(receiver, parent, name)
            return parent

    async def _root(self, receiver: Receiver) -> str:
        root = str(receiver.config["folder_id"])
        if (receiver.receiver_id, "", root) not in self._folders:
            query = {"fields": "id,mimeType,trashed", **ALL_DRIVES}
            answer = await self._ask(receiver, "GET", f"/drive/v3/files/{root}", query)
            told = answer.json()
            if answer.status == 404:
                raise _no_folder(receiver)
            if not answer.ok:
                raise trouble(receiver.name, answer)
            if not isinstance(told, dict) or told.get("mimeType") != FOLDER or told.get("trashed"):
                raise _no_folder(receiver)
            self._remember(receiver, "", root, root)
        return root

    async def _child(self, receiver: Receiver, parent: str, name: str) -> str:
        known = self._folders.get((receiver.receiver_id, parent, name))
        if known is not None:
            self._folders.move_to_end((receiver.receiver_id, parent, name))
            return known
        wanted = (
            f"name='{_quoted(name)}' and '{_quoted(parent)}' in parents and mimeType='{FOLDER}' and trashed=false"
        )
        files = [found for one in await self._list(receiver, wanted) if (found := file_of(one)) is not None]
        # The oldest, should two dispatchers have made it at the same moment: both go on with the same one.
        file_id = files[0].file_id if files else await self._make_folder(receiver, parent, name)
        return self._remember(receiver, parent, name, file_id)

    async def _make_folder(self, receiver: Receiver, parent: str, name: str) -> str:
        body = {"name": name, "mimeType": FOLDER, "parents": [parent]}
        answer = await self._ask(receiver, "POST", "/drive/v3/files", {"fields": "id", **ALL_DRIVES}, body=body)
        if answer.status == 404:
            self._forget_folders(receiver)
            raise DeliveryError(Trouble.RETRY, f"{receiver.name}: a folder on Google Drive was removed meanwhile")
        made = file_of(answer.json())
        if not answer.ok or made is None:
            raise trouble(receiver.name, answer)
        return made.file_id

    def _remember(self, receiver: Receiver, parent: str, name: str, file_id: str) -> str:
        self._folders[receiver.receiver_id, parent, name] = file_id
        while len(self._folders) > FOLDERS_REMEMBERED_MAX:
            self._folders.popitem(last=False)
        return file_id

    def _forget_folders(self, receiver: Receiver) -> None:
        for key in [key for key in self._folders if key[0] == receiver.receiver_id]:
            del self._folders[key]

    # -----------------------------------------------------------------------------------------------------------
    # Asking
    # -----------------------------------------------------------------------------------------------------------

    async def _list(self, receiver: Receiver, wanted: str) -> list[Any]:
        query = {
            "q": wanted,
            "fields": f"files({FILE_FIELDS})",
            "orderBy": "createdTime",
            "pageSize": "10",
            "includeItemsFromAllDrives": "true",
            **ALL_DRIVES,
        }
        answer = await self._ask(receiver, "GET", "/drive/v3/files", query)
        told = answer.json()
        if not answer.ok:
            raise trouble(receiver.name, answer)
        files = told.get("files") if isinstance(told, dict) else None
        if not isinstance(files, list):
            raise DeliveryError(Trouble.FAILED, f"{receiver.name}: Google Drive's list of files makes no sense")
        return files

    async def _ask(
        self,
        receiver: Receiver,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        answer_max_bytes: int = ANSWER_MAX_BYTES,
    ) -> Answered:
        """Asks with a token. One that Google no longer takes is renewed, once."""
        url = f"{self._api}{path}?{urlencode(query)}"
        data = None if body is None else json.dumps(body).encode()
        given = {**(headers or {}), **({} if data is None else {"Content-Type": "application/json; charset=UTF-8"})}
        token = await self._tokens.get(receiver)
        answer = await self._request(method, url, given, data, token, answer_max_bytes)
        if answer.status == 401:
            token = await self._tokens.get(receiver, refused=token)
            answer = await self._request(method, url, given, data, token, answer_max_bytes)
        return answer

    async def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        data: bytes | None,
        token: str,
        answer_max_bytes: int,
    ) -> Answered:
        return await self._http.request(
            method,
            url,
            headers={**headers, "Authorization": f"Bearer {token}"},
            data=data,
            answer_max_bytes=answer_max_bytes,
        )

    def _is_ours(self, session: str) -> bool:
        """Whether the address of an upload is Google's: pictures go nowhere else, whatever an answer says."""
        try:
            told, api = urlsplit(session), urlsplit(self._api)
        except ValueError:
            return False
        return (told.scheme, told.netloc) == (api.scheme, api.netloc) and told.path.startswith("/upload/")


async def _once(data: bytes) -> AsyncIterator[bytes]:
    """A body that can't be sent again by itself after a cut: how much of it arrived has to be asked first."""
    for begin in range(0, len(data), PIECE_BYTES):
        yield data[begin : begin + PIECE_BYTES]


def _no_folder(receiver: Receiver) -> DeliveryError:
    return DeliveryError(
        Trouble.REFUSED,
        f"{receiver.name}: the Google Drive folder {receiver.config.get('folder_id')} does not exist for the service "
        "account; check the id, and share the folder or its drive with the account's e-mail address",
    )


def _quoted(value: str) -> str:
    """A text inside of a search."""
    return value.replace("\\", "\\\\").replace("'", "\\'")
