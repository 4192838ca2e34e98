"""The server's own addresses, which no camera may be at (decision 45), as the name service has them.

A worker may start before its name service does, and a server may move: so they are asked for again with every
registration.
"""

import asyncio
import socket
from urllib.parse import urlsplit

from camserver.base.log import get_logger
from camserver.media.waiting_threads import NAMES
from camserver.services.worker.waiting import end

log = get_logger(__name__)


class OwnAddresses:
    def __init__(self, server_url: str) -> None:
        self._host = urlsplit(server_url).hostname or ""
        self._known: frozenset[str] = frozenset()
        self._finding: asyncio.Future[None] | None = None

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

    def find_again(self) -> None:
        """Asks beside everything else, unless that is under way."""
        if self._finding is None or self._finding.done():
            self._finding = asyncio.ensure_future(NAMES.run(self.find))

    async def close(self) -> None:
        if self._finding is not None:
            await end(self._finding)
