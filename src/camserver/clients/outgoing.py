"""Requests to addresses that people typed, and answers that nobody vouches for (decision 45).

A name is resolved here, every address is checked, and the checked one is connected to, so a name can't point
somewhere else a moment later. No redirect is followed, answers are bounded, nothing is unpacked, no proxy of the
environment is used. Every failure is a DeliveryError. For HTTP use `OutgoingHttp`; other protocols connect to what
`resolve` says.
"""

import asyncio
import contextlib
import ipaddress
import json
import math
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from camserver.base.addresses import Place, why_not
from camserver.domain.deliveries import DeliveryError, Trouble, trouble_of_status

# A machine that is switched off never refuses a connection.
CONNECT_TIMEOUT_SEC: Final = 5.0
ANSWER_MAX_BYTES: Final = 65_536
QUOTED_MAX_CHARS: Final = 160
# Above the most deliveries in flight: waiting for a free connection would look like a dead receiver.
CONNECTIONS_MAX: Final = 1100
# Less than what others' servers wait before they close a connection (5 s, some 2 s): a request that is not safe to
# repeat must not meet that end.
KEEP_ALIVE_SEC: Final = 1.5


@dataclass(frozen=True, slots=True)
class OutgoingPolicy:
    """Where receivers may be. `own` are addresses of the server that must not be reached through a receiver."""

    allow_loopback: bool = False
    own: frozenset[str] = frozenset()

    def why_not(self, address: str) -> str | None:
        return why_not(
            address, allow_loopback=self.allow_loopback, own=self.own, setting="[deliveries] allow_loopback"
        )

    async def resolve(self, host: str, port: int) -> Place:
        """The address to connect to, IPv4 first."""
        places = await self.places(host, port)
        return min(places, key=lambda place: place.family != socket.AF_INET)

    async def places(self, host: str, port: int, family: int = socket.AF_UNSPEC) -> list[Place]:
        """All addresses of a host that may be connected to; at least one."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise DeliveryError(
                Trouble.RETRY, f"the host name {host} is unknown; check it, and the name service"
            ) from None
        addresses = {str(one[4][0]): socket.AddressFamily(one[0]) for one in found}
        reasons = {address: self.why_not(address) for address in addresses}
        places = [Place(addresses[address], address, port) for address, reason in reasons.items() if reason is None]
        if not places:
            address, reason = next(iter(reasons.items()), ("no address", "so it can't be reached"))
            raise DeliveryError(Trouble.REFUSED, f"{host} is at {address}, {reason}")
        return places

    def check_literal(self, host: str) -> None:
        """Refuses an address that stands where a name could; such ones are never resolved."""
        with contextlib.suppress(ValueError):
            ipaddress.ip_address(host.partition("%")[0])
            reason = self.why_not(host)
            if reason is not None:
                raise DeliveryError(Trouble.REFUSED, f"{host} may not be connected to, {reason}")


class _CheckedResolver(AbstractResolver):
    def __init__(self, policy: OutgoingPolicy) -> None:
        self._policy = policy

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=place.address,
                port=port,
                family=place.family,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for place in await self._policy.places(host, port, family)
        ]

    async def close(self) -> None:
        """Nothing is held."""


class _CheckedConnector(aiohttp.TCPConnector):
    """Addresses that stand where a name could are never resolved. They are checked as the client has read them: it
    takes full-width digits and dots for plain ones."""

    def __init__(self, policy: OutgoingPolicy) -> None:
        super().__init__(limit=CONNECTIONS_MAX, keepalive_timeout=KEEP_ALIVE_SEC, resolver=_CheckedResolver(policy))
        self._policy = policy

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the library's own signature
    ) -> Connection:
        self._policy.check_literal(req.url.raw_host or "")
        return await super().connect(req, traces, timeout)


def checked_connector(policy: OutgoingPolicy) -> aiohttp.TCPConnector:
    """Connects only where the policy allows, for a client that has its own session."""
    return _CheckedConnector(policy)


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back, whatever the status."""

    status: int
    headers: Mapping[str, str]  # looked up in any case
    body: bytes  # at most as long as was asked for
    whole: bool  # false: the answer went on

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def retry_after_sec(self) -> float | None:
        return retry_after_sec(self.headers.get("Retry-After"), self.headers.get("Date"))

    @property
    def quoted(self) -> str:
        """Its beginning, for an error's message."""
        return self.body.decode("utf-8", "replace")[:QUOTED_MAX_CHARS]

    def json(self) -> Any:
        """The body as JSON; None when it is none, or was cut off."""
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(self.body) if self.whole else None
        return None

    def trouble(self, who: str) -> DeliveryError:
        """The error that an answer other than a success stands for."""
        if 300 <= self.status < 400:
            return DeliveryError(
                Trouble.FAILED,
                f"{who} answered {self.status}, a redirect, which is not followed; enter the address it leads to",
            )
        said = f": {self.quoted}" if self.quoted else ""
        return DeliveryError(
            trouble_of_status(self.status), f"{who} answered {self.status}{said}", self.retry_after_sec
        )


