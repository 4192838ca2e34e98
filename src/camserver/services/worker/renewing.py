"""Keeps an enrolled worker's certificate fresh: renewed when a third of its life is over, at once when the server
says that it has expired. A failure is tried again with growing pauses; until it succeeds the old one is used.
"""

import asyncio
import random
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

import aiohttp

from camserver.base import tls
from camserver.base.errors import CamError
from camserver.base.log import get_logger
from camserver.domain.certificates import renewal_due_ms
from camserver.domain.jobs import backoff_ms
from camserver.services.worker import enrolling, identity_file
from camserver.services.worker.identity_file import Enrolled
from camserver.services.worker.link import ServerClock
from camserver.services.worker.waiting import event_within

log = get_logger(__name__)

LOOK_EVERY_SEC = 600.0
RETRY_BASE_SEC = 10.0
RETRY_CAP_SEC = 3600.0


class Renewing:
    def __init__(
        self,
        enrolled: Enrolled,
        folder: Path,
        server_url: str,
        session: aiohttp.ClientSession,
        contexts: Sequence[ssl.SSLContext],
        clock: ServerClock,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._enrolled = enrolled
        self._folder = folder
        self._server_url = server_url
        self._session = session
        self._contexts = contexts
        self._clock = clock
        self._jitter = jitter
        self._failures = 0
        self._expired = asyncio.Event()
        self.renewed = 0

    def expired(self) -> None:
        """The server said so; it knows the time, this machine may not."""
        self._expired.set()

    async def run(self) -> None:
        """Renews in time until cancelled."""
        while True:
            if self._is_due():
                await self._try()
            pause_sec = LOOK_EVERY_SEC
            if self._failures:
                pause_sec = backoff_ms(self._failures, self._jitter(), RETRY_BASE_SEC, RETRY_CAP_SEC) / 1000
                await self._clock.sleep(pause_sec)
            else:
                await event_within(self._clock, pause_sec, self._expired)

    def _is_due(self) -> bool:
        if self._expired.is_set():
            return True
        return self._clock.synced and self._clock.now_ms() >= renewal_due_ms(self._enrolled.validity)

    async def _try(self) -> None:
        try:
            fresh = await enrolling.renew(self._session, self._server_url, self._enrolled)
            await asyncio.to_thread(identity_file.write, self._folder, fresh)
        except CamError as error:
            self._failures += 1
            log.warning("certificate not renewed", code=error.code, cause=error.message, failures=self._failures)
            return
        # From here on new connections show the new one.
        for context in self._contexts:
            tls.load_chain(context, fresh.chain_pem)
        self._enrolled = fresh
        self._failures = 0
        self._expired.clear()
        self.renewed += 1
        log.info("certificate renewed", not_after=fresh.validity.not_after_ms)
