"""What control does by itself: have cameras assigned, deliver intents, and keep sessions in order.

Every process does this for the workers it has the sockets of; rows decide who is first. A round that meets a store
which is away, or somebody faster, is simply done again.
"""

import asyncio
from collections.abc import Awaitable, Callable

from camserver.base import figures
from camserver.base.clock import Clock
from camserver.base.errors import Conflict, DataUnusable, Retry
from camserver.base.log import get_logger
from camserver.domain.leases import LeasePolicy, reclaimable
from camserver.services.control.assigning import Assigner
from camserver.services.control.connections import CLOSE_SILENT, Connection, Connections, Sent
from camserver.services.control.orders import Orders, stop
from camserver.store import Store, first_probes
from camserver.store.camera_sessions import ensure_sessions, follow_cameras, newest_camera, without_session
from camserver.store.intents import Intent, StartIntent, pending, starts_sent
from camserver.store.leases import BATCH_MAX, Claim, reclaim
from camserver.store.starts import start_timeouts, unstartable
from camserver.store.workers import mark_unhealthy

log = get_logger(__name__)

ASSIGN_EVERY_SEC = 1.0
UPKEEP_EVERY_SEC = 5.0
# In one round of upkeep: each is one more connection to a camera for some seconds.
FIRST_PROBES_MAX = 2
UNSTARTABLE_RETRY_MS = 60_000
SENDS_AT_ONCE = 20
# The store clock follows the database's in small steps; a larger one is somebody who set that clock.
JUMP_MS = 5_000


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
        self._ttl_ms = policy.ttl_sec * 1000
        # Of the boot-time clock, which nobody sets.
        self._started_boot_ms = clock.boot_ms()
        self._outage_ended_boot_ms: int | None = None
        self._jumped_boot_ms = self._started_boot_ms
        self._offset_ms = clock.now_ms() - clock.boot_ms()
        self._store_since_boot_ms = store.available_since_boot_ms
        self._newest_camera = 0

    async def run(self) -> None:
        """Runs both kinds of rounds until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._assign_on())
            group.create_task(self._upkeep_on())

    async def _assign_on(self) -> None:
        while True:
            woken = self._connections.wake.is_set()
            self._connections.wake.clear()
            await _tried("adopting cameras", self.adopt_cameras if woken else self._adopt_new)
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
        while camera_keys := await self._store.read(without_session):
            await self._store.write(ensure_sessions, camera_keys, self._clock.now_ms())
            if len(camera_keys) < BATCH_MAX:
                break

    async def _adopt_new(self) -> None:
        """Likewise, when cameras were added since the last look; the others are found by upkeep."""
        newest = await self._store.read(newest_camera)
        if newest != self._newest_camera:
            await self.adopt_cameras()
            self._newest_camera = newest

    # Delivering ------------------------------------------------------------------------------------------------

    async def deliver(self) -> None:
        """Sends START and STOP to the workers connected here, again until they are acknowledged."""
        worker_keys = self._connections.keys()
        if not worker_keys:
            return
        intents = await self._store.read(pending, worker_keys)
        boot_ms = self._clock.boot_ms()
        by_worker: dict[int, list[Intent]] = {}
        for intent in intents:
            by_worker.setdefault(intent.worker_key, []).append(intent)
        due: list[tuple[Connection, Intent]] = []
        for connection in self._connections:
            mine = by_worker.get(connection.worker.worker_key, [])
            connection.forget_sent({intent.intent_id for intent in mine})
            due += [(connection, intent) for intent in mine if connection.is_due(intent.intent_id, boot_ms)]
        starts = tuple(intent.intent_id for _, intent in due if isinstance(intent, StartIntent))
        if starts:
            await self._store.write(starts_sent, starts, self._clock.now_ms())
        for number, (connection, intent) in enumerate(due, 1):
            await self._send(connection, intent)
            if number % SENDS_AT_ONCE == 0:
                # What is answered meanwhile is heard before the next ones go out.
                await asyncio.sleep(0)

    async def _send(self, connection: Connection, intent: Intent) -> None:
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
        sent = Sent(kind, intent.camera_id, intent.generation, self._clock.boot_ms())
        connection.sent[intent.intent_id] = sent
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
        if self._since_jump_ms() < self._policy.start_timeout_sec * 1000 and self._has_jumped:
            return
        now_ms = self._clock.now_ms()
        # A worker that answered in time is not to pay for it that many others did, too.
        await self._connections.settled()
        for failed in await self._store.write(start_timeouts, self._policy, now_ms):
            figures.start_timeouts.inc()
            log.warning(
                "start_timeout",
                camera_key=failed.camera_key,
                worker_key=failed.worker_key,
                generation=failed.generation,
                cause=failed.reason,
                elsewhere=failed.elsewhere,
            )

    async def _reclaim(self) -> None:
        if not self._may_reclaim():
            return
        now_ms = self._clock.now_ms()
        # After the clock was set back, a lease that nobody renews would outlast its time by as much. Whoever is there
        # has renewed within the time of a lease.
        overlong_after = now_ms + self._ttl_ms + JUMP_MS if self._since_jump_ms() > self._ttl_ms else None
        for lost in await self._store.write(reclaim, now_ms, overlong_after):
            figures.reclaims.labels("hard").inc()
            log.warning(
                "lease_expired",
                tenant_id=lost.tenant_id,
                site_id=lost.site_id,
                camera_key=lost.camera_key,
                worker_key=lost.worker_key,
                generation=lost.generation,
            )

    def _may_reclaim(self) -> bool:
        """Not soon after our start, the store's return or a jump of its clock: silence proves nothing then."""
        boot_ms = self._clock.boot_ms()
        if self._store.available_since_boot_ms != self._store_since_boot_ms or self._store.away:
            self._store_since_boot_ms = self._store.available_since_boot_ms
            self._outage_ended_boot_ms = boot_ms
        quiet_boot_ms = max(self._outage_ended_boot_ms or 0, boot_ms - self._since_jump_ms())
        # Of a lease that ran out just now; the store looks at each one's own time.
        return reclaimable(boot_ms - 1, boot_ms, self._started_boot_ms, quiet_boot_ms, self._policy)

    def _since_jump_ms(self) -> int:
        """How long ago the clock jumped, or this process began. It must be asked before each use of the time."""
        boot_ms, offset_ms = self._clock.boot_ms(), self._clock.now_ms() - self._clock.boot_ms()
        if abs(offset_ms - self._offset_ms) > JUMP_MS:
            log.warning("the clock jumped: nothing is reclaimed for a while", by_ms=offset_ms - self._offset_ms)
            self._jumped_boot_ms = boot_ms
        self._offset_ms = offset_ms
        return boot_ms - self._jumped_boot_ms

    @property
    def _has_jumped(self) -> bool:
        return self._jumped_boot_ms != self._started_boot_ms

    async def _probe_new(self) -> None:
        if self._connections.keys():
            await self._store.write(first_probes.ask, FIRST_PROBES_MAX, self._clock.now_ms())

    async def _watch_workers(self) -> None:
        if self._since_jump_ms() < self._missed_ms and self._has_jumped:
            return
        for worker_id in await self._store.write(mark_unhealthy, self._clock.now_ms() - self._missed_ms):
            figures.heartbeats_missing.inc()
            log.warning("worker_unhealthy", worker_id=worker_id, missed=self._policy.missed_heartbeats)
        figures.workers_connected.set(len(self._connections.keys()))
        silent_before = self._clock.boot_ms() - self._policy.ttl_sec * 1000
        for connection in self._connections:
            if connection.heard_boot_ms < silent_before:
                connection.end(CLOSE_SILENT, "silent", "no message came for longer than a lease holds")


async def _tried(what: str, step: Callable[[], Awaitable[None]]) -> None:
    try:
        await step()
    except (Retry, Conflict) as error:
        log.warning("a round is put off", step=what, code=error.code, cause=error.message)