class OutgoingHttp:
    """HTTP with receivers. Connections are kept open between requests; `close` lets them go."""

    def __init__(self, policy: OutgoingPolicy, timeout_sec: float = 15.0) -> None:
        self._policy = policy
        self._timeout_sec = timeout_sec
        self._session = aiohttp.ClientSession(
            connector=checked_connector(policy),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Small compressed answers can be huge ones: neither asked for nor unpacked.
            headers={"Accept-Encoding": "identity", "User-Agent": "camserver"},
            auto_decompress=False,
            trust_env=False,
        )

    async def close(self) -> None:
        await self._session.close()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        data: Any = None,
        json: Any = None,
        timeout_sec: float | None = None,
        answer_max_bytes: int = ANSWER_MAX_BYTES,
        tls: ssl.SSLContext | aiohttp.Fingerprint | bool = True,
    ) -> Answered:
        """Any answer is returned; none at all is a DeliveryError. Messages name the host, never the rest."""
        host = checked_host(url)
        self._policy.check_literal(host)
        total_sec = timeout_sec or self._timeout_sec
        limit = aiohttp.ClientTimeout(total=total_sec, connect=min(CONNECT_TIMEOUT_SEC, total_sec))
        try:
            async with self._session.request(
                method, url, headers=headers, data=data, json=json, timeout=limit, allow_redirects=False, ssl=tls
            ) as answer:
                body, whole = await _read(answer, answer_max_bytes)
                return Answered(answer.status, answer.headers, body, whole)
        except aiohttp.ConnectionTimeoutError:
            raise DeliveryError(Trouble.RETRY, f"{host}: no connection within {limit.connect:g} s") from None
        except TimeoutError:
            raise DeliveryError(Trouble.FAILED, f"{host} gave no answer within {total_sec:g} s") from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise DeliveryError(Trouble.FAILED, f"{host}: its certificate is not trusted: {error}") from None
        except aiohttp.ClientConnectorError as error:
            cause = os.strerror(error.errno) if error.errno else str(error.os_error)
            raise DeliveryError(Trouble.RETRY, f"{host}:{error.port} can't be reached: {cause}") from None
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
            raise DeliveryError(Trouble.RETRY, f"{host}: {type(error).__name__}: {error}") from None
        except (aiohttp.ClientError, ValueError) as error:
            raise DeliveryError(Trouble.FAILED, f"{host}: {type(error).__name__}: {error}") from None


def checked_host(url: str) -> str:
    """The host of an http or https address; refuses anything else."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise DeliveryError(Trouble.REFUSED, "the address must begin with https:// or http:// and name a host")
    return host


def retry_after_sec(value: str | None, date: str | None) -> float | None:
    """The header in seconds. Its other form, a moment, counts from the answer's own date: clocks may differ."""
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        seconds = float(value)
        return seconds if math.isfinite(seconds) else None
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return (parsedate_to_datetime(value) - parsedate_to_datetime(date or "")).total_seconds()
    return None


async def _read(answer: aiohttp.ClientResponse, most_bytes: int) -> tuple[bytes, bool]:
    """The answer's body up to a bound, and whether that is all of it. One that goes on is not read: its connection is
    closed. Once the headers are here the status says what became of the request, so a body that breaks off or takes
    too long is no failure of its own: nothing is sent again because of it."""
    body = bytearray()
    try:
        async for chunk in answer.content.iter_chunked(65_536):
            body += chunk
            if len(body) > most_bytes:
                answer.close()
                return bytes(body[:most_bytes]), False
    except (TimeoutError, aiohttp.ClientError, OSError):
        answer.close()
        return bytes(body), False
    return bytes(body), True
