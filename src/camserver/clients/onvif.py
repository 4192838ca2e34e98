"""A client for ONVIF devices: asks questions, proves a login, and knows who a device is.

A few questions are all that is needed, so they are written by hand (docs/adr/0004-onvif-by-hand.md). A login is
proven by digest (WS-UsernameToken, or HTTP digest where the device wants that), never sent as it is. Addresses that a
device names are taken over with their path and port only: the host is the one that was asked. Streams are in
`onvif_media`.
"""

import base64
import contextlib
import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn
from urllib.parse import urlsplit, urlunsplit
from xml.etree.ElementTree import Element

import aiohttp

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, Forbidden, NotFound, Unavailable
from camserver.base.secrets import Secret
from camserver.clients import onvif_xml as xml

ANSWER_SEC = 8.0
TEXT_MAX_CHARS = 128
_DEVICE_PATH = "/onvif/device_service"
_PASSWORD_DIGEST = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordDigest"
_WSSE = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
_WSU = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"


@dataclass(frozen=True, slots=True)
class Login:
    user: str
    password: Secret


@dataclass(frozen=True, slots=True)
class About:
    """What a device says it is."""

    manufacturer: str
    model: str
    firmware: str
    serial: str


class OnvifDevice:
    """`address` is a host, a host with its port, or the address of the device service."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        address: str,
        login: Login | None,
        clock: Clock,
        timeout_sec: float = ANSWER_SEC,
    ) -> None:
        self._session = session
        self._url = service_url(address)
        self._login = login
        self._clock = clock
        self._timeout_sec = timeout_sec
        self._skew_sec = 0.0  # the device's clock minus ours
        self._digest: aiohttp.DigestAuthMiddleware | None = None

    async def learn_time(self) -> None:
        """Asked without login. A digest is made for a time, and cameras' clocks are often wrong."""
        try:
            answer = await self.ask("tds:GetSystemDateAndTime", with_login=False)
        except Forbidden:
            return  # contrary to the rules, but then its clock may still be right
        utc = next(xml.find_all(answer, "UTCDateTime"), None)
        date = [_whole(xml.text(utc, "Date", name)) for name in ("Year", "Month", "Day")]
        time = [_whole(xml.text(utc, "Time", name)) for name in ("Hour", "Minute", "Second")]
        with contextlib.suppress(ValueError):  # it does not know; then it can't compare either
            shown = datetime(date[0], date[1], date[2], time[0], time[1], min(time[2], 59), tzinfo=UTC)
            self._skew_sec = shown.timestamp() - self._clock.now_ms() / 1000

    async def about(self) -> About:
        """Needs the login on most devices: that it answers proves it."""
        answer = await self.ask("tds:GetDeviceInformation")
        said = next(xml.find_all(answer, "GetDeviceInformationResponse"), None)
        names = ("Manufacturer", "Model", "FirmwareVersion", "SerialNumber")
        return About(*(shown(xml.text(said, name)) for name in names))

    def here(self, named: str, schemes: tuple[str, ...]) -> str:
        """An address that the device named, at the host that was asked; empty when it is none."""
        try:
            parts = urlsplit(named)
            port = parts.port
        except ValueError:
            return ""
        if parts.scheme not in schemes or len(named) > 1000:
            return ""
        host = urlsplit(self._url).hostname or ""
        shown = f"[{host}]" if ":" in host else host
        netloc = shown if port is None else f"{shown}:{port}"
        if parts.scheme == urlsplit(self._url).scheme and port is None:
            netloc = urlsplit(self._url).netloc
        return urlunsplit(parts._replace(netloc=netloc, fragment=""))

    async def ask(self, question: str, inner: str = "", url: str = "", with_login: bool = True) -> Element:
        """The answer of the device's service, or of another of its services at `url`."""
        url = url or self._url
        header = self._security() if with_login and self._login is not None else ""
        data = xml.envelope(header, f"<{question}>{inner}</{question}>")
        status, content = await self._post(url, data)
        if status == 401 and with_login and self._login is not None and self._digest is None:
            self._digest = aiohttp.DigestAuthMiddleware(self._login.user, self._login.password.reveal())
            status, content = await self._post(url, data)
        if status == 401:
            self._refused()
        if status == 404:
            raise NotFound(f"there is no ONVIF service at {self._host}; is ONVIF switched on in the camera?")
        root = xml.parse(content)
        fault = next(xml.find_all(root, "Fault"), None)
        if fault is not None or status != 200:
            self._explain_fault(fault, question)
        return root

    async def _post(self, url: str, data: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/soap+xml; charset=utf-8"}
        timeout = aiohttp.ClientTimeout(total=self._timeout_sec)
        # What a digest of HTTP is asked for again and again is answered by the middleware.
        middlewares = () if self._digest is None else (self._digest,)
        try:
            async with self._session.post(
                url, data=data, headers=headers, timeout=timeout, allow_redirects=False, middlewares=middlewares
            ) as answer:
                content = await answer.content.read(xml.DOCUMENT_MAX_BYTES + 1)
                while not answer.content.at_eof() and len(content) <= xml.DOCUMENT_MAX_BYTES:
                    content += await answer.content.read(xml.DOCUMENT_MAX_BYTES + 1 - len(content))
                return answer.status, content
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"the ONVIF service at {self._host} does not answer ({type(error).__name__})") from None

    @property
    def _host(self) -> str:
        return urlsplit(self._url).netloc

    def _security(self) -> str:
        assert self._login is not None
        nonce = secrets.token_bytes(16)
        at = datetime.fromtimestamp(self._clock.now_ms() / 1000 + self._skew_sec, UTC)
        created = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        proof = hashlib.sha1(
            nonce + created.encode() + self._login.password.reveal().encode(), usedforsecurity=False
        ).digest()
        return (
            f'<w:Security s:mustUnderstand="1" xmlns:w="{_WSSE}" xmlns:u="{_WSU}"><w:UsernameToken>'
            f"<w:Username>{xml.escaped(self._login.user)}</w:Username>"
            f'<w:Password Type="{_PASSWORD_DIGEST}">{base64.b64encode(proof).decode()}</w:Password>'
            f"<w:Nonce>{base64.b64encode(nonce).decode()}</w:Nonce><u:Created>{created}</u:Created>"
            "</w:UsernameToken></w:Security>"
        )

    def _refused(self) -> NoReturn:
        if self._login is None:
            raise Forbidden(f"the ONVIF service at {self._host} asks for a login; give user and password")
        raise Forbidden(
            f"the ONVIF service at {self._host} refused user or password; many cameras have own ONVIF users"
        )

    def _explain_fault(self, fault: Element | None, question: str) -> NoReturn:
        """The kind of a fault; its words are the device's and are not passed on."""
        codes = {value.text.rpartition(":")[2] for value in _values(fault) if value.text}
        if "NotAuthorized" in codes or "FailedAuthentication" in codes:
            self._refused()
        raise Unavailable(f"the ONVIF service at {self._host} did not answer {question.rpartition(':')[2]}")


def service_url(address: str) -> str:
    """The device service of a host. BadInput when the address is none."""
    given = address if "://" in address else f"http://{address}{_DEVICE_PATH}"
    try:
        parts = urlsplit(given)
        _ = parts.port  # read for its check
    except ValueError:
        raise BadInput("the address of the ONVIF device is malformed; give its host, or host:port") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise BadInput("the address of the ONVIF device is malformed; give its host, or host:port")
    return urlunsplit(parts._replace(path=parts.path if parts.path not in ("", "/") else _DEVICE_PATH, fragment=""))


def _values(fault: Element | None) -> Iterator[Element]:
    return iter(()) if fault is None else xml.find_all(fault, "Value")


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 5 else -1


def shown(text: str) -> str:
    return "".join(one for one in text if one.isprintable())[:TEXT_MAX_CHARS]
