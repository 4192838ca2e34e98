"""Telling people: a notice becomes one message for each receiver that is to have it, and a message is sent.

Who gets it is decided twice, when the notice fans out and again at sending: a message may have waited for hours.
At sending the receiver is reserved for the camera, so that no two dispatchers send within one cooldown; the cooldown
starts, and the message is remembered, in the transaction that ends its delivery.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from camserver.base.batches import Batcher
from camserver.base.clock import Clock
from camserver.base.errors import BadInput, NotFound, Retry
from camserver.base.log import get_logger
from camserver.base.zones import zone_of
from camserver.domain import links, messages
from camserver.domain.deliveries import (
    Along,
    Child,
    Claimed,
    DeliveryError,
    Done,
    Ending,
    FanOut,
    Later,
    Outgoing,
    Receiver,
    ReceiverKind,
    Sender,
    Suppressed,
    Trouble,
)
from camserver.domain.facts import DeliveryKind
from camserver.domain.links import LinkKeys
from camserver.domain.messages import Language, Text
from camserver.domain.notices import BACK, CONTINUES, NotifyPolicy, cooldown_scope, told_as, waits_for_cooldown
from camserver.domain.routing import COUNTED, Route, Verdict, route, widest
from camserver.domain.vocabulary import Vocabulary
from camserver.media.thumbnails import thumbnail
from camserver.objects.interface import Objects
from camserver.objects.keys import Kind, frame_key
from camserver.services.dispatcher.receivers import ReceiverBook
from camserver.store import Store, cooldowns, notice_facts, notifications
from camserver.store.cameras import PicturePlace
from camserver.store.cooldowns import RESERVED_MS, Busy, Held, Reserved, Sending
from camserver.store.notice_facts import Asked, EventRow, Telling
from camserver.store.notifications import Sent

log = get_logger(__name__)

# A message that takes longer is given up; a reservation holds for twice as long.
SEND_MAX_SEC = RESERVED_MS / 2000
# How soon a message is looked at again that found its receiver reserved.
BUSY_PAUSE_MS = 2_000
# A signed link lives longer than those of the web pages: messages are read later.
LINK_TTL_SEC = 86_400
EVENT_GONE = "event_gone"
# Messages that one read, or one transaction, is for.
AT_ONCE = 64


@dataclass(slots=True)
class Notifier:
    """Handlers of `notify` and `message`. `vocabulary` answers the active one, None before it was read."""

    store: Store
    objects: Objects
    clock: Clock
    book: ReceiverBook
    senders: Mapping[ReceiverKind, Sender]
    policy: NotifyPolicy
    vocabulary: Callable[[], Vocabulary | None]
    public_url: str
    link_keys: LinkKeys
    # Messages to one receiver about one camera go one after the other: each may start the cooldown of the next.
    _turns: WeakValueDictionary[tuple[int, int], asyncio.Lock] = field(default_factory=WeakValueDictionary)
    # What several of them read, and reserve, at the same time is one read, and one transaction.
    _reader: Batcher[Asked, Telling | None] = field(init=False)
    _reserver: Batcher[Sending, Reserved | Busy | Held] = field(init=False)

    def __post_init__(self) -> None:
        self._reader = Batcher(self._tellings, size_max=AT_ONCE, waiting_max=100 * AT_ONCE)
        self._reserver = Batcher(self._reserve, size_max=AT_ONCE, waiting_max=100 * AT_ONCE)

    async def close(self) -> None:
        """Waits for what is under way at the store."""
        await self._reader.close()
        await self._reserver.close()

    async def _tellings(self, asked: tuple[Asked, ...]) -> Sequence[Telling | None]:
        return await self.store.read(notice_facts.tellings, asked, self.clock.now_ms())

    async def _reserve(self, sendings: tuple[Sending, ...]) -> Sequence[Reserved | Busy | Held]:
        return await self.store.write(cooldowns.reserve_each, sendings, self.clock.now_ms())

    async def notify(self, claimed: Claimed) -> Ending:
        """Fans a notice out to the receivers that are meant; what is held back now is told by their counts."""
        if claimed.event_id is None:
            raise DeliveryError(Trouble.REFUSED, "the notice is about no event")
        telling = await self._telling(claimed, None)
        if telling is None:
            return Suppressed(EVENT_GONE)
        found = self._routes(telling)
        meant = [one for one in found if one.is_meant]
        return FanOut(
            tuple(Child(DeliveryKind.MESSAGE, one.receiver_id) for one in meant),
            {"verdicts": {str(one.receiver_id): one.verdict.value for one in found}},
        )

    async def message(self, claimed: Claimed) -> Ending:
        """Sends one message, unless something holds it back."""
        receiver = await self.book.receiver_of(claimed)
        if receiver is None:
            raise DeliveryError(Trouble.REFUSED, "the receiver was removed")
        if claimed.event_id is None or claimed.camera_key is None:
            return await self._send_ready(claimed, receiver)
        turn = self._turns.setdefault((receiver.receiver_id, claimed.camera_key), asyncio.Lock())
        async with turn:
            return await self._send_in_turn(claimed, receiver)

    # A text that was written before: a trial, a summary

    async def _send_ready(self, claimed: Claimed, receiver: Receiver) -> Ending:
        texts = claimed.request.get("texts")
        if not isinstance(texts, Mapping):
            texts = messages.trial_texts(receiver.name)
        link = claimed.request.get("link")
        page = link if isinstance(link, str) else None
        text = messages.ready_text(texts, language_of(receiver), page)
        extra = claimed.request.get("body")
        outgoing = Outgoing(
            delivery_uuid=claimed.delivery_uuid,
            text=text,
            body={
                "kind": claimed.reason,
                "title": text.title,
                "lines": list(text.lines),
                "language": text.language.value,
                "link": text.link,
                **(extra if isinstance(extra, Mapping) else {}),
            },
            attempt=claimed.attempt,
            progress=claimed.result,
            tenant_id=claimed.tenant_id,
            site_id=claimed.site_id,
            camera_key=claimed.camera_key,
            translations=_translations(receiver, lambda language: messages.ready_text(texts, language, page)),
        )
        done = await self._sent(receiver, outgoing, ())
        if isinstance(done, Suppressed):
            return done
        return _with_record(done, claimed, receiver, text, None, None, self.clock.now_ms())

    # A message about an event

    async def _send_in_turn(self, claimed: Claimed, receiver: Receiver) -> Ending:
        telling = await self._telling(claimed, receiver.receiver_id)
        if telling is None:
            return Suppressed(EVENT_GONE)
        held = await self._held(claimed, receiver, telling)
        if held is not None:
            return held
        event = telling.event
        sending = Sending(
            claimed.tenant_id,
            receiver.receiver_id,
            event.camera_key,
            cooldown_scope(event.primary_event, event.subject),
            claimed.reason,
            receiver.hourly_cap,
        )
        reserved = await self._reserver.submit(sending)
        if isinstance(reserved, Busy):
            soon_ms = self.clock.now_ms() + BUSY_PAUSE_MS
            return Later(min(reserved.until, soon_ms), "another message about this camera is on its way")
        if isinstance(reserved, Held):
            if reserved.verdict is Verdict.COOLDOWN and waits_for_cooldown(claimed.reason, event.subject):
                return Later(reserved.until, "waits for the cooldown")
            return self._counted(claimed, receiver, event, reserved.verdict)
        given_up = (Along(cooldowns.given_up, (reserved,)),)
        try:
            outgoing = await self._outgoing(claimed, receiver, event, reserved)
        except Retry as error:
            raise DeliveryError(Trouble.RETRY, error.message, along=given_up) from None
        except Exception as error:
            log.exception("message_not_made")
            raise DeliveryError(Trouble.FAILED, f"{type(error).__name__}: {error}", along=given_up) from None
        done = await self._sent(receiver, outgoing, given_up)
        if isinstance(done, Suppressed):
            # Nobody was told, so nothing holds back the next one.
            return replace(done, along=(*done.along, *given_up))
        return _with_record(done, claimed, receiver, outgoing.text, reserved, self.policy, self.clock.now_ms())

    async def _held(self, claimed: Claimed, receiver: Receiver, telling: Telling) -> Ending | None:
        """Why the message is not sent, by rules, quiet hours, snoozes and caps; None when they let it through."""
        found = self._routes(telling)
        verdict = found[0].verdict if found else Verdict.RECEIVER_OFF
        if verdict in COUNTED:
            return self._counted(claimed, receiver, telling.event, verdict)
        if verdict is not Verdict.SEND:
            return Suppressed(verdict.value)
        if claimed.reason == BACK and not await self.store.read(
            notice_facts.was_told, telling.event.event_id, receiver.receiver_id, claimed.created_at
        ):
            return Suppressed(Verdict.NOT_TOLD.value)
        return None

    def _counted(self, claimed: Claimed, receiver: Receiver, event: EventRow, verdict: Verdict) -> Suppressed:
        args = (claimed.tenant_id, receiver.receiver_id, event.camera_key, self.clock.now_ms())
        return Suppressed(verdict.value, (Along(cooldowns.held_back, args),))

    async def _telling(self, claimed: Claimed, receiver_id: int | None) -> Telling | None:
        assert claimed.event_id is not None
        asked = Asked(claimed.tenant_id, claimed.event_id, claimed.frame_id, receiver_id)
        return await self._reader.submit(asked)

    def _routes(self, telling: Telling) -> tuple[Route, ...]:
        """Who hears of it. A message about many cameras is for whoever would hear of one of them."""
        event, now_ms = telling.event, self.clock.now_ms()
        rules, snoozes, recipients = telling.rules, telling.snoozes, telling.recipients
        zone = zone_of(event.timezone)
        found = [route(notice, rules, snoozes, recipients, zone, now_ms) for notice in event.notices]
        return tuple(widest(routes) for routes in zip(*found, strict=True))

    # Sending

    async def _outgoing(self, claimed: Claimed, receiver: Receiver, event: EventRow, reserved: Reserved) -> Outgoing:
        vocabulary = self.vocabulary()
        if vocabulary is None:
            raise Retry("the vocabulary was not read yet")
        facts = event.facts(await self._told_as(claimed, receiver, event), zone_of(event.timezone))
        telling = messages.Telling(
            reserved.held_back,
            reserved.is_last_of_hour,
            link=f"{self.public_url}/events/{event.event_uuid}",
            picture_link=self._picture_link(receiver, event),
        )
        text = messages.render(facts, vocabulary, language_of(receiver), telling)
        shows_picture = claimed.reason != BACK and not event.others and receiver.config.get("picture", True)
        return Outgoing(
            delivery_uuid=claimed.delivery_uuid,
            text=text,
            body=messages.document(facts, vocabulary, text, reserved.held_back),
            tag=event.incident_uuid,
            picture=await self._picture(event.picture) if shows_picture else None,
            attempt=claimed.attempt,
            progress=claimed.result,
            tenant_id=claimed.tenant_id,
            site_id=event.site_id,
            camera_key=event.camera_key,
            translations=_translations(
                receiver, lambda language: messages.render(facts, vocabulary, language, telling)
            ),
        )

    async def _told_as(self, claimed: Claimed, receiver: Receiver, event: EventRow) -> str:
        """As what it is worded. A camera's own issue is one event; what a camera sees goes on over an incident's."""
        if claimed.reason != CONTINUES:
            return claimed.reason
        if event.subject or claimed.incident_id is None:
            told = self.store.read(notice_facts.was_told, event.event_id, receiver.receiver_id, claimed.created_at)
        else:
            told = self.store.read(
                notice_facts.was_told_of_incident, claimed.incident_id, receiver.receiver_id, claimed.created_at
            )
        return told_as(claimed.reason, await told)

    def _picture_link(self, receiver: Receiver, event: EventRow) -> str | None:
        """A link that opens the picture for whoever has it, for receivers that want it; never for a case's."""
        if not receiver.config.get("signed_link") or event.picture is None:
            return None
        exp_unix = self.clock.now_ms() // 1000 + LINK_TTL_SEC
        frame_uuid = event.picture.frame_uuid
        signature = links.sign(self.link_keys, frame_uuid, Kind.INFER.value, exp_unix)
        return f"{self.public_url}/media/frame/{frame_uuid}?{signature.query}"

    async def _picture(self, place: PicturePlace | None) -> bytes | None:
        """A message without its picture is better than none, so one that is gone or broken is left out."""
        if place is None:
            return None
        key = frame_key(
            place.epoch_id, place.tenant_id, place.camera_key, place.captured_at, place.frame_uuid, Kind.INFER
        )
        try:
            return await asyncio.to_thread(thumbnail, await self.objects.get(key))
        except (NotFound, BadInput) as error:
            log.warning("message_without_picture", frame_uuid=place.frame_uuid, why=error.message)
            return None

    async def _sent(self, receiver: Receiver, outgoing: Outgoing, given_up: tuple[Along, ...]) -> Done | Suppressed:
        """Sends; whatever goes wrong gives the reservation back."""
        sender = self.senders.get(receiver.kind)
        if sender is None:
            raise DeliveryError(
                Trouble.REFUSED, f"nothing here sends to receivers of kind {receiver.kind}", along=given_up
            )
        try:
            async with asyncio.timeout(SEND_MAX_SEC):
                return await sender.send(receiver, outgoing)
        except DeliveryError as error:
            error.along = (*error.along, *given_up)
            raise
        except TimeoutError:
            raise DeliveryError(Trouble.FAILED, f"not sent within {SEND_MAX_SEC:g} s", along=given_up) from None
        except Exception as error:
            log.exception("message_failed")
            raise DeliveryError(Trouble.FAILED, f"{type(error).__name__}: {error}", along=given_up) from None


def _with_record(
    done: Done,
    claimed: Claimed,
    receiver: Receiver,
    text: Text,
    reserved: Reserved | None,
    policy: NotifyPolicy | None,
    now_ms: int,
) -> Done:
    """The end of a delivery together with the memory of its message."""
    record = Sent(
        claimed.tenant_id,
        claimed.delivery_id,
        receiver.receiver_id,
        claimed.site_id,
        claimed.camera_key,
        claimed.event_id,
        claimed.incident_id,
        receiver.kind.value,
        text.plain,
        0 if reserved is None else reserved.held_back,
    )
    return replace(done, along=(*done.along, Along(notifications.sent, (record, reserved, policy, now_ms))))


def _translations(receiver: Receiver, make: Callable[[Language], Text]) -> dict[str, Text]:
    """Browsers have the language of whoever uses them; every other receiver has one of its own."""
    return {language.value: make(language) for language in Language} if receiver.kind is ReceiverKind.PUSH else {}


def language_of(receiver: Receiver) -> Language:
    return Language.EN if receiver.language == Language.EN.value else Language.JA
