"""The running server on this machine, as command-line tools use it: its API with the local admin token.

The token is a file that only the user who runs the server can read, so being able to read it is the permission.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import aiohttp

from camserver.base.errors import CamError, Conflict, Forbidden, NotFound, Reject, Unavailable
from camserver.base.secrets import Secret, scrub

TIMEOUT_SEC = 30
# How long one question about an errand waits for its end; below the time-out.
ERRAND_WAIT_SEC = 20
# Errands expire long before.
ERRAND_QUESTIONS_MAX = 100
ANSWER_MAX_BYTES = 8_000_000
MESSAGE_MAX_CHARS = 500
PAGES_MAX = 1_000
DOWNLOAD_CHUNK_BYTES = 262_144
# A server that sends nothing for so long has died.
DOWNLOAD_STALL_SEC = 120
SESSION_COOKIE = "camserver_session"


class LocalServer:
    """`address` is where web listens, such as http://127.0.0.1:8080; `language` is what its messages are in."""

    def __init__(self, address: str, token_file: Path, language: str = "en") -> None:
        self._address = address
        self._token_file = token_file
        self._language = language
        # Of a person's own sign-in; None: the token is used.
        self._session: dict[str, str] | None = None

    async def cameras(self) -> list[dict[str, Any]]:
        """All of them, asked for page by page."""
        cameras: list[dict[str, Any]] = []
        query = ""
        for _ in range(PAGES_MAX):
            page = await self._call("GET", f"/api/cameras{query}")
            if not isinstance(page.get("cameras"), list):
                raise Unavailable(f"what answers at {self._address} is no camserver: there is no list of cameras")
            cameras += page["cameras"]
            if not page.get("next_after"):
                return cameras
            query = f"?after={quote(page['next_after'], safe='')}"
        raise Unavailable(f"the list of cameras at {self._address} does not end")

    async def add_camera(
        self,
        camera_id: str,
        name: str,
        url: str,
        user: str | None,
        password: Secret | None,
        **values: object,
    ) -> dict[str, Any]:
        """`values` are further fields of the request, such as polling_interval_sec."""
        return await self._call(
            "POST",
            "/api/cameras",
            {
                "camera_id": camera_id,
                "name": name,
                "source": {"url": url, "user": user, "password": password.reveal() if password else None},
                **values,
            },
        )

    async def camera(self, camera_id: str) -> dict[str, Any]:
        return await self._call("GET", f"/api/cameras/{quote(camera_id, safe='')}")

    async def on_errand(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Asks for an errand and waits until it is over; what became of it."""
        errand = await self._call("POST", path, body)
        for _ in range(ERRAND_QUESTIONS_MAX):
            where = f"/api/errands/{quote(str(errand.get('errand_uuid', '')), safe='')}"
            errand = await self._call("GET", f"{where}?wait_sec={ERRAND_WAIT_SEC}")
            if errand.get("state") not in ("waiting", "sent"):
                return errand
        raise Unavailable(f"the errand at {self._address} does not end")

    async def errand_picture(self, errand_uuid: str) -> bytes:
        """The JPEG that an errand brought."""
        return await self.picture(f"/api/errands/{quote(errand_uuid, safe='')}/picture")

    async def picture(self, path: str) -> bytes:
        """Any picture, by its path."""
        status, data = await self._ask("GET", path, None)
        if status != 200:
            _judge(status, _parsed(data), self._address)
        return data

    async def get(self, path: str) -> dict[str, Any]:
        """Any answer in JSON, by its path."""
        return await self._call("GET", path)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Any other question, by its path."""
        return await self._call("POST", path, body)

    async def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Any change, by its path."""
        return await self._call("PATCH", path, body)

    async def download(self, path: str, file: BinaryIO, told: Callable[[int], None] = lambda _: None) -> int:
        """Writes an answer of any length into a file; how many bytes. `told` gets the count as it grows."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT_SEC, sock_read=DOWNLOAD_STALL_SEC)
        count = 0
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=self._headers()) as session,
                session.get(self._address + path, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    _judge(answer.status, _parsed(await _bounded(answer)), self._address + path)
                async for part in answer.content.iter_chunked(DOWNLOAD_CHUNK_BYTES):
                    await asyncio.to_thread(file.write, part)
                    count += len(part)
                    told(count)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(
                f"the download from {self._address} broke off after {count} bytes ({type(error).__name__}); try again"
            ) from error
        return count

    async def delete(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        return await self._call("DELETE", path, body)

    @asynccontextmanager
    async def signed_in(self, login: str, password: Secret) -> AsyncIterator["LocalServer"]:
        """The same server, used by a person instead of the token; they are signed out afterwards.

        For what only people do. Forbidden when login or password is wrong.
        """
        person = LocalServer(self._address, self._token_file, self._language)
        person._session = {"Accept-Language": self._language}
        said, cookie = await person._sign_in(login, password)
        person._session |= {"Cookie": f"{SESSION_COOKIE}={cookie}", "X-CSRF-Token": str(said.get("csrf_token", ""))}
        try:
            yield person
        finally:
            await person.delete("/api/session")

    async def _sign_in(self, login: str, password: Secret) -> tuple[dict[str, Any], str]:
        body = {"login": login, "password": password.reveal()}
        async with self._requested("POST", "/api/session", body) as answer:
            content = _parsed(await _bounded(answer))
            if answer.status == 401:
                raise Forbidden(f"{login} was not signed in: {_said(content, answer.status, self._address)}")
            cookie = answer.cookies.get(SESSION_COOKIE)
            return _judge(answer.status, content, self._address), "" if cookie is None else cookie.value

    async def is_there(self) -> bool:
        """Whether anything answers at the address."""
        return await self._status("/healthz") is not None

    async def is_ready(self) -> bool:
        """Whether every service of the server says that it can do its work."""
        return await self._status("/readyz") == 200

    async def _status(self, path: str) -> int | None:
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SEC)) as session,
                session.get(self._address + path, allow_redirects=False) as answer,
            ):
                return answer.status
        except (aiohttp.ClientError, TimeoutError):
            return None

    async def remove_camera(self, camera_id: str) -> None:
        await self._call("DELETE", f"/api/cameras/{quote(camera_id, safe='')}")

    async def new_setup_link(self) -> dict[str, Any]:
        """`{"url": …, "expires_at": …}`; Conflict when an administrator exists already."""
        return await self._call("POST", "/api/setup/link", {})

    def _token(self) -> Secret:
        try:
            return Secret(self._token_file.read_text().strip())
        except FileNotFoundError:
            raise Unavailable(
                f"there is no {self._token_file}: no server has run with this data folder yet; "
                "start one with: camserver up"
            ) from None
        except PermissionError:
            raise Forbidden(
                f"this user may not read {self._token_file}; run the command as the user who runs the server"
            ) from None

    def _headers(self) -> dict[str, str]:
        if self._session is not None:
            return self._session
        return {"Authorization": f"Bearer {self._token().reveal()}", "Accept-Language": self._language}

    async def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        status, data = await self._ask(method, path, body)
        return _judge(status, _parsed(data), self._address + path.partition("?")[0])

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        async with self._requested(method, path, body) as answer:
            return answer.status, await _bounded(answer)

    @asynccontextmanager
    async def _requested(
        self, method: str, path: str, body: dict[str, Any] | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SEC)
        try:
            async with (
                aiohttp.ClientSession(
                    timeout=timeout, headers=self._headers(), cookie_jar=aiohttp.DummyCookieJar()
                ) as session,
                session.request(method, self._address + path, json=body, allow_redirects=False) as answer,
            ):
                yield answer
        except aiohttp.ClientError as error:
            raise Unavailable(
                f"no camserver answers at {self._address} ({type(error).__name__}); start it with: camserver up"
            ) from error
        except TimeoutError as error:
            raise Unavailable(f"the camserver at {self._address} did not answer within {TIMEOUT_SEC} s") from error


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    """The content of an answer."""
    data = await answer.content.read(ANSWER_MAX_BYTES + 1)
    while not answer.content.at_eof() and len(data) <= ANSWER_MAX_BYTES:
        data += await answer.content.read(ANSWER_MAX_BYTES + 1 - len(data))
    if len(data) > ANSWER_MAX_BYTES:
        raise Unavailable(f"the answer is longer than {ANSWER_MAX_BYTES} bytes; this is no camserver")
    return data


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data) if data else {}
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _judge(status: int, content: dict[str, Any], where: str) -> dict[str, Any]:
    if 200 <= status < 300:
        return content
    said = _said(content, status, where)
    kinds: dict[int, type[CamError]] = {403: Forbidden, 404: NotFound, 409: Conflict}
    if status == 401:
        raise Forbidden("the server does not accept the local admin token; was it started with this data folder?")
    if status >= 500 or status == 429:
        raise Unavailable(said)
    raise kinds.get(status, Reject)(said)


def _said(content: dict[str, Any], status: int, where: str) -> str:
    return scrub(str(content.get("message", "")))[:MESSAGE_MAX_CHARS] or f"{where} answered {status}"
