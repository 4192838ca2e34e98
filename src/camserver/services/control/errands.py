"""Errands between the store and the workers: sent to the right one, answers taken from that one only.

Each control process serves the workers whose sockets it has. Web may be another process, so what is asked there is
found here by looking often; rows decide who is first. An errand's time is short: nothing is tried beyond it.
"""

import asyncio
import json
from dataclasses import dataclass

from camserver.base.bells import Bell
from camserver.base.clock import Clock
from camserver.base.errors import CamError, Conflict, DataUnusable, EpochEnded, Retry, Unavailable
from camserver.base.log import get_logger
from camserver.domain.workers import WorkerState
from camserver.objects.keys import errand_key
from camserver.objects.local import Objects
from camserver.services.control.connections import RESEND_MS, Connection, Connections
from camserver.services.control.epoch import Epoch
from camserver.services.control.guard import Sender
from camserver.services.control.orders import Orders
from camserver.store import Store
from camserver.store.errand_orders import (
    Answered,
    AnswerRow,
    Candidate,
    ErrandOrder,
    Sending,
    answered,
    candidates,
    expected_from,
    is_any_open,
    send,
    unanswered,
)
from camserver.store.errands import expire, prune
from camserver.wire.errands import ErrandAnswer, ErrandRecorded, ErrandRefused, ErrandUpload

log = get_logger(__name__)

# People wait for the answer, so this is how long their question waits at most before it is on its way; not at all
# where web is in the same process.
LOOK_EVERY_SEC = 0.4
TIDY_EVERY_SEC = 5.0
EPOCH_ATTEMPTS = 3
_TAKING = frozenset({WorkerState.REGISTERED, WorkerState.IDLE, WorkerState.RUNNING})


class ErrandRounds:
    def __init__(self, store: Store, clock: Clock, connections: Connections, orders: Orders, bell: Bell) -> None:
        self._store = store
        self._clock = clock
        self._connections = connections
        self._orders = orders
        self._bell = bell

    async def run(self) -> None:
        """Sends and tidies until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send_on())
            group.create_task(self._tidy_on())

    async def _send_on(self) -> None:
        while True:
            try:
                await self.deliver()
            except (Retry, Conflict) as error:
                log.warning("errands wait", code=error.code, cause=error.message)
            await self._bell.wait(self._clock, LOOK_EVERY_SEC)

    async def _tidy_on(self) -> None:
        while True:
            try:
                now_ms = self._clock.now_ms()
                expired = await self._store.write(expire, now_ms)
                pruned = await self._store.write(prune, now_ms)
                if expired or pruned:
                    log.info("errands over", expired=expired, pruned=pruned)
            except (Retry, Conflict) as error:
                log.warning("errands can't be tidied now", code=error.code, cause=error.message)
            await self._clock.sleep(TIDY_EVERY_SEC)

    async def deliver(self) -> None:
        """Gives away what can be, and sends it; again after a while, until it is answered."""
        there = {one.worker.worker_key: one for one in self._connections if one.state in _TAKING}
        if not there:
            return
        now_ms = self._clock.now_ms()
        if not await self._store.read(is_any_open, now_ms):
            for connection in there.values():
                connection.errands.clear()
            return
        site_ids = tuple({one.worker.site_id for one in there.values()})
        found = await self._store.read(candidates, tuple(there), site_ids, now_ms)
        sendings = tuple(one for one in (_chosen(errand, there) for errand in found) if one is not None)
        if sendings:
            await self._store.write(send, sendings, now_ms)
        orders = await self._store.read(unanswered, tuple(there), now_ms)
        by_worker: dict[int, list[ErrandOrder]] = {}
        for order in orders:
            by_worker.setdefault(order.worker_key, []).append(order)
        for worker_key, connection in there.items():
            mine = by_worker.get(worker_key, [])
            connection.forget_errands({order.errand_uuid for order in mine})
            for order in mine:
                self._send(connection, order, now_ms)

    def _send(self, connection: Connection, order: ErrandOrder, now_ms: int) -> None:
        boot_ms = self._clock.boot_ms()
        sent_boot_ms = connection.errands.get(order.errand_uuid)
        if sent_boot_ms is not None and boot_ms - sent_boot_ms < RESEND_MS:
            return
        connection.errands[order.errand_uuid] = boot_ms
        try:
            connection.send(self._orders.errand(order, now_ms))
        except DataUnusable as error:
            # It expires; a wrong key is a matter for the operator, who reads it here.
            log.error("an errand can't be sent", errand_id=order.errand_uuid, cause=error.message)
            return
        log.info(
            "send_errand",
            tenant_id=order.tenant_id,
            worker_id=connection.worker_id,
            errand_id=order.errand_uuid,
            kind=order.kind,
            camera_id=order.camera_id,
        )


def _chosen(errand: Candidate, there: dict[int, Connection]) -> Sending | None:
    """The worker to send: the camera's holder, or the one of the site with the least to do."""
    if errand.worker_key is not None:
        return Sending(errand.errand_id, errand.worker_key, errand.generation) if errand.worker_key in there else None
    fitting = [
        one
        for one in there.values()
        if (one.worker.tenant_id, one.worker.site_id) == (errand.tenant_id, errand.site_id)
    ]
    if not fitting:
        return None
    idlest = min(fitting, key=lambda one: (len(one.errands), one.worker.worker_key))
    return Sending(errand.errand_id, idlest.worker.worker_key, None)


