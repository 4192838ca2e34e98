"""What control does by itself: have cameras assigned, deliver intents, and keep sessions in order.

Every process does this for the workers it has the sockets of; rows decide who is first. A round that meets a store
which is away, or somebody faster, is simply done again.
"""

import asyncio
from collections.abc import Awaitable, Callable

from camserver.base.clock import Clock
from camserver.base.errors import Conflict, DataUnusable, Retry
from camserver.base.log import get_logger
from camserver.domain.leases import LeasePolicy, reclaimable
from camserver.services.control.assigning import Assigner
from camserver.services.control.connections import CLOSE_SILENT, Connection, Connections, Sent
from camserver.services.control.orders import Orders, stop
from camserver.store import Store, first_probes
from camserver.store.camera_sessions import ensure_session, follow_cameras, without_session
from camserver.store.intents import Intent, StartIntent, pending, starts_sent
from camserver.store.leases import Claim, reclaim
from camserver.store.starts import start_timeouts, unstartable
from camserver.store.workers import mark_unhealthy

log = get_logger(__name__)

ASSIGN_EVERY_SEC = 1.0
UPKEEP_EVERY_SEC = 5.0
# In one round of upkeep: each is one more connection to a camera for some seconds.
FIRST_PROBES_MAX = 2
UNSTARTABLE_RETRY_MS = 60_000


