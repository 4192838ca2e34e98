"""Puts the deliveries together: who sends what to whom, and the loops beside it.

notify      Notifier.notify       fans out into messages
message     Notifier.message      a Sender by the receiver's kind
archive     Archiver.archive      fans out into copies
copy        Archiver.copy         a shelf by the receiver's kind
llm_review  Reviewer.handle       only where a model is configured
summary     summary_handler       fans out into messages
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from camserver.base.clock import Clock
from camserver.base.credentials import Keys
from camserver.clients.mail import MailSender
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.clients.slack import SlackSender
from camserver.clients.webhook import WebhookSender
from camserver.config.secret_files import Secrets, make_secrets
from camserver.domain.archive import Archive
from camserver.domain.audit import SealKey
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
from camserver.services.dispatcher.sealing import Sealer
from camserver.services.dispatcher.summarizing import follow_summaries, summary_handler
from camserver.services.dispatcher.turns import patiently
from camserver.store import Store

if TYPE_CHECKING:
    from camserver.config import Settings


Loop = Callable[[], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class Outbox:
    """Everything that leaves the house, and what is done beside it. `run` runs until it is cancelled."""

    desk: DeliveryDesk
    configure: Loop  # brings the receivers of the settings in line
    loops: tuple[Loop, ...]
    closing: AsyncExitStack

    @property
    def book(self) -> ReceiverBook:
        return self.desk.book

    async def get_ready(self) -> None:
        """Learns who receives what. Before that nothing may be decided: it would be told to nobody, for good."""
        await self.configure()
        await patiently(self.desk.clock, self.book.refresh)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run_deliveries(self.desk))
            for loop in self.loops:
                group.create_task(loop())

    async def close(self) -> None:
        await self.closing.aclose()


@dataclass(frozen=True, slots=True)
class _Means:
    """What the parts of the outbox share. Whatever is opened is closed by `closing`."""

    name: str
    store: Store
    objects: Objects
    clock: Clock
    settings: "Settings"
    secrets: Secrets
    policy: OutgoingPolicy
    http: OutgoingHttp
    book: ReceiverBook
    closing: AsyncExitStack

    @property
    def public_url(self) -> str:
        return self.settings.server.public_url.rstrip("/")

    @property
    def credential_key(self) -> Keys:
        return self.secrets.credential_keys


def open_outbox(
    name: str,
    store: Store,
    objects: Objects,
    clock: Clock,
    settings: "Settings",
    vocabulary: Callable[[], Vocabulary | None],
) -> Outbox:
    means = _means(name, store, objects, clock, settings)
    links = MqttLinks(
        name, store, objects, clock, means.policy, means.public_url, lambda: means.book.everywhere, means.book.note
    )
    archives = open_archives(store, means.http, clock, settings)
    for archive in archives.values():
        means.closing.push_async_callback(archive.close)
    notifier = _notifier(means, _senders(means, links), vocabulary)
    handlers = _handlers(means, notifier, _archiver(means, archives))
    desk = DeliveryDesk(name, store, clock, settings.deliveries, means.book, handlers)
    return Outbox(
        desk,
        lambda: keep_configured(store, clock, settings, means.credential_key),
        _loops(means, links, archives),
        means.closing,
    )


def _means(name: str, store: Store, objects: Objects, clock: Clock, settings: "Settings") -> _Means:
    secrets = make_secrets(settings)
    policy = OutgoingPolicy(allow_loopback=settings.deliveries.allow_loopback)
    http = OutgoingHttp(policy, settings.deliveries.timeout_sec)
    book = ReceiverBook(store, clock, secrets.credential_keys, llm_is_configured=settings.llm.is_configured)
    closing = AsyncExitStack()
    closing.push_async_callback(http.close)
    return _Means(name, store, objects, clock, settings, secrets, policy, http, book, closing)


def _senders(means: _Means, links: MqttLinks) -> dict[ReceiverKind, Sender]:
    """Who sends messages, by the receiver's kind."""
    clock, http, timeout_sec = means.clock, means.http, means.settings.deliveries.timeout_sec
    push_key = means.secrets.push_key_bytes()
    senders: dict[ReceiverKind, Sender] = {
        ReceiverKind.WEBHOOK: WebhookSender(http, clock),
        ReceiverKind.SLACK: SlackSender(http),
        ReceiverKind.EMAIL: MailSender(means.policy, clock, timeout_sec),
        ReceiverKind.MQTT: MqttSender(links, means.policy),
        ReceiverKind.PUSH: PushSender(means.store, clock, http, push_key, means.credential_key, means.public_url),
    }
    for sender in senders.values():
        means.closing.push_async_callback(sender.close)
    return senders


def _notifier(
    means: _Means, senders: dict[ReceiverKind, Sender], vocabulary: Callable[[], Vocabulary | None]
) -> Notifier:
    notifier = Notifier(
        store=means.store,
        objects=means.objects,
        clock=means.clock,
        book=means.book,
        senders=senders,
        policy=means.settings.notify,
        vocabulary=vocabulary,
        public_url=means.public_url,
        link_keys=_link_keys(means.secrets),
    )
    means.closing.push_async_callback(notifier.close)
    return notifier


def _archiver(means: _Means, archives: dict[ReceiverKind, Archive]) -> Archiver:
    return Archiver(
        store=means.store,
        objects=means.objects,
        clock=means.clock,
        book=means.book,
        archives=archives,
        policy=means.settings.archive,
        credential_key=means.credential_key,
    )


def _handlers(means: _Means, notifier: Notifier, archiver: Archiver) -> dict[DeliveryKind, Handler]:
    """Who sees to a delivery, by its kind."""
    handlers: dict[DeliveryKind, Handler] = {
        DeliveryKind.NOTIFY: notifier.notify,
        DeliveryKind.MESSAGE: notifier.message,
        DeliveryKind.ARCHIVE: archiver.archive,
        DeliveryKind.COPY: archiver.copy,
        DeliveryKind.SUMMARY: summary_handler(means.store),
    }
    reviewer = open_reviewer(means.store, means.objects, means.clock, means.settings)
    if reviewer is not None:
        means.closing.push_async_callback(reviewer.close)
        handlers[DeliveryKind.LLM_REVIEW] = reviewer.handle
    return handlers


def _loops(means: _Means, links: MqttLinks, archives: dict[ReceiverKind, Archive]) -> tuple[Loop, ...]:
    """What runs beside the deliveries."""
    name, store, clock, settings = means.name, means.store, means.clock, means.settings
    key = SealKey(means.secrets.audit_key_bytes())
    return (
        links.run,
        ArchiveSweeper(name, store, clock, means.book, archives, settings.archive).run,
        Retainer(store, means.objects, clock, settings.retention, name, key).run,
        Sealer(store, clock, key, settings.server.data_dir, name).run,
        lambda: follow_statistics(store, clock),
        lambda: follow_summaries(store, clock, settings.summaries, name),
    )


def _link_keys(secrets: Secrets) -> LinkKeys:
    previous = secrets.media_hmac_previous
    return LinkKeys(secrets.media_hmac.reveal().encode(), None if previous is None else previous.reveal().encode())
