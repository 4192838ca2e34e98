"""Which hosts a camera may be at, and the one place where its name becomes an address (decision 45).

The name is resolved once and the address that was checked is the one that is connected to, so a name can't point
somewhere else a moment later. Nothing here connects to a camera.
"""

import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from typing import TypeAlias

from camserver.domain.leases import Fault
from camserver.media.packets import Miss

_Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
# Addresses of this network hold an IPv4 address in their last four bytes (RFC 6052), and gateways go there.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a camera is: an address that may be connected to."""

    family: socket.AddressFamily
    address: str
    port: int

    @property
    def netloc(self) -> str:
        """As it stands in an address."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Where cameras may be. `own` are addresses of the server that must not be reached through a camera."""

    allow_loopback: bool = False  # and this machine's other addresses: simulated cameras, a restreamer beside us
    own: frozenset[str] = frozenset()

    def why_not(self, address: str) -> str | None:
        """Why no camera may be at an address; None when it may."""
        # A scope such as %eth0 says which network, not which address.
        parsed = _plain(ipaddress.ip_address(address.partition("%")[0]))
        if parsed.is_link_local:
            return "which is link-local, where clouds keep secrets"
        if parsed.is_multicast or parsed.is_unspecified or str(parsed) == "255.255.255.255":
            return "which is no single host"
        if parsed.is_loopback and not self.allow_loopback:
            return "which is this machine; [worker] allow_loopback permits it"
        if self.allow_loopback:
            return None
        if str(parsed) in {str(_plain(ipaddress.ip_address(one))) for one in self.own}:
            return "which is the server itself"
        if _is_of_this_machine(parsed):
            return "which is this machine; [worker] allow_loopback permits it"
        return None

    def resolve(self, host: str, port: int) -> Place | Miss:
        """The address to connect to. Blocks on the name service."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return Miss(Fault.NO_ROUTE, f"the camera's host name {host} is unknown")
        # Cameras speak IPv4 with few exceptions, and a name with both often has only one that works.
        for family in (socket.AF_INET, socket.AF_INET6):
            for one in found:
                if one[0] == family:
                    address = str(one[4][0])
                    reason = self.why_not(address)
                    if reason is not None:
                        return Miss(Fault.REFUSED, f"{host} is at {address}, {reason}")
                    return Place(family, address, port)
        return Miss(Fault.NO_ROUTE, f"{host} has no address that can be reached")


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
