"""Cameras that give pictures over HTTP: one at a time (a snapshot), or one after the other (MJPEG).

Which of the two it is, the answer says. A look asks once; of MJPEG it takes the first picture and ends the answer,
so a camera is never connected longer than that. Redirects are not followed, the address that was checked is the one
that is connected to (decision 45), and what a camera says beyond its pictures goes nowhere.
"""

import asyncio
import socket
import ssl
from contextlib import AbstractAsyncContextManager
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.http_exceptions import HttpProcessingError

from camserver.base.errors import BadInput
from camserver.domain.leases import Fault
from camserver.media import tls
from camserver.media.addresses import AddressPolicy, Place
from camserver.media.digest import Challenge, Login, login_refused, strongest
from camserver.media.http_parts import first_picture
from camserver.media.packets import Miss
from camserver.media.rtsp_lean.reader import explain
from camserver.media.shots import JpegShot
from camserver.media.waiting_threads import PROBES

PICTURE_MAX_BYTES = 15_000_000
READ_TIMEOUT_SEC = 5.0
DEFAULT_PORT = {"http": 80, "https": 443}
_JPEG = b"\xff\xd8"
_MULTIPART = "multipart/"


class HttpSource:
    """A `Source`."""

    learned_gop_ms = None

    def __init__(
        self,
        url: str,
        login: Login | None,
        connect_timeout_sec: float,
        policy: AddressPolicy,
        tls_pin: str | None = None,
    ) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise BadInput("the camera's address is malformed") from None
        if parts.scheme not in DEFAULT_PORT or not parts.hostname:
            raise BadInput("the camera's address is not of the form http://host/path")
        if "@" in parts.netloc:
            raise BadInput("the camera's address holds a login; give user and password apart from it")
        self._url = url.partition("#")[0]
        self._uri = parts.path  # as it stands in the request; the first answer says it exactly
        self._host: str = parts.hostname
        self._port = port or DEFAULT_PORT[parts.scheme]
        self._shown = f"{parts.scheme}://{self._host}:{self._port}/…"
        self._login = login
        self._policy = policy
        self._pin = tls_pin
        self._connect_timeout_sec = connect_timeout_sec
        self._challenge: Challenge | None = None
        self._session: aiohttp.ClientSession | None = None
        self._place: Place | None = None
        self._context: ssl.SSLContext | None = None

    async def grab(self) -> JpegShot | Miss:
        what = f"{self._shown} can't be opened"
        place = await self._policy.find(self._host, self._port)
        if isinstance(place, Miss):
            return place
        try:
            return await self._ask(await self._at(place))
        except aiohttp.ServerFingerprintMismatch as error:
            return self._untrusted("the camera shows another certificate than the pinned one", error.got.hex())
        except aiohttp.ClientConnectorCertificateError as error:
            reason = getattr(error.certificate_error, "verify_message", "") or "unknown reason"
            sha256 = await PROBES.run(self._look_at_certificate, place)
            return self._untrusted(f"the camera's certificate is not trusted: {reason}", sha256)
        except TimeoutError:
            return explain(TimeoutError(), what)
        except aiohttp.ClientConnectorError as error:
            return explain(error.os_error, what)
        except BadInput as error:
            return Miss(Fault.NO_VIDEO, f"{self._shown}: {error.message}")
        except (aiohttp.ClientError, HttpProcessingError, asyncio.IncompleteReadError, OSError, ValueError) as error:
            # Their words may quote what the camera sent.
            return Miss(Fault.NO_VIDEO, f"{what}: its answer makes no sense or broke off ({type(error).__name__})")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        self._session = self._place = None

    async def _at(self, place: Place) -> aiohttp.ClientSession:
        """A session with the camera where it is now."""
        if self._session is None or self._place != place:
            await self.close()
            self._place = place
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    resolver=_Pinned(place), limit=2, use_dns_cache=False, ssl=self._fingerprint()
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                # Small compressed answers can be huge ones: neither asked for nor unpacked.
                headers={"Accept-Encoding": "identity", "User-Agent": "camserver"},
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    connect=self._connect_timeout_sec,
                    sock_connect=self._connect_timeout_sec,
                    sock_read=READ_TIMEOUT_SEC,
                ),
            )
        return self._session

    async def _ask(self, session: aiohttp.ClientSession) -> JpegShot | Miss:
        """Asks, and once more when the camera wants a login, or a fresh answer to another nonce."""
        async with self._get(session) as response:
            challenge = strongest(response.headers.getall("WWW-Authenticate", [])) if response.status == 401 else None
            if challenge is None or self._login is None:
                return await self._answer(response)
        self._challenge = challenge
        self._uri = response.url.raw_path_qs
        async with self._get(session) as response:
            return await self._answer(response)

    def _get(self, session: aiohttp.ClientSession) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return session.get(self._url, headers=self._headers(), allow_redirects=False, ssl=self._ssl())

    def _headers(self) -> dict[str, str]:
        if self._challenge is None or self._login is None:
            return {}
        return {"Authorization": self._challenge.authorization(self._login, "GET", self._uri)}

    def _fingerprint(self) -> aiohttp.Fingerprint | bool:
        """What is compared before anything is sent, whichever way the connection is secured."""
        return True if self._pin is None else aiohttp.Fingerprint(bytes.fromhex(self._pin))

    def _ssl(self) -> ssl.SSLContext | bool:
        """A pinned camera may be as old as its ciphers, as with RTSP."""
        if self._pin is not None and self._context is None:
            self._context = tls.context_for(self._pin)
        return self._context or True

    async def _answer(self, response: aiohttp.ClientResponse) -> JpegShot | Miss:
        if response.status != 200:
            return self._refusal(response.status)
        if response.content_type.startswith(_MULTIPART):
            jpeg = await first_picture(response.content, response.headers["Content-Type"], PICTURE_MAX_BYTES)
            response.close()
        else:
            jpeg = await self._whole(response)
        if not jpeg.startswith(_JPEG):
            return Miss(Fault.NO_VIDEO, f"{self._shown} answers with something that is no JPEG picture")
        return JpegShot(jpeg)

    async def _whole(self, response: aiohttp.ClientResponse) -> bytes:
        data = bytearray()
        async for chunk in response.content.iter_any():
            data += chunk
            if len(data) > PICTURE_MAX_BYTES:
                raise BadInput("its picture is too large")
        return bytes(data)

    def _refusal(self, status: int) -> Miss:
        what = f"{self._shown} can't be opened"
        if status in (401, 403):
            self._challenge = None
            return Miss(Fault.UNAUTHORIZED, f"{what}: {login_refused(status, self._login)}")
        if status in (404, 410):
            return Miss(Fault.NOT_FOUND, f"{what}: the camera has no such path")
        if 300 <= status < 400:
            return Miss(Fault.NO_VIDEO, f"{what}: the camera sends elsewhere, which is not followed")
        return Miss(Fault.NO_VIDEO, f"{what}: the camera answered {status}")

    def _untrusted(self, message: str, sha256: str) -> Miss:
        pin = f"; if you know it, pin it: {sha256}" if sha256 else ""
        return Miss(Fault.REFUSED, f"{self._shown} can't be opened: {message}{pin}", certificate_sha256=sha256)

    def _look_at_certificate(self, place: Place) -> str:
        try:
            with socket.create_connection((place.address, place.port), self._connect_timeout_sec) as sock:
                return tls.shown_certificate(sock, self._host)
        except OSError:
            return ""


class _Pinned(AbstractResolver):
    """Every name is at the one place that was checked."""

    def __init__(self, place: Place) -> None:
        self._place = place

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=self._place.address,
                port=port,
                family=self._place.family,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
        ]

    async def close(self) -> None:
        """Nothing is held."""
