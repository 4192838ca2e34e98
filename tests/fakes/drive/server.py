"""The fake Drive's server: what it holds, and how it answers."""

import base64
import hashlib
import itertools
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self
from urllib.parse import parse_qs

from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.fakes.drive.faults import (
    Answer,
    Corrupted,
    Cut,
    Elsewhere,
    Fault,
    Lie,
    Lost,
    SessionGone,
    Terse,
    Unheard,
    Wait,
)
from tests.rig.ports import listening_socket, port_of

FOLDER = "application/vnd.google-apps.folder"
EMAIL = "camserver@house.iam.gserviceaccount.com"
READ_BYTES = 4096


@dataclass(slots=True)
class File:
    file_id: str
    metadata: dict[str, Any]
    data: bytes = b""
    trashed: bool = False

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    def shown(self) -> dict[str, Any]:
        kind = self.metadata.get("mimeType")
        shown = {"id": self.file_id, "mimeType": kind, "trashed": self.trashed}
        if kind != FOLDER:
            shown |= {"size": str(len(self.data)), "sha256Checksum": hashlib.sha256(self.data).hexdigest()}
        return shown


@dataclass(slots=True)
class Session:
    metadata: dict[str, Any]
    total: int
    received: bytearray = field(default_factory=bytearray)
    file: File | None = None


