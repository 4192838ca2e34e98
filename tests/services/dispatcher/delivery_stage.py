"""A stage for deliveries: receivers that are fake webhooks, a desk that serves them, and a clock that stands still.

stage = await DeliveryStage.open(store)
async with FakeWebhook() as hook, stage.desk():
    receiver_id = await stage.receiver(hook)
    await stage.notices(3)
    await stage.until_over()
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import uuid_utils

from camserver.base.credentials import Sealed, seal
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.clients.webhook import WebhookSender
from camserver.domain.deliveries import (
    TELLING,
    Child,
    Claimed,
    DeliveriesPolicy,
    Ending,
    FanOut,
    Handler,
    Outgoing,
)
from camserver.domain.facts import DeliveryKind
from camserver.domain.messages import Language, Text
from camserver.domain.people import Principal, Role
from camserver.services.dispatcher.delivering import DeliveryDesk, run_deliveries
from camserver.services.dispatcher.receivers import ReceiverBook
from camserver.store import Store, Tx, deliveries, receivers
from camserver.store.deliveries import NewDelivery
from camserver.store.receivers import NewReceiver, ReceiverChange, secrets_of
from tests.fakes.webhook import FakeWebhook
from tests.rig.polling import poll_async, until
from tests.services.dispatcher.stage import Rows, StageClock, WatchedStore
from tests.store.scenery import furnish

KEY = bytes(range(32))
UNFINISHED = {"queued", "delayed", "running"}


@dataclass(slots=True)
class DeliveryStage:
    store: Store
    clock: StageClock
    policy: DeliveriesPolicy
    tenant_id: int
    # Those that are running.
    desks: list[tuple[DeliveryDesk, WatchedStore]] = field(default_factory=list)

    @staticmethod
    async def open(store: Store, **policy: Any) -> "DeliveryStage":
        scene = await furnish(store)
        return DeliveryStage(store, StageClock(), DeliveriesPolicy(allow_loopback=True, **policy), scene.tenant_id)

    @property
    def owner(self) -> Principal:
        return Principal(self.tenant_id, None, Role.SYSTEM_ADMIN)

    async def receiver(self, hook: FakeWebhook, name: str = "hook", key: bytes = KEY) -> str:
        """A new receiver at that webhook; its uuid."""
        uuid = str(uuid_utils.uuid7())
        new = NewReceiver(uuid, name, "webhook", "{}", self.sealed(hook, uuid, key), "ja", None)
        await self.store.as_(self.owner).write(receivers.add, new, "", self.clock.now_ms())
        return uuid

    def sealed(self, hook: FakeWebhook, receiver_uuid: str, key: bytes = KEY) -> Sealed:
        """The secrets of a receiver that is that webhook."""
        secrets = {"url": hook.url, "signing_key": hook.key} if hook.key else {"url": hook.url}
        return seal(key, self.tenant_id, secrets_of(receiver_uuid), json.dumps(secrets).encode())

    async def change(self, receiver_uuid: str, **changes: Any) -> None:
        wanted = ReceiverChange(**changes)
        await self.store.as_(self.owner).write(receivers.change, receiver_uuid, wanted, "", self.clock.now_ms())

    async def notices(self, count: int, **changes: Any) -> list[str]:
        """Queues notices; their uuids."""
        new = tuple(
            replace(
                NewDelivery(str(uuid_utils.uuid7()), self.tenant_id, DeliveryKind.NOTIFY, "continues", {"n": n}),
                **changes,
            )
            for n in range(count)
        )
        await self.store.write(deliveries.add, new, self.clock.now_ms())
        return [one.delivery_uuid for one in new]

    async def rows(self, sql: str = "SELECT * FROM deliveries ORDER BY delivery_id", **params: object) -> Rows:
        return await self.store.read(_rows, sql, params)

    async def messages(self) -> Rows:
        return await self.rows("SELECT * FROM deliveries WHERE kind = 'message' ORDER BY delivery_id")

    async def counts(self) -> dict[str, int]:
        return await self.store.read(deliveries.count_by_status)

    async def until(self, **wanted: int) -> None:
        async def reached() -> bool:
            return await self.counts() == wanted

        try:
            await poll_async(reached, f"deliveries {wanted}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; they are {await self.counts()}") from error

    async def until_over(self, step_sec: int = 5, steps: int = 400) -> None:
        """Moves the clock on until nothing is unfinished.

        It stands still while a desk is at something: else a slow machine could be so long at it that its lock runs
        out by this clock.
        """
        for _ in range(steps):
            await self.clock.some_turns(4)
            if not set(await self.counts()) & UNFINISHED:
                return
            await until(self._are_desks_idle, "desks are idle")
            self.clock.leap(step_sec * 1000)
        raise TimeoutError(f"still unfinished: {await self.rows()}")

    def _are_desks_idle(self) -> bool:
        return not any(desk.at_work or store.under_way for desk, store in self.desks)

    @asynccontextmanager
    async def desk(
        self,
        store: Store | None = None,
        handlers: Mapping[DeliveryKind, Handler] | None = None,
        name: str = "desk",
        key: bytes = KEY,
    ) -> AsyncIterator[DeliveryDesk]:
        """Runs one until the block ends; it must not have ended by itself before that."""
        used = WatchedStore(store or self.store)
        book = ReceiverBook(used, self.clock, key)
        async with AsyncExitStack() as stack:
            http = OutgoingHttp(OutgoingPolicy(allow_loopback=True), timeout_sec=60)
            stack.push_async_callback(http.close)
            desk = DeliveryDesk(name, used, self.clock, self.policy, book, handlers or self.handlers(book, http))
            self.desks.append((desk, used))
            task = asyncio.create_task(run_deliveries(desk))
            try:
                yield desk
                if task.done():
                    task.result()
                    raise AssertionError("the desk ended by itself")
            finally:
                task.cancel()
                await asyncio.wait([task])
                self.desks.remove((desk, used))

    def handlers(self, book: ReceiverBook, http: OutgoingHttp) -> dict[DeliveryKind, Handler]:
        sender = WebhookSender(http, self.clock)

        async def notify(claimed: Claimed) -> Ending:
            await book.refresh()
            found = book.of(claimed.tenant_id, TELLING)
            return FanOut(tuple(Child(DeliveryKind.MESSAGE, one.receiver_id, claimed.request) for one in found))

        async def message(claimed: Claimed) -> Ending:
            receiver = await book.receiver_of(claimed)
            assert receiver is not None
            text = Text(Language.JA, "題", ())
            return await sender.send(receiver, Outgoing(claimed.delivery_uuid, text, dict(claimed.request)))

        return {DeliveryKind.NOTIFY: notify, DeliveryKind.MESSAGE: message}


async def _rows(tx: Tx, sql: str, params: dict[str, object]) -> Rows:
    rows: Any = await tx.all(sql, **params)
    return [dict(row) for row in rows]
