"""Workers that speak by single requests: REGISTER, HEARTBEAT, ACK and EVENT as on the socket, and asking for cameras.

Thin: what a message changes is done by the same operations as for sockets. Nothing is sent to such a worker, so it
fetches its START and STOP with each request for cameras; whoever does not come in time loses its leases like others.
"""

from dataclasses import dataclass

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, DataUnusable, Unauthenticated
from camserver.base.log import bind_ids, get_logger
from camserver.domain.assignment import decide
from camserver.domain.assignment_types import AssignmentPolicy, Decision, Kind, Snapshot
from camserver.domain.leases import LeasePolicy
from camserver.services.control.assigning import chosen_styles
from camserver.services.control.connections import Connections
from camserver.services.control.entries import Entries
from camserver.services.control.guard import Sender
from camserver.services.control.orders import Orders, stop
from camserver.services.control.registrations import as_held, as_lost, pairs_of, registration
from camserver.services.control.reports import Reports
from camserver.services.control.rounds import UNSTARTABLE_RETRY_MS
from camserver.store import Store
from camserver.store.assignment import assigning
from camserver.store.intents import StartIntent, pending, starts_sent
from camserver.store.leases import Claim, Want, take_all
from camserver.store.socketless import beat, is_draining, known
from camserver.store.starts import not_done, unstartable
from camserver.store.workers import Registered as KnownWorker
from camserver.store.workers import sign_in
from camserver.wire.socketless import INTENTS_MAX, AssignAsked, Assigned, Taken
from camserver.wire.worker import (
    Ack,
    FromWorker,
    Heartbeat,
    Register,
    Registered,
    Renewed,
    Report,
    Start,
    Stop,
)

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Requests:
    store: Store
    clock: Clock
    connections: Connections
    policy: LeasePolicy
    assignment: AssignmentPolicy
    interval_sec: float
    reports: Reports
    orders: Orders
    entries: Entries

    @property
    def _ttl_ms(self) -> int:
        return self.policy.ttl_sec * 1000

    async def register(self, message: FromWorker, sender: Sender) -> Registered:
        """REGISTER. A socket that this worker has somewhere ends with its next heartbeat."""
        if not isinstance(message, Register):
            raise BadInput(f"this request carries REGISTER, not {message.type}")
        _same_worker(message.worker_id, sender)
        who = registration(message, sender.worker_id, None, sender.site_id)
        held = pairs_of(message.holding)
        now_ms = self.clock.now_ms()
        signed = await self.store.write(sign_in, sender.tenant_id, who, held, self._ttl_ms, now_ms)
        log.info(
            "on_connect",
            tenant_id=sender.tenant_id,
            site_id=signed.worker.site_id,
            worker_id=sender.worker_id,
            by="request",
            kept=len(signed.renewal.renewed),
            lost=len(signed.renewal.lost),
            restarted=len(signed.restarted),
        )
        return Registered(
            worker_id=sender.worker_id,
            server_time=now_ms,
            ttl_ms=self._ttl_ms,
            heartbeat_sec=self.policy.heartbeat_sec,
            tenant_id=sender.tenant_id,
            site_id=signed.worker.site_id,
            kept=as_held(signed.renewal.renewed),
            lost=as_lost(signed.renewal.lost),
        )

    async def renew(self, message: FromWorker, sender: Sender) -> Renewed:
        if not isinstance(message, Heartbeat):
            raise BadInput(f"this request carries HEARTBEAT, not {message.type}")
        _same_worker(message.worker_id, sender)
        worker = await self._worker(sender)
        held = pairs_of(message.renew)
        now_ms = self.clock.now_ms()
        done = await self.store.write(beat, worker, message.state.value, held, self._ttl_ms, now_ms)
        if done.renewal.lost:
            log.warning("leases_lost", lost=[list(one) for one in done.renewal.lost])
        return Renewed(
            heartbeat_seq=message.heartbeat_seq,
            renewed=as_held(done.renewal.renewed),
            lost=as_lost(done.renewal.lost),
            ttl_ms=self._ttl_ms,
            server_time=now_ms,
        )

    async def take(self, message: FromWorker, sender: Sender) -> Taken:
        """ACK or EVENT."""
        worker = await self._worker(sender)
        match message:
            case Ack():
                await self._ack(worker, message)
            case Report():
                await self.reports.take(worker, message)
            case _:
                raise BadInput(f"this request carries ACK or EVENT, not {message.type}")
        return Taken()

    async def _ack(self, worker: KnownWorker, message: Ack) -> None:
        now_ms = self.clock.now_ms()
        if message.status == "ok":
            await self.entries.ack(worker.worker_key, message.intent_id)
        else:
            what = (message.intent_id, message.status, message.details)
            await self.store.write(not_done, worker.worker_key, *what, self.policy, now_ms)
            self.connections.wake.set()
        log.info("ack_start", intent_id=message.intent_id, status=message.status, details=message.details)

    # Asking for cameras ----------------------------------------------------------------------------------------

    async def assign(self, asked: AssignAsked, sender: Sender) -> Assigned:
        """Takes what the same plan gives to this worker that every process makes; then what it is to do."""
        _same_worker(asked.worker_id, sender)
        worker = await self._worker(sender)
        with bind_ids(tenant_id=worker.tenant_id, site_id=worker.site_id):
            if asked.most and not await self.store.read(is_draining, worker.worker_key):
                await self._take_cameras(worker, asked.most)
            return Assigned(intents=tuple(await self._intents(worker)))

    async def _take_cameras(self, worker: KnownWorker, most: int) -> None:
        now_ms = self.clock.now_ms()
        seen_since = now_ms - self.policy.missed_heartbeats * self.policy.heartbeat_sec * 1000
        found = await self.store.read(
            assigning, (worker.site_id,), seen_since, self.interval_sec, now_ms, worker.worker_key
        )
        if found is None:
            return
        plan = decide(found.snapshot, self.assignment, chosen_styles(found))
        mine = [one for one in plan.of_kind(Kind.TAKE) if one.worker_key == worker.worker_key][:most]
        leases = await self.store.write(take_all, _wants(found.snapshot, mine), self._ttl_ms, now_ms)
        reasons = {one.camera_key: one.reason.why.value for one in mine}
        for lease in leases:
            log.info(
                "assignment_decision",
                worker_key=lease.worker_key,
                camera_id=lease.camera_id,
                camera_key=lease.camera_key,
                generation=lease.generation,
                intent_id=lease.intent_id,
                why=reasons[lease.camera_key],
            )

    async def _intents(self, worker: KnownWorker) -> list[Start | Stop]:
        """What this worker has not acknowledged, marked as sent before it is."""
        found = (await self.store.read(pending, (worker.worker_key,)))[:INTENTS_MAX]
        now_ms = self.clock.now_ms()
        starts = tuple(one.intent_id for one in found if isinstance(one, StartIntent))
        if starts:
            await self.store.write(starts_sent, starts, now_ms)
        orders: list[Start | Stop] = []
        for intent in found:
            if not isinstance(intent, StartIntent):
                orders.append(stop(intent))
            else:
                try:
                    orders.append(self.orders.start(intent))
                except DataUnusable as error:
                    log.error("a camera can't be started", camera_id=intent.camera_id, cause=error.message)
                    claim = Claim(intent.tenant_id, intent.worker_key, intent.camera_id, intent.generation)
                    later_ms = now_ms + UNSTARTABLE_RETRY_MS
                    await self.store.write(unstartable, claim, error.message, later_ms, now_ms)
                    continue
            log.info(
                "send_start" if isinstance(intent, StartIntent) else "send_stop",
                camera_id=intent.camera_id,
                generation=intent.generation,
                intent_id=intent.intent_id,
            )
        return orders

    async def _worker(self, sender: Sender) -> KnownWorker:
        worker = await self.store.read(known, sender.tenant_id, sender.worker_id)
        if worker is None:
            raise Unauthenticated(f"worker {sender.worker_id} has not registered by a request, or has a socket since")
        return worker


def _same_worker(said: str, sender: Sender) -> None:
    if said != sender.worker_id:
        raise BadInput(f"this request is {sender.worker_id}'s, not {said}'s")


def _wants(snapshot: Snapshot, decisions: list[Decision]) -> tuple[Want, ...]:
    loads = {need.camera_key: need.load for need in snapshot.cameras}
    return tuple(
        Want(one.camera_key, one.worker_key, one.expected_generation, loads[one.camera_key])
        for one in decisions
        if one.worker_key is not None
    )
