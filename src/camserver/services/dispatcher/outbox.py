"""Puts the deliveries together: who sends what to whom, and the loops beside it.

notify      Notifier.notify       fans out into messages
message     Notifier.message      a Sender by the receiver's kind
archive     Archiver.archive      fans out into copies
copy        Archiver.copy         a shelf by the receiver's kind
llm_review  Reviewer.handle       only where a model is configured
summary     summary_handler       fans out into messages
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from camserver.base.clock import Clock
from camserver.clients.mail import MailSender
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.clients.slack import SlackSender
from camserver.clients.webhook import WebhookSender
from camserver.config.secret_files import Secrets, make_secrets
from camserver.domain.deliveries import Handler, ReceiverKind, Sender
from camserver.domain.facts import DeliveryKind
from camserver.domain.links import LinkKeys
from camserver.domain.vocabulary import Vocabulary
from camserver.objects.interface import Objects
from camserver.services.dispatcher.archives import open_archives
from camserver.services.dispatcher.archiving import Archiver, ArchiveSweeper
from camserver.services.dispatcher.configured import keep_configured
from camserver.services.dispatcher.counting import follow_statistics
from camserver.services.dispatcher.delivering import DeliveryDesk, run_deliveries
from camserver.services.dispatcher.mqtt_links import MqttLinks, MqttSender
from camserver.services.dispatcher.notifying import Notifier
from camserver.services.dispatcher.pushing import PushSender
from camserver.services.dispatcher.receivers import ReceiverBook
from camserver.services.dispatcher.retaining import Retainer
from camserver.services.dispatcher.reviewing import open_reviewer
from camserver.services.dispatcher.summarizing import follow_summaries, summary_handler
from camserver.store import Store

if TYPE_CHECKING:
    from camserver.config import Settings


@dataclass(slots=True)
class Outbox:
    """Everything that leaves the house, and what is done beside it. `run` runs until it is cancelled."""

    desk: DeliveryDesk
    loops: tuple[Callable[[], Awaitable[None]], ...]
    closing: AsyncExitStack

    @property
    def book(self) -> ReceiverBook:
        return self.desk.book

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run_deliveries(self.desk))
            for loop in self.loops:
                group.create_task(_forever(loop))

    async def close(self) -> None:
        await self.closing.aclose()


async def _forever(loop: Callable[[], Awaitable[None]]) -> None:
    await loop()


def open_outbox(
    name: str,
    store: Store,
    objects: Objects,
    clock: Clock,
    settings: "Settings",
    vocabulary: Callable[[], Vocabulary | None],
) -> Outbox:
    secrets = make_secrets(settings)
    closing = AsyncExitStack()
    policy = OutgoingPolicy(allow_loopback=settings.deliveries.allow_loopback)
    http = OutgoingHttp(policy, settings.deliveries.timeout_sec)
    closing.push_async_callback(http.close)
    book = ReceiverBook(store, clock, secrets.credential_key_bytes(), llm_is_configured=settings.llm.is_configured)
    public_url = settings.server.public_url.rstrip("/")
    links = MqttLinks(name, store, objects, clock, policy, public_url, lambda: book.everywhere, book.note)
    senders: dict[ReceiverKind, Sender] = {
        ReceiverKind.WEBHOOK: WebhookSender(http, clock),
        ReceiverKind.SLACK: SlackSender(http),
        ReceiverKind.EMAIL: MailSender(policy, clock, settings.deliveries.timeout_sec),
        ReceiverKind.MQTT: MqttSender(links, policy),
        ReceiverKind.PUSH: PushSender(
            store, clock, http, secrets.push_key_bytes(), secrets.credential_key_bytes(), public_url
        ),
    }
    archives = open_archives(store, http, clock, settings)
    for archive in archives.values():
        closing.push_async_callback(archive.close)
    for sender in senders.values():
        closing.push_async_callback(sender.close)
    notifier = Notifier(
        store=store,
        objects=objects,
        clock=clock,
        book=book,
        senders=senders,
        policy=settings.notify,
        vocabulary=vocabulary,
        public_url=public_url,
        link_keys=_link_keys(secrets),
    )
    archiver = Archiver(
        store=store,
        objects=objects,
        clock=clock,
        book=book,
        archives=archives,
        policy=settings.archive,
        credential_key=secrets.credential_key_bytes(),
    )
    handlers: dict[DeliveryKind, Handler] = {
        DeliveryKind.NOTIFY: notifier.notify,
        DeliveryKind.MESSAGE: notifier.message,
        DeliveryKind.ARCHIVE: archiver.archive,
        DeliveryKind.COPY: archiver.copy,
        DeliveryKind.SUMMARY: summary_handler(store),
    }
    reviewer = open_reviewer(store, objects, clock, settings)
    if reviewer is not None:
        closing.push_async_callback(reviewer.close)
        handlers[DeliveryKind.LLM_REVIEW] = reviewer.handle
    desk = DeliveryDesk(name, store, clock, settings.deliveries, book, handlers)
    retainer = Retainer(store, objects, clock, settings.retention, name)
    loops = (
        lambda: keep_configured(store, clock, settings, secrets.credential_key_bytes()),
        links.run,
        ArchiveSweeper(name, store, clock, book, archives, settings.archive).run,
        retainer.run,
        lambda: follow_statistics(store, clock),
        lambda: follow_summaries(store, clock, settings.summaries, name),
    )
    return Outbox(desk, loops, closing)


def _link_keys(secrets: Secrets) -> LinkKeys:
    previous = secrets.media_hmac_previous
    return LinkKeys(secrets.media_hmac.reveal().encode(), None if previous is None else previous.reveal().encode())
