"""Addresses of RTSP cameras: which may be opened, and the one place where a password is put into one.

The name is resolved here and the address that was checked is the one that is opened, so a name can't point somewhere
else a moment later (decision 45). No message made here holds any part of a login.
"""

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.domain.leases import Fault
from camserver.media.packets import Miss

SCHEMES = ("rtsp", "rtsps")
DEFAULT_PORT = {"rtsp": 554, "rtsps": 322}


@dataclass(frozen=True, slots=True)
class Login:
    """What a camera asks for."""

    user: str
    password: Secret


class RtspAddress:
    """A checked address. BadInput when it is none."""

    def __init__(self, url: str, login: Login | None) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise BadInput("the camera's address is malformed") from None
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise BadInput("the camera's address is not of the form rtsp://host:554/path")
        if "@" in parts.netloc:
            raise BadInput("the camera's address holds a login; give user and password apart from it")
        self._parts: SplitResult = parts
        self._login = login
        self.host: str = parts.hostname
        self.port: int = port or DEFAULT_PORT[parts.scheme]

    def __str__(self) -> str:
        """As it may be shown: some cameras take passwords and tokens in path or query."""
        return f"{self._parts.scheme}://{self.host}:{self.port}/…"

    def resolve(self) -> str | Miss:
        """The address to open, login included: only for the call that opens it. Blocks on the name service."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return Miss(Fault.NO_ROUTE, f"the camera's host name {self.host} is unknown")
        # Cameras speak IPv4 with few exceptions, and a name with both often has only one that works.
        for family in (socket.AF_INET, socket.AF_INET6):
            for one in found:
                if one[0] == family:
                    address = str(one[4][0])
                    if is_refused(address):
                        return Miss(Fault.REFUSED, f"{self.host} is at {address}, which no camera may be at")
                    return self._with(address)
        return Miss(Fault.NO_ROUTE, f"{self.host} has no address that can be reached")

    def _with(self, address: str) -> str:
        host = f"[{address}]" if ":" in address else address
        login = ""
        if self._login is not None:
            login = f"{quote(self._login.user, safe='')}:{quote(self._login.password.reveal(), safe='')}@"
        return urlunsplit(self._parts._replace(netloc=f"{login}{host}:{self.port}", fragment=""))


def is_refused(address: str) -> bool:
    """Whether no camera is ever at such an address: link-local (clouds keep secrets there), or no single host."""
    # A scope such as %eth0 says which network, not which address.
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.is_link_local or parsed.is_multicast or parsed.is_unspecified