class FakeDrive:
    """One account, one shared folder (`root_id`). What was asked is in `asked`, by step, in order."""

    def __init__(self, number: int = 1) -> None:
        self.key = account_key(number)
        self.files: dict[str, File] = {}
        self.sessions: dict[str, Session] = {}
        self.tokens: set[str] = set()
        self.asked: list[str] = []
        self.looked_at: list[str] = []  # ids of files whose metadata was asked for
        self.put_types: list[str] = []
        self.sent_bytes = 0  # of pictures, over all requests
        self.claims: list[dict[str, Any]] = []
        self._faults: dict[str, list[Fault]] = defaultdict(list)
        self._numbers = itertools.count(1)
        self.root_id = self._add({"name": "shared", "mimeType": FOLDER, "parents": []}).file_id
        self._sock = listening_socket()
        self.url = f"http://127.0.0.1:{port_of(self._sock)}"
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=50_000_000)
        self._route(app)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.SockSite(self._runner, self._sock).start()
        return self

    def _route(self, app: web.Application) -> None:
        app.router.add_post("/token", self._step("token", self._token))
        app.router.add_get("/drive/v3/files", self._step("list", self._list))
        app.router.add_post("/drive/v3/files", self._step("folder", self._make_folder))
        app.router.add_get("/drive/v3/files/{id}", self._step("get", self._get))
        app.router.add_patch("/drive/v3/files/{id}", self._step("patch", self._patch))
        app.router.add_delete("/drive/v3/files/{id}", self._step("delete", self._delete))
        app.router.add_post("/upload/drive/v3/files", self._step("begin", self._begin))
        app.router.add_put("/upload/drive/v3/files", self._put)

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()
        self._sock.close()

    @property
    def key_file(self) -> str:
        return key_file(self.key)

    def fail(self, step: str, *faults: Fault) -> None:
        """The next requests of this step (token, list, folder, get, patch, delete, begin, put, status) go wrong."""
        self._faults[step].extend(faults)

    def pictures(self) -> dict[str, bytes]:
        """Stored files by their whole path, bin excluded."""
        found = [file for file in self.files.values() if file.metadata.get("mimeType") != FOLDER and not file.trashed]
        paths = {self.path_of(file): file.data for file in found}
        assert len(paths) == len(found), "two files with one path"
        return paths

    def folders(self) -> list[str]:
        found = [file for file in self.files.values() if file.metadata.get("mimeType") == FOLDER]
        return sorted(self.path_of(file) for file in found if file.file_id != self.root_id)

    def path_of(self, file: File) -> str:
        parents = [one for one in file.metadata["parents"] if one != self.root_id]
        return "/".join([*(self.path_of(self.files[one]) for one in parents), file.name])

    def expire_tokens(self) -> None:
        self.tokens.clear()

    def _add(self, metadata: dict[str, Any], data: bytes = b"") -> File:
        file = File(f"id-{next(self._numbers)}", metadata, data)
        self.files[file.file_id] = file
        return file

    def _step(self, name: str, handle: Any) -> Any:
        async def handled(request: web.Request) -> web.StreamResponse:
            self.asked.append(name)
            fault = self._faults[name].pop(0) if self._faults[name] else None
            match fault:
                case Answer():
                    await request.read()
                    return _refused(fault)
                case Wait():
                    fault.begun.set()
                    await fault.released.wait()
                case Cut():
                    _cut(request)
            if name != "token" and request.headers.get("Authorization", "")[7:] not in self.tokens:
                return _refused(Answer(401, "authError"))
            answer = await handle(request, fault)
            if isinstance(fault, Unheard):
                _cut(request)
            made: web.StreamResponse = answer
            return made

        return handled

    async def _token(self, request: web.Request, _: Fault | None) -> web.Response:
        form = parse_qs((await request.read()).decode())
        claims = self._verified(form["assertion"][0])
        if claims is None or form["grant_type"] != ["urn:ietf:params:oauth:grant-type:jwt-bearer"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        self.claims.append(claims)
        token = f"token-{next(self._numbers)}-of-the-fake"
        self.tokens.add(token)
        return web.json_response({"access_token": token, "expires_in": 3599, "token_type": "Bearer"})

    def _verified(self, assertion: str) -> dict[str, Any] | None:
        head, body, proof = assertion.split(".")
        try:
            self.key.public_key().verify(
                _decoded(proof), f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except InvalidSignature:
            return None
        claims: dict[str, Any] = json.loads(_decoded(body))
        is_ours = claims["aud"] == f"{self.url}/token" and claims["iss"] == EMAIL
        return claims if is_ours and claims["exp"] - claims["iat"] <= 3600 else None

    async def _list(self, request: web.Request, _: Fault | None) -> web.Response:
        wanted = request.query["q"]
        assert wanted.endswith("and trashed=false")
        of_delivery = re.match(r"appProperties has \{ key='(\w+)' and value='([\w-]+)' \}", wanted)
        of_folder = re.match(rf"name='([^']+)' and '([^']+)' in parents and mimeType='{FOLDER}'", wanted)
        assert of_delivery or of_folder, wanted
        found = []
        for file in self.files.values():
            if of_delivery:
                fits = file.metadata.get("appProperties", {}).get(of_delivery[1]) == of_delivery[2]
            else:
                assert of_folder
                fits = file.name == of_folder[1] and of_folder[2] in file.metadata["parents"]
            if fits and not file.trashed:
                found.append(file.shown())
        return web.json_response({"files": found})

    async def _make_folder(self, request: web.Request, _: Fault | None) -> web.Response:
        metadata = await request.json()
        if any(parent not in self.files for parent in metadata["parents"]):
            return _refused(Answer(404, "notFound"))
        return web.json_response(self._add(metadata).shown())

    async def _get(self, request: web.Request, _: Fault | None) -> web.Response:
        file = self.files.get(request.match_info["id"])
        self.looked_at.append(request.match_info["id"])
        if file is None:
            return _refused(Answer(404, "notFound"))
        if request.query.get("alt") == "media":
            return web.Response(body=file.data)
        return web.json_response(file.shown())

    async def _patch(self, request: web.Request, _: Fault | None) -> web.Response:
        file = self.files[request.match_info["id"]]
        file.trashed = (await request.json())["trashed"]
        return web.json_response(file.shown())

    async def _delete(self, request: web.Request, _: Fault | None) -> web.Response:
        gone = self.files.pop(request.match_info["id"], None)
        return _refused(Answer(404, "notFound")) if gone is None else web.Response(status=204)

    async def _begin(self, request: web.Request, fault: Fault | None) -> web.Response:
        metadata = await request.json()
        if any(parent not in self.files for parent in metadata["parents"]):
            return _refused(Answer(404, "notFound"))
        number = f"s{next(self._numbers)}"
        self.sessions[number] = Session(metadata, int(request.headers["X-Upload-Content-Length"]))
        where = fault.url if isinstance(fault, Elsewhere) else self.url
        location = f"{where}/upload/drive/v3/files?uploadType=resumable&upload_id={number}"
        return web.Response(status=200, headers={"Location": location})

    async def _put(self, request: web.Request) -> web.StreamResponse:
        told = request.headers["Content-Range"]
        step = "status" if told.startswith("bytes */") else "put"
        self.asked.append(step)
        self.put_types.append(request.headers.get("Content-Type", ""))
        fault = self._faults[step].pop(0) if self._faults[step] else None
        number = request.query["upload_id"]
        session = self.sessions.get(number)
        match fault:
            case Answer():
                return _refused(fault)
            case SessionGone():
                self.sessions.pop(number, None)
                session = None
            case Lost() if session is not None:
                session.received.clear()
            case Wait():
                fault.begun.set()
                await fault.released.wait()
            case Cut() if step == "status":
                _cut(request)
        if session is None:
            return _refused(Answer(404, "notFound"))
        if session.file is None and step == "put":
            await self._take(request, session, fault)
        if isinstance(fault, Unheard):
            _cut(request)
        return self._progress(session, fault)

    async def _take(self, request: web.Request, session: Session, fault: Fault | None) -> None:
        found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", request.headers["Content-Range"])
        assert found is not None
        assert int(found[3]) == session.total
        assert int(found[1]) == len(session.received), "bytes that were sent before, or a hole"
        taken = 0
        async for chunk in request.content.iter_chunked(READ_BYTES):
            room = len(chunk) if not isinstance(fault, Cut) else max(0, fault.after_bytes - taken)
            session.received += chunk[:room]
            taken += len(chunk[:room])
            self.sent_bytes += len(chunk[:room])
            if isinstance(fault, Cut) and taken >= fault.after_bytes:
                _cut(request)
        if len(session.received) == session.total and not isinstance(fault, Lie):
            data = bytes(session.total) if isinstance(fault, Corrupted) else bytes(session.received)
            session.file = self._add(session.metadata, data)

    def _progress(self, session: Session, fault: Fault | None) -> web.Response:
        if isinstance(fault, Lie):
            return web.Response(status=308, headers={} if fault.range is None else {"Range": fault.range})
        if session.file is not None and isinstance(fault, Terse):
            session.file.trashed = fault.left == "in the bin"
            if fault.left == "nowhere":
                del self.files[session.file.file_id]
            return web.json_response({"id": session.file.file_id})
        if session.file is not None:
            return web.json_response(session.file.shown())
        received = len(session.received)
        return web.Response(status=308, headers={"Range": f"bytes=0-{received - 1}"} if received else {})


def key_file(key: rsa.RSAPrivateKey) -> str:
    """A service account's key, as Google lets people download it. Its token address leads astray."""
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return json.dumps(
        {
            "type": "service_account",
            "client_email": EMAIL,
            "private_key_id": "k1",
            "private_key": pem.decode(),
            "token_uri": "http://127.0.0.1:1/astray",
        }
    )


@cache
def account_key(number: int) -> rsa.RSAPrivateKey:
    """One a number and process: making them takes long."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _refused(answer: Answer) -> web.Response:
    errors = [{"domain": "global", "reason": answer.reason, "message": "said by the fake"}]
    headers = {} if answer.retry_after is None else {"Retry-After": answer.retry_after}
    return web.json_response(
        {"error": {"code": answer.status, "errors": errors, "message": "said by the fake"}},
        status=answer.status,
        headers=headers,
    )


def _cut(request: web.Request) -> None:
    """The connection is gone, as if a cable had been pulled."""
    assert request.transport is not None
    request.transport.abort()
    raise ConnectionResetError


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
