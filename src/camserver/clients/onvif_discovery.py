"""Finds ONVIF devices in the local network: WS-Discovery, one question by multicast, answers for a while.

No login is sent to anybody. Whoever answers says of himself what he likes, so an answer counts only when it is to
our question, and the address of a device is where its answer came from, never one that it names.
"""

import asyncio
import contextlib
import ipaddress
import socket
import struct
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element

from camserver.base.log import get_logger
from camserver.clients import onvif_xml as xml

log = get_logger(__name__)

GROUP = ("239.255.255.250", 3702)
DEVICES_MAX = 512
SCOPES_MAX = 64
TEXT_MAX_CHARS = 255
# UDP gets lost: the question is asked this often, spread over the first half of the time.
TIMES_ASKED = 3
SERVICE_PATH = "/onvif/device_service"
_SCOPE = "onvif://www.onvif.org/"


@dataclass(frozen=True, slots=True)
class Found:
    """A device that answered. `reference` stays the same when its address changes."""

    reference: str  # its endpoint reference, such as urn:uuid:…
    address: str
    service_url: str  # of its device service, at that address
    name: str = ""
    hardware: str = ""
    location: str = ""
    mac: str = ""


async def discover(
    wait_sec: float,
    hosts: Iterable[str] = (),
    *,
    multicast: bool = True,
    port: int = GROUP[1],
    wanted: Callable[[Found], bool] | None = None,
) -> tuple[Found, ...]:
    """Devices that answered within the time, or until the one that is `wanted` did.

    `hosts` are IP addresses that are asked by themselves as well.
    """
    loop = asyncio.get_running_loop()
    answers = Answers(wanted)
    transports: list[asyncio.DatagramTransport] = []
    try:
        for sock in _sockets(multicast):
            transport, _ = await loop.create_datagram_endpoint(lambda: answers, sock=sock)
            transports.append(transport)
        targets = [*((GROUP,) if multicast else ()), *((host, port) for host in hosts)]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_sec):
                for _ in range(TIMES_ASKED):
                    _ask(transports, targets, answers.question())
                    await asyncio.wait([answers.seen], timeout=wait_sec / (2 * TIMES_ASKED))
                await answers.seen
    finally:
        for transport in transports:
            transport.close()
    return tuple(sorted(answers.found.values(), key=lambda one: (_order(one.address), one.reference)))


def _sockets(multicast: bool) -> Sequence[socket.socket]:
    """One for each network that the machine is in, so that the question goes into all of them."""
    indexes = [index for index, _ in socket.if_nameindex()] if multicast else [0]
    made: list[socket.socket] = []
    for index in indexes or [0]:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        with contextlib.suppress(OSError):  # an interface that is down
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("@4s4si", b"", b"", index))
        sock.bind(("", 0))
        made.append(sock)
    return made


def _ask(
    transports: Sequence[asyncio.DatagramTransport], targets: Iterable[tuple[str, int]], question: bytes
) -> None:
    for target in targets:
        is_group = ipaddress.ip_address(target[0]).is_multicast
        for transport in transports if is_group else transports[:1]:
            transport.sendto(question, target)


class Answers(asyncio.DatagramProtocol):
    """Takes in what comes; `seen` is done when the wanted one came."""

    def __init__(self, wanted: Callable[[Found], bool] | None = None) -> None:
        self._wanted = wanted
        self.seen: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked: set[str] = set()
        self.found: dict[tuple[str, str], Found] = {}

    def question(self) -> bytes:
        """A new one each time: some devices answer a question they have seen already only once."""
        message_id = f"urn:uuid:{uuid.uuid4()}"
        self._asked.add(message_id)
        header = (
            f"<a:MessageID>{message_id}</a:MessageID>"
            "<a:To>urn:schemas-xmlsoap-org:ws:2005:04:discovery</a:To>"
            f"<a:Action>{xml.DISCOVERY}/Probe</a:Action>"
        )
        return xml.envelope(header, "<d:Probe><d:Types>dn:NetworkVideoTransmitter</d:Types></d:Probe>")

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        try:
            root = xml.parse(data)
        except xml.Malformed as error:
            log.debug("an answer to discovery can't be read", address=addr[0], cause=error.message)
            return
        if xml.text(root, "Header", "RelatesTo") not in self._asked:
            return
        for match in xml.find_all(root, "ProbeMatch"):
            found = _found(match, addr[0])
            if found is None:
                continue
            if len(self.found) >= DEVICES_MAX:
                log.warning("more devices answer than are listed", devices_max=DEVICES_MAX)
                return
            self.found[found.reference, found.address] = found
            if self._wanted is not None and self._wanted(found) and not self.seen.done():
                self.seen.set_result(None)

    def error_received(self, exc: Exception) -> None:
        log.debug("discovery could not be sent into a network", cause=type(exc).__name__)


def _found(match: Element, address: str) -> Found | None:
    reference = xml.text(match, "EndpointReference", "Address")[:TEXT_MAX_CHARS]
    if not reference:
        return None
    scopes = _scopes(xml.text(match, "Scopes").split()[:SCOPES_MAX])
    return Found(
        reference=reference,
        address=address,
        service_url=_service_url(xml.text(match, "XAddrs").split()[:SCOPES_MAX], address),
        name=scopes.get("name", ""),
        hardware=scopes.get("hardware", ""),
        location=scopes.get("location", ""),
        mac=scopes.get("mac", "").lower(),
    )


def _scopes(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for scope in given:
        if scope.lower().startswith(_SCOPE):
            kind, _, value = scope[len(_SCOPE) :].partition("/")
            shown = "".join(one for one in unquote(value) if one.isprintable())
            found.setdefault(kind.lower(), shown[:TEXT_MAX_CHARS])
    return found


def _service_url(named: Sequence[str], address: str) -> str:
    """Of the services it names, one at the address it answered from; else the usual one there."""
    for url in named:
        with contextlib.suppress(ValueError):
            parts = urlsplit(url)
            if parts.scheme in ("http", "https") and parts.hostname == address and "@" not in parts.netloc:
                return url[:TEXT_MAX_CHARS]
    return f"http://{address}{SERVICE_PATH}"


def _order(address: str) -> tuple[int, int]:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return parsed.version, int(parsed)
