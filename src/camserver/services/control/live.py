"""Live view between the store and the workers: who is to push what to which streamer.

Each control process serves the workers whose sockets it has. What viewings want is found here by looking often, for
people wait for their first picture, and at once where web, in the same process, says so. Whether a worker pushes is
said by the streamer; until then it is asked again.
"""

import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from camserver.base.bells import Bell
from camserver.base.clock import Clock
from camserver.base.errors import Conflict, Forbidden, Retry, Unauthenticated
from camserver.base.log import get_logger
from camserver.domain.admission import AdmissionPolicy
from camserver.domain.live_links import TICKET_LIFE_MS, LiveKeys, Ticket, feed_address, sign_ticket
from camserver.services.control.admission import is_loopback
from camserver.services.control.connections import AskedLive, Connection, Connections
from camserver.store import Store
from camserver.store import live_feeds as feeds
from camserver.wire.live import Sync, Synced, WantedFeed
from camserver.wire.worker import Ack, LiveStart

log = get_logger(__name__)

LOOK_EVERY_SEC = 0.2
# A worker that was asked has so long to connect before it is asked again.
ASK_AGAIN_MS = 3_000


class LiveRounds:
    def __init__(self, store: Store, clock: Clock, connections: Connections, keys: LiveKeys, bell: Bell) -> None:
        self._store = store
        self._clock = clock
        self._connections = connections
        self._keys = keys
        self._bell = bell

    async def run(self) -> None:
        """Sends LIVE_START until cancelled."""
        while True:
            try:
                await self.deliver()
            except (Retry, Conflict) as error:
                log.warning("live view waits", code=error.code, cause=error.message)
            await self._bell.wait(self._clock, LOOK_EVERY_SEC)

    async def deliver(self) -> None:
        """Asks for what is wanted; what is not any more may be asked for anew at any moment."""
        worker_keys = self._connections.keys()
        found: tuple[WantedFeed, ...] = ()
        is_wanted: bool = await self._store.read(feeds.is_any_wanted) if worker_keys else False
        if is_wanted:
            found = await self._store.read(feeds.wanted_feeds, worker_keys, self._clock.now_ms())
        since_boot_ms = self._clock.boot_ms() - ASK_AGAIN_MS
        for connection in self._connections:
            mine = [wanted for wanted in found if wanted.worker_key == connection.worker.worker_key]
            connection.forget_lives(mine, since_boot_ms)
            for wanted in mine:
                self._ask(connection, wanted)

    def _ask(self, connection: Connection, wanted: WantedFeed) -> None:
        boot_ms = self._clock.boot_ms()
        if connection.is_over or any(asked.wanted == wanted for asked in connection.lives.values()):
            return
        intent_id = str(uuid.uuid4())
        ticket = Ticket(
            streamer_id=wanted.streamer_id,
            tenant_id=wanted.tenant_id,
            camera_id=wanted.camera_id,
            generation=wanted.generation,
            quality=wanted.quality,
            transcode=wanted.transcode,
            worker_id=connection.worker_id,
            expires_at=self._clock.now_ms() + TICKET_LIFE_MS,
            nonce=uuid.uuid4().hex,
        )
        connection.lives[intent_id] = AskedLive(wanted, boot_ms)
        connection.send(
            LiveStart(
                intent_id=intent_id,
                camera_id=wanted.camera_id,
                generation=wanted.generation,
                streamer_url=feed_address(wanted.feed_url, is_remote=connection.serial is not None),
                ticket=sign_ticket(self._keys, ticket),
                quality=wanted.quality,
                transcode=wanted.transcode,
            )
        )
        log.info(
            "send_live_start",
            worker_id=connection.worker_id,
            camera_id=wanted.camera_id,
            generation=wanted.generation,
            quality=wanted.quality,
            streamer_id=wanted.streamer_id,
        )


@dataclass(frozen=True, slots=True)
class LiveDesk:
    """What is said about live view: by workers that were asked, and by streamers that can't reach the store."""

    store: Store
    clock: Clock
    policy: AdmissionPolicy
    bell: Bell

    async def heard(self, asked: AskedLive, ack: Ack) -> None:
        """A worker's answer to LIVE_START. Whoever watches is told why it does not push."""
        if ack.status != "ok":
            log.warning("live_refused", camera_id=asked.wanted.camera_id, details=ack.details)
            await self.store.write(feeds.refused, asked.wanted, ack.details)

    async def sync(self, sync: Sync) -> Synced:
        answer = await feeds.sync(self.store, sync, self.policy, self.clock.now_ms())
        if any(one.feed == "wanted" for one in sync.watched):
            self.bell.ring()
        return answer


@dataclass(frozen=True, slots=True)
class StreamerDesk:
    """Lets streamers in that run beside this server, where only it may open the store."""

    live: LiveDesk
    keys: LiveKeys

    def admit(self, headers: Mapping[str, str], host: str) -> None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._is_token(given.strip()):
            raise Unauthenticated("the streamer's token is missing or wrong; it needs the server's secret files")
        if not is_loopback(host):
            raise Forbidden(
                f"a streamer at {host} can't speak with the server in the clear; run it on the server's machine, or "
                "use a database that it can open itself"
            )

    def _is_token(self, given: str) -> bool:
        known = (self.keys, self.keys.earlier)
        return any(secrets.compare_digest(given.encode(), one.streamer_token.encode()) for one in known if one)
