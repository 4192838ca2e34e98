"""Which links to MQTT brokers this dispatcher holds, and messages to brokers.

A receiver's link is a duty: of several dispatchers one holds it. Messages go through it where this dispatcher has it,
else through a connection of their own; in both cases the broker's acknowledgement is what makes them done.
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from uuid_utils import uuid7

from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.clients.mqtt import Broker, BrokerAway, BrokerRefused, connect
from camserver.clients.outgoing import OutgoingPolicy
from camserver.domain import home_assistant
from camserver.domain.deliveries import DeliveryError, Done, Outgoing, Receiver, ReceiverKind, Trouble
from camserver.domain.duties import HOLD_MS, RENEW_EVERY_MS, Duty
from camserver.domain.mqtt_topics import Topics, installation_of
from camserver.domain.people import Principal, Role
from camserver.objects.interface import Objects
from camserver.services.dispatcher.mqtt_link import LinkTerms, MqttLink
from camserver.store import Store, camera_standings, duties

log = get_logger(__name__)

LOOK_EVERY_SEC: Final = 1.0


@dataclass(slots=True)
class _Held:
    """A link under way, and the duty that permits it."""

    link: MqttLink
    task: "asyncio.Task[None]"
    duty: Duty
    asked_boot_ms: int  # when a renewal was last tried
    held_boot_ms: int  # when the hold that we know of began


class MqttLinks:
    """`receivers` answers those there are now, of all kinds and tenants, with their secrets opened. `note` is told,
    by receiver, why there is no connection, and None when there is one."""

    def __init__(
        self,
        name: str,
        store: Store,
        objects: Objects,
        clock: Clock,
        policy: OutgoingPolicy,
        public_url: str,
        receivers: Callable[[], Iterable[Receiver]],
        note: Callable[[int, str | None], None],
    ) -> None:
        self._name = name
        self._store = store
        self._objects = objects
        self._clock = clock
        self._policy = policy
        self._public_url = public_url
        self._receivers = receivers
        self._note = note
        self._held: dict[int, _Held] = {}
        self._installations: dict[int, str] = {}  # by tenant

    async def run(self) -> None:
        """Takes, keeps and gives back links until cancelled; then says goodbye to every broker."""
        try:
            while True:
                try:
                    await self._turn()
                except Retry as error:
                    log.warning("mqtt_links_put_off", why=error.message)
                except Exception:
                    log.exception("mqtt_links_broke")
                go_on_unless_cancelled()
                await self._clock.sleep(LOOK_EVERY_SEC)
        finally:
            for receiver_id in list(self._held):
                with suppress(Retry):
                    await self._give_back(receiver_id)

    def link_of(self, receiver_id: int) -> MqttLink | None:
        held = self._held.get(receiver_id)
        return None if held is None else held.link

    async def terms_of(self, receiver: Receiver) -> LinkTerms:
        if receiver.tenant_id not in self._installations:
            scoped = self._store.as_(Principal(receiver.tenant_id, None, Role.SYSTEM_ADMIN))
            self._installations[receiver.tenant_id] = installation_of(await scoped.read(camera_standings.tenant_uuid))
        return link_terms(receiver, self._installations[receiver.tenant_id], self._public_url)

    async def _turn(self) -> None:
        await self._drop_expired()
        brokers = {one.receiver_id: one for one in self._receivers() if one.kind is ReceiverKind.MQTT}
        for receiver_id, held in list(self._held.items()):
            receiver = brokers.get(receiver_id)
            if receiver is None or (receiver.enabled and await self.terms_of(receiver) != held.link.terms):
                held.link.leaves_nothing = True
                await self._give_back(receiver_id)
            elif not receiver.enabled:
                await self._give_back(receiver_id)
        for receiver in brokers.values():
            if receiver.enabled:
                await self._hold(receiver)

    async def _hold(self, receiver: Receiver) -> None:
        """Takes the link if nobody has it; keeps it if it is ours."""
        held = self._held.get(receiver.receiver_id)
        asked_boot_ms = self._clock.boot_ms()
        if held is None:
            duty = await self._take(receiver, str(uuid7()))
            if duty is not None:
                link = MqttLink(
                    await self.terms_of(receiver),
                    self._store,
                    self._objects,
                    self._clock,
                    self._policy,
                    partial(self._note, receiver.receiver_id),
                )
                task = asyncio.create_task(link.run(), name=f"mqtt link {receiver.name}")
                self._held[receiver.receiver_id] = _Held(link, task, duty, asked_boot_ms, asked_boot_ms)
        elif asked_boot_ms - held.asked_boot_ms >= RENEW_EVERY_MS:
            held.asked_boot_ms = asked_boot_ms
            duty = await self._take(receiver, held.duty.token)
            if duty is None:
                log.warning("mqtt_link_lost", receiver=receiver.receiver_uuid)
                await self._give_back(receiver.receiver_id)
            else:
                held.duty = duty
                held.held_boot_ms = asked_boot_ms

    async def _drop_expired(self) -> None:
        """Ends links whose duty could not be renewed in time: another dispatcher may have them by now."""
        for receiver_id, held in list(self._held.items()):
            if self._clock.boot_ms() - held.held_boot_ms >= HOLD_MS:
                log.warning("mqtt_link_lost", receiver=held.link.terms.receiver_uuid)
                await _end(self._held.pop(receiver_id))

    async def _take(self, receiver: Receiver, token: str) -> Duty | None:
        name = f"mqtt:{receiver.receiver_uuid}"
        return await self._store.write(duties.take, name, self._name, token, self._clock.now_ms())

    async def _give_back(self, receiver_id: int) -> None:
        """Ends the connection before the duty, so that another's "online" comes after our "offline"."""
        held = self._held.pop(receiver_id)
        await _end(held)
        await self._store.write(duties.release, held.duty.name, held.duty.token)


