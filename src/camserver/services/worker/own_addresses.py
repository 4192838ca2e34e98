"""The server's own addresses, which no camera may be at (decision 45), as the name service has them.

A worker may start before its name service does, and a server may move: so they are asked for again with every
registration.
"""

import socket
from urllib.parse import urlsplit

from camserver.base.log import get_logger

log = get_logger(__name__)


class OwnAddresses:
    def __init__(self, server_url: str) -> None:
        self._host = urlsplit(server_url).hostname or ""
        self._known: frozenset[str] = frozenset()

    def __call__(self) -> frozenset[str]:
        """Those that are known now."""
        return self._known

    def find(self) -> None:
        """Asks the name service, which blocks. What was known stays when it does not answer."""
        try:
            found = socket.getaddrinfo(self._host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            if not self._known:
                log.warning(
                    "the server's name is not known yet, so its addresses can't be refused to cameras",
                    host=self._host,
                )
            return
        self._known = frozenset(str(one[4][0]) for one in found)
