"""Which addresses may be connected to when people say where something is (decision 45).

One rule for cameras and for receivers: never where clouds keep secrets, never several hosts at once, and this machine
only where a setting permits it. Private networks are fine; that is where cameras and brokers are.
"""

import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias
from urllib.parse import urlsplit

_Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
# Addresses of this network hold an IPv4 address in their last four bytes (RFC 6052), and gateways go there.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
# Where clouds answer machines with their secrets, besides the link-local one.
_METADATA: Final = frozenset(
    {
        "fd00:ec2::254",  # Amazon
        "fd20:ce::254",  # Google
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
        "fd00:c1::a9fe:a9fe",  # Oracle
        "168.63.129.16",  # Azure
        "fd00:42::42",  # Scaleway
    }
)

DEFAULT_PORT: Final = {"rtsp": 554, "rtsps": 322, "http": 80, "https": 443}


def address_in(url: str) -> tuple[str, int]:
    """Host and port that a camera's address names; neither where it makes no sense: whoever opens it says so."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port or DEFAULT_PORT.get(parts.scheme, 0)
    except ValueError:
        return "", 0


def is_protected(url: str, allow_loopback: bool) -> bool:
    """Whether an address is one of https without a user name in it; where this machine is allowed, also its http."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if not host or "@" in parts.netloc:
        return False
    if parts.scheme == "https":
        return True
    if parts.scheme != "http" or not allow_loopback:
        return False
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=1024)  # Each request asks.
def peer_host(given: str) -> str:
    """Who is at the other end. A socket of IPv6 that takes IPv4 as well, such as one that systemd hands over, names
    its IPv4 peers ::ffff:a.b.c.d; they are a.b.c.d here, however they came."""
    if ":" not in given:
        return given
    try:
        mapped = ipaddress.IPv6Address(given).ipv4_mapped
    except ValueError:
        return given
    return given if mapped is None else str(mapped)


def peer_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """An address or a network that peers are held against, in the same form; ValueError when it is neither."""
    network = ipaddress.ip_network(text)
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= 96:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return ipaddress.IPv4Network((mapped, network.prefixlen - 96))
    return network


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is: an address that may be connected to."""

    family: socket.AddressFamily
    address: str
    port: int

    @property
    def netloc(self) -> str:
        """As it stands in an address."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def why_not(address: str, *, allow_loopback: bool, own: frozenset[str], setting: str) -> str | None:
    """Why an address must not be connected to; None when it may. `setting` is what permits this machine."""
    parsed, reason = _looked_at(address)
    if reason is not None:
        return reason
    if allow_loopback:
        return None
    if parsed.is_loopback:
        return f"which is this machine; {setting} permits it"
    if str(parsed) in {str(_plain(ipaddress.ip_address(one))) for one in own}:
        return "which is the server itself"
    if _is_of_this_machine(parsed):
        return f"which is this machine; {setting} permits it"
    return None


def is_never_reached(host: str) -> bool:
    """Whether it is an address that nobody may connect to, whatever is set. Names are looked at when resolved."""
    try:
        return _looked_at(host)[1] is not None
    except ValueError:
        return False


@lru_cache(maxsize=256)  # Each request to a receiver asks, mostly about the same one.
def _looked_at(address: str) -> tuple[_Ip, str | None]:
    """The address, and why nobody may connect to it, wherever this machine is."""
    # A scope such as %eth0 says which network, not which address.
    parsed = _plain(ipaddress.ip_address(address.partition("%")[0]))
    if parsed.is_link_local or str(parsed) in _METADATA:
        return parsed, "which is link-local, where clouds keep secrets"
    if parsed.is_multicast or parsed.is_unspecified or str(parsed) == "255.255.255.255":
        return parsed, "which is no single host"
    return parsed, None


def _plain(address: _Ip) -> _Ip:
    """The IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_of_this_machine(address: _Ip) -> bool:
    """Whoever speaks to an address of its own speaks from the same one. Nothing is sent."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as trial:
        trial.connect((str(address), 9))
        return ipaddress.ip_address(trial.getsockname()[0].partition("%")[0]) == address
    return False
