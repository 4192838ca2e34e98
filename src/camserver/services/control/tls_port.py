"""The workers' TLS port: whom it lets wait, and its certificate.

The certificate is made at start, made again long before it ends, and kept in memory only.
"""

import socket as sockets
import ssl

from camserver.base import tls
from camserver.base.certificates import Authority
from camserver.base.clock import Clock
from camserver.base.doors import DoorPolicy
from camserver.base.errors import BadSettings, Reject
from camserver.base.log import get_logger
from camserver.config.sections import ControlSettings
from camserver.domain.certificates import DAY_MS, Validity, renewal_due_ms

log = get_logger(__name__)

LIFETIME_MS = 90 * DAY_MS
LOOK_EVERY_SEC = 3600.0


class TlsPort:
    def __init__(self, authority: Authority, settings: ControlSettings, clock: Clock) -> None:
        self._authority = authority
        self._clock = clock
        self._names = names_of(settings)
        self._validity, chain = self._make()
        self.context: ssl.SSLContext = tls.server_context(chain, authority.pem)

    async def keep(self) -> None:
        """Replaces the certificate in time until cancelled; connections that are open keep the one they have."""
        while True:
            await self._clock.sleep(LOOK_EVERY_SEC)
            if self._clock.now_ms() >= renewal_due_ms(self._validity):
                self._validity, chain = self._make()
                tls.load_chain(self.context, chain)
                log.info("the worker port has a new certificate", not_after=self._validity.not_after_ms)

    def _make(self) -> tuple[Validity, str]:
        now_ms = self._clock.now_ms()
        validity = Validity(now_ms - DAY_MS, now_ms + LIFETIME_MS)
        try:
            chain = self._authority.for_server(self._names, validity.not_before_ms, validity.not_after_ms)
        except Reject as error:
            raise BadSettings(f"control.tls_names: {error.message}") from None
        return validity, chain


def door_policy(settings: ControlSettings) -> DoorPolicy:
    return DoorPolicy(settings.arrival_sec, settings.strangers_max, settings.address_strangers_max)


def names_of(settings: ControlSettings) -> tuple[str, ...]:
    """What the certificate says: the names that are set, and those by which this machine is always known."""
    always = (sockets.gethostname(), "localhost", "127.0.0.1", "::1")
    return tuple(dict.fromkeys((*settings.tls_names, *(name for name in always if name.isascii() and name))))