class Rounds:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        connections: Connections,
        policy: LeasePolicy,
        orders: Orders,
        assigner: Assigner,
    ) -> None:
        self._store = store
        self._clock = clock
        self._connections = connections
        self._policy = policy
        self._orders = orders
        self._assigner = assigner
        self._missed_ms = policy.missed_heartbeats * policy.heartbeat_sec * 1000
        self._started_at = clock.now_ms()
        self._store_since_boot_ms = store.available_since_boot_ms
        self._outage_ended_at: int | None = None

    async def run(self) -> None:
        """Runs both kinds of rounds until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._assign_on())
            group.create_task(self._upkeep_on())

    async def _assign_on(self) -> None:
        while True:
            woken = self._connections.wake.is_set()
            self._connections.wake.clear()
            if woken:
                await _tried("adopting cameras", self.adopt_cameras)
            await _tried("assigning cameras", self._assigner.assign)
            await _tried("delivering intents", self.deliver)
            await self._wait()

    async def _wait(self) -> None:
        """Until the next round is due, or somebody came whom it would serve."""
        waits = {
            asyncio.ensure_future(self._clock.sleep(ASSIGN_EVERY_SEC)),
            asyncio.ensure_future(self._connections.wake.wait()),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _upkeep_on(self) -> None:
        while True:
            await _tried("adopting cameras", self.adopt_cameras)
            await _tried("following cameras", self._follow_cameras)
            await _tried("watching starts", self._fail_late_starts)
            await _tried("reclaiming leases", self._reclaim)
            await _tried("watching workers", self._watch_workers)
            await _tried("probing new cameras", self._probe_new)
            await _tried("rebalancing workers", self._assigner.rebalance)
            await self._clock.sleep(UPKEEP_EVERY_SEC)

    # Adopting --------------------------------------------------------------------------------------------------

    async def adopt_cameras(self) -> None:
        """Cameras that nobody gave a session get one."""
        for camera_key in await self._store.read(without_session):
            await self._store.write(ensure_session, camera_key, self._clock.now_ms())

    # Delivering ------------------------------------------------------------------------------------------------

    async def deliver(self) -> None:
        """Sends START and STOP to the workers connected here, again until they are acknowledged."""
        worker_keys = self._connections.keys()
        if not worker_keys:
            return
        intents = await self._store.read(pending, worker_keys)
        boot_ms = self._clock.boot_ms()
        due: list[tuple[Connection, Intent]] = []
        for connection in self._connections:
            mine = [intent for intent in intents if intent.worker_key == connection.worker.worker_key]
            connection.forget_sent({intent.intent_id for intent in mine})
            due += [(connection, intent) for intent in mine if connection.is_due(intent.intent_id, boot_ms)]
        starts = tuple(intent.intent_id for _, intent in due if isinstance(intent, StartIntent))
        if starts:
            await self._store.write(starts_sent, starts, self._clock.now_ms())
        for connection, intent in due:
            await self._send(connection, intent, boot_ms)

    async def _send(self, connection: Connection, intent: Intent, boot_ms: int) -> None:
        if isinstance(intent, StartIntent):
            kind = "send_start"
            try:
                connection.send(self._orders.start(intent))
            except DataUnusable as error:
                await self._give_up(intent, error)
                return
        else:
            kind = "send_stop"
            connection.send(stop(intent))
        connection.sent[intent.intent_id] = Sent(kind, intent.camera_id, intent.generation, boot_ms)
        log.info(
            kind,
            tenant_id=intent.tenant_id,
            site_id=intent.site_id,
            worker_id=connection.worker_id,
            camera_id=intent.camera_id,
            generation=intent.generation,
            intent_id=intent.intent_id,
        )

    async def _give_up(self, intent: StartIntent, error: DataUnusable) -> None:
        log.error("a camera can't be started", camera_id=intent.camera_id, cause=error.message)
        claim = Claim(intent.tenant_id, intent.worker_key, intent.camera_id, intent.generation)
        now_ms = self._clock.now_ms()
        await self._store.write(unstartable, claim, error.message, now_ms + UNSTARTABLE_RETRY_MS, now_ms)

    # Upkeep ----------------------------------------------------------------------------------------------------

    async def _follow_cameras(self) -> None:
        if await self._store.write(follow_cameras, self._clock.now_ms()):
            self._connections.wake.set()

    async def _fail_late_starts(self) -> None:
        for failed in await self._store.write(start_timeouts, self._policy, self._clock.now_ms()):
            log.warning(
                "start_timeout",
                camera_key=failed.camera_key,
                worker_key=failed.worker_key,
                generation=failed.generation,
                cause=failed.reason,
                elsewhere=failed.elsewhere,
            )

    async def _reclaim(self) -> None:
        now_ms = self._clock.now_ms()
        if not self._may_reclaim(now_ms):
            return
        for lost in await self._store.write(reclaim, now_ms):
            log.warning(
                "lease_expired",
                tenant_id=lost.tenant_id,
                site_id=lost.site_id,
                camera_key=lost.camera_key,
                worker_key=lost.worker_key,
                generation=lost.generation,
            )

    def _may_reclaim(self, now_ms: int) -> bool:
        """Not soon after our start or the store's return: leases could not be renewed meanwhile."""
        if self._store.away:
            self._outage_ended_at = now_ms
        if self._store.available_since_boot_ms != self._store_since_boot_ms:
            self._store_since_boot_ms = self._store.available_since_boot_ms
            self._outage_ended_at = now_ms
        # Of a lease that ran out just now; the store looks at each one's own time.
        return reclaimable(now_ms - 1, now_ms, self._started_at, self._outage_ended_at, self._policy)

    async def _probe_new(self) -> None:
        if self._connections.keys():
            await self._store.write(first_probes.ask, FIRST_PROBES_MAX, self._clock.now_ms())

    async def _watch_workers(self) -> None:
        for worker_id in await self._store.write(mark_unhealthy, self._clock.now_ms() - self._missed_ms):
            log.warning("worker_unhealthy", worker_id=worker_id, missed=self._policy.missed_heartbeats)
        silent_before = self._clock.boot_ms() - self._policy.ttl_sec * 1000
        for connection in self._connections:
            if connection.heard_boot_ms < silent_before:
                connection.end(CLOSE_SILENT, "silent", "no message came for longer than a lease holds")


async def _tried(what: str, step: Callable[[], Awaitable[None]]) -> None:
    try:
        await step()
    except (Retry, Conflict) as error:
        log.warning("a round is put off", step=what, code=error.code, cause=error.message)
