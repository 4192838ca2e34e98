"""Who may use the workers' port, and how much of this process's memory uploads may take."""

import ipaddress
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from camserver.base.errors import Forbidden, Unauthenticated, Unavailable
from camserver.base.log import get_logger
from camserver.base.secrets import Secret

log = get_logger(__name__)


def require_worker_token(headers: Mapping[str, str], peer_host: str, token: Secret) -> None:
    """Lets a worker in that has the installation's token. Plain tokens stay on this machine."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secrets.compare_digest(given.strip().encode(), token.reveal().encode()):
        raise Unauthenticated(
            "the worker's token is missing or wrong; give the worker the server's secret file worker_token"
        )
    if not is_loopback(peer_host):
        raise Forbidden(
            f"a worker at {peer_host} can't sign in with a plain token over the network; run the worker on the "
            "server's machine"
        )


def is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


class Room:
    """Memory for uploads under way, reserved before a body is read."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes_used = 0

    @property
    def bytes_used(self) -> int:
        return self._bytes_used

    @contextmanager
    def reserve(self, size_bytes: int) -> Iterator[None]:
        # One upload always finds room, however large it may be.
        if self._bytes_used and self._bytes_used + size_bytes > self._bytes_max:
            log.warning("too many uploads at once", bytes_used=self._bytes_used, bytes_max=self._bytes_max)
            raise Unavailable("too many uploads are under way at once; try again in a moment")
        self._bytes_used += size_bytes
        try:
            yield
        finally:
            self._bytes_used -= size_bytes
