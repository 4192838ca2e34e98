"""The certificate of a port for workers at other sites: signed by the workers' CA, for the names it is reached under.

It is made at start, made again long before it ends, and kept in memory only.
"""

import socket as sockets
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING

from camserver.base import tls
from camserver.base.clock import Clock
from camserver.base.errors import BadSettings, Reject
from camserver.base.log import get_logger

if TYPE_CHECKING:
    from camserver.base.certificates import Authority

log = get_logger(__name__)

DAY_MS = 86_400_000
LIFETIME_MS = 90 * DAY_MS
LOOK_EVERY_SEC = 3600.0


class TlsPort:
    def __init__(self, authority: "Authority", names: Sequence[str], setting: str, clock: Clock) -> None:
        """`setting` is where `names` come from, for whoever has to correct them."""
        self._authority = authority
        self._clock = clock
        self._names = with_own_names(names)
        self._setting = setting
        self._made_ms, chain = self._make()
        self.context: ssl.SSLContext = tls.server_context(chain, authority.pem)

    async def keep(self) -> None:
        """Replaces the certificate in time until cancelled; connections that are open keep the one they have."""
        while True:
            await self._clock.sleep(LOOK_EVERY_SEC)
            if self._clock.now_ms() >= self._made_ms + LIFETIME_MS // 3:
                self._made_ms, chain = self._make()
                tls.load_chain(self.context, chain)
                log.info("a port for workers has a new certificate", not_after=self._made_ms + LIFETIME_MS)

    def _make(self) -> tuple[int, str]:
        now_ms = self._clock.now_ms()
        try:
            # Valid since yesterday: clocks differ.
            return now_ms, self._authority.for_server(self._names, now_ms - DAY_MS, now_ms + LIFETIME_MS)
        except Reject as error:
            raise BadSettings(f"{self._setting}: {error.message}") from None


def with_own_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names that are set, and those by which this machine is always known."""
    always = (sockets.gethostname(), "localhost", "127.0.0.1", "::1")
    return tuple(dict.fromkeys((*names, *(name for name in always if name.isascii() and name))))
