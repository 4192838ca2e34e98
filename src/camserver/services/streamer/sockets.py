"""Sockets that come in: a viewer's or a worker's, let in by signature and viewing, or by ticket."""

import asyncio
from http import HTTPStatus

from camserver.base.asgi import Upgrade
from camserver.base.clock import Clock
from camserver.base.errors import CamError, Forbidden
from camserver.base.log import get_logger
from camserver.domain.certificates import name_in
from camserver.domain.live_links import FEED_PATH, STREAM_PATH, LiveKeys, is_signed, read_ticket
from camserver.services.streamer.streams import Streams
from camserver.services.streamer.syncing import Syncing

log = get_logger(__name__)

# Sockets that wait for an answer about their viewing.
WAITING_MAX = 1_000


class Sockets:
    def __init__(self, streamer_id: str, keys: LiveKeys, streams: Streams, syncing: Syncing, clock: Clock) -> None:
        self._streamer_id = streamer_id
        self._keys = keys
        self._streams = streams
        self._syncing = syncing
        self._clock = clock
        self._waiting: set[asyncio.Task[None]] = set()

    def take(self, upgrade: Upgrade) -> None:
        if upgrade.path.startswith(STREAM_PATH):
            self._take_viewer(upgrade)
        elif upgrade.path == FEED_PATH:
            self._take_feed(upgrade)
        else:
            upgrade.refuse(HTTPStatus.NOT_FOUND, "there is no such socket")

    def take_far(self, upgrade: Upgrade) -> None:
        """On the port for workers at other sites: feeds alone, and each with the certificate of its worker."""
        if upgrade.path != FEED_PATH:
            upgrade.refuse(HTTPStatus.NOT_FOUND, "there is no such socket")
            return
        # Only here: most streamers have no such port.
        from camserver.base.certificates import read_der

        seen = None if upgrade.certificate is None else read_der(upgrade.certificate)
        name = None if seen is None else name_in(seen.uri)
        now_ms = self._clock.now_ms()
        if seen is None or name is None or not seen.not_before_ms <= now_ms < seen.not_after_ms:
            log.warning("a feed was not let in", cause="no certificate of a worker that is valid now")
            upgrade.refuse(HTTPStatus.UNAUTHORIZED, "a feed on this port needs a worker's certificate")
            return
        self._take_feed(upgrade, name.worker_id)

    async def close(self) -> None:
        for task in self._waiting:
            task.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)

    def _take_viewer(self, upgrade: Upgrade) -> None:
        lease_id, sig = upgrade.query.get("lease", ""), upgrade.query.get("sig", "")
        if not is_signed(self._keys, lease_id, sig):
            upgrade.refuse(HTTPStatus.FORBIDDEN, "the address is not one that this installation handed out")
            return
        if len(self._waiting) >= WAITING_MAX:
            log.warning("too many viewers come at once", waiting=len(self._waiting))
            upgrade.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many viewers come at once; try again")
            return
        task = asyncio.ensure_future(self._let_in(upgrade, lease_id))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        task.add_done_callback(_log_crash)

    async def _let_in(self, upgrade: Upgrade, lease_id: str) -> None:
        try:
            viewing = await self._syncing.viewing(lease_id)
        except CamError as error:
            upgrade.refuse(HTTPStatus.SERVICE_UNAVAILABLE, error.message)
            return
        if viewing is None or viewing.camera_id != upgrade.path.removeprefix(STREAM_PATH):
            upgrade.refuse(HTTPStatus.NOT_FOUND, "there is no such viewing (any more)")
            return
        viewer = self._streams.attach(lease_id, hears=upgrade.query.get("sound") == "1")
        if viewer is not None and upgrade.accept(viewer):
            self._streams.show(viewer)
        elif viewer is not None:
            viewer.connection_lost(None)

    def _take_feed(self, upgrade: Upgrade, worker_id: str | None = None) -> None:
        """`worker_id`: whose certificate it came with."""
        scheme, _, text = upgrade.headers.get("authorization", "").partition(" ")
        try:
            if scheme.lower() != "bearer":
                raise Forbidden("a feed needs a ticket")
            ticket = read_ticket(self._keys, text.strip(), self._streamer_id, self._clock.now_ms())
            if worker_id is not None and ticket.worker_id != worker_id:
                raise Forbidden(f"the ticket is not for worker {worker_id}")
            if self._streams.is_used(ticket):
                raise Forbidden("the ticket was used before")
        except Forbidden as error:
            log.warning("a feed was not let in", cause=error.message)
            upgrade.refuse(HTTPStatus.FORBIDDEN, error.message)
            return
        feed = self._streams.feed(ticket)
        if not upgrade.accept(feed):
            feed.connection_lost(None)


def _log_crash(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a viewer could not be let in", exc_info=error)