@dataclass(frozen=True, slots=True)
class ErrandAnswers:
    """Takes answers: the object is made durable, then the row, then it is acknowledged."""

    store: Store
    objects: Objects
    clock: Clock
    epoch: Epoch

    async def take(self, sender: Sender, upload: ErrandUpload) -> ErrandAnswer:
        """Whatever is raised, nothing was acknowledged and the worker sends it again."""
        errand_id = upload.header.errand_id
        tenant_id, worker_id = sender.tenant_id, sender.worker_id
        known = await self.store.read(expected_from, tenant_id, worker_id, errand_id, self.clock.now_ms())
        outcome = known if known is not None else await self._record(tenant_id, worker_id, upload)
        now_ms = self.clock.now_ms()
        if not outcome.recorded:
            log.warning("errand_refused", errand_id=errand_id, cause=outcome.reason)
            return ErrandRefused(reason=outcome.reason, server_time=now_ms)
        log.info("errand_answered", errand_id=errand_id, ok=upload.header.ok, repeat=outcome.repeat)
        return ErrandRecorded(repeat=outcome.repeat, server_time=now_ms)

    async def _record(self, tenant_id: int, worker_id: str, upload: ErrandUpload) -> Answered:
        for _ in range(EPOCH_ATTEMPTS):
            epoch_id = self.epoch.current
            row = self._row(tenant_id, epoch_id, upload)
            if row.object_key is not None:
                await self.objects.put(row.object_key, upload.body)
            try:
                outcome = await self.store.write(answered, tenant_id, worker_id, row, self.clock.now_ms())
            except EpochEnded:
                await self.epoch.replace(epoch_id)
                continue
            if row.object_key is not None and (outcome.repeat or not outcome.recorded):
                await self._drop(row.object_key)
            return outcome
        raise Unavailable("the server's epoch was ended again and again while an answer was stored; try again")

    def _row(self, tenant_id: int, epoch_id: int, upload: ErrandUpload) -> AnswerRow:
        header = upload.header
        key = None
        if upload.body:
            # Of its own for every try: a repeat that comes at the same time must not touch the first one's object.
            key = errand_key(epoch_id, tenant_id, self.clock.now_ms(), header.errand_id, header.content_type)
        return AnswerRow(
            errand_uuid=header.errand_id,
            ok=header.ok,
            message=header.message,
            result=json.dumps(header.result, ensure_ascii=False),
            object_key=key,
            object_bytes=len(upload.body),
            object_type=header.content_type,
            epoch_id=None if key is None else epoch_id,
        )

    async def _drop(self, key: str) -> None:
        try:
            await self.objects.delete(key)
        except (CamError, OSError) as error:
            log.warning("an object without a row is left to the sweep", key=key, cause=str(error))
