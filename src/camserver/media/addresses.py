"""Which hosts a camera may be at, and the one place where its name becomes an address (decision 45).

The name is resolved once and the address that was checked is the one that is connected to, so a name can't point
somewhere else a moment later. Nothing here connects to a camera.
"""

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass

from camserver.base.addresses import Place, why_not
from camserver.domain.leases import Fault
from camserver.media.packets import Miss
from camserver.media.waiting_threads import NAMES

__all__ = ["AddressPolicy", "Place"]


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Where cameras may be. `own` are addresses of the server that must not be reached through a camera."""

    allow_loopback: bool = False  # and this machine's other addresses: simulated cameras, a restreamer beside us
    own: frozenset[str] = frozenset()
    also_own: Callable[[], frozenset[str]] = frozenset  # the same, as far as it is known by now

    def why_not(self, address: str) -> str | None:
        """Why no camera may be at an address; None when it may."""
        own = self.own | self.also_own()
        return why_not(address, allow_loopback=self.allow_loopback, own=own, setting="[worker] allow_loopback")

    async def find(self, host: str, port: int) -> Place | Miss:
        """The address to connect to, without blocking the loop. An address that is given as such waits for nobody."""
        if is_literal(host):
            return self.resolve(host, port)
        return await NAMES.run(self.resolve, host, port)

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


def is_literal(host: str) -> bool:
    """Whether it is an address and no name."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