async def _end(held: _Held) -> None:
    held.task.cancel()
    await asyncio.wait([held.task])


class MqttSender:
    """Implements domain.deliveries.Sender for receivers of kind mqtt."""

    def __init__(self, links: MqttLinks, policy: OutgoingPolicy) -> None:
        self._links = links
        self._policy = policy

    async def send(self, receiver: Receiver, outgoing: Outgoing) -> Done:
        terms = await self._links.terms_of(receiver)
        camera_id = outgoing.body.get("camera_id")
        topic = terms.topics.camera(str(camera_id)).events if camera_id else terms.topics.notices
        payload = json.dumps(event_message(outgoing), ensure_ascii=False)
        link = self._links.link_of(receiver.receiver_id)
        # A link to where the receiver was before it was changed is of no use, though it stands for a moment more.
        connection = link.connection if link is not None and link.terms == terms else None
        try:
            if connection is not None:
                await connection.publish(topic, payload)
            else:
                # Under a name of its own: the link's holder has the other one, and would be thrown out.
                broker = replace(terms.broker, client_id=f"{terms.broker.client_id}-{secrets.token_hex(4)}")
                place = await self._policy.resolve(broker.host, broker.port)
                async with connect(broker, place.address) as own:
                    await own.publish(topic, payload)
        except BrokerAway as error:
            raise DeliveryError(Trouble.RETRY, error.message) from None
        except BrokerRefused as error:
            raise DeliveryError(Trouble.FAILED, error.message) from None
        return Done({"topic": topic})

    async def close(self) -> None:
        """Links are their own task's, other connections end with their message."""


def event_message(outgoing: Outgoing) -> dict[str, object]:
    """What is published: the message as data, its id, and the type by which Home Assistant knows events."""
    kind = home_assistant.event_type(str(outgoing.body.get("primary_event", "")))
    return {**outgoing.body, "delivery_uuid": outgoing.delivery_uuid, "event_type": kind}


def link_terms(receiver: Receiver, installation: str, public_url: str) -> LinkTerms:
    config = receiver.config
    named = str(config.get("installation") or installation)
    return LinkTerms(
        receiver_id=receiver.receiver_id,
        receiver_uuid=receiver.receiver_uuid,
        tenant_id=receiver.tenant_id,
        broker=Broker(
            host=str(config["host"]),
            port=int(config.get("port") or (8883 if config.get("tls") else 1883)),
            tls=bool(config.get("tls")),
            ca=str(config.get("ca") or ""),
            username=str(config.get("username") or ""),
            password=receiver.secrets.get("password"),
            client_id=str(config.get("client_id") or f"camserver-{named}-{receiver.receiver_uuid[-4:]}"),
        ),
        topics=Topics(str(config.get("prefix") or "camserver"), named),
        discovery_prefix=str(config.get("discovery_prefix", "homeassistant")),
        language=receiver.language,
        public_url=public_url,
    )
