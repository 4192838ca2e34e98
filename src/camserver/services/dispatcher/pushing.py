"""Messages to browsers: one delivery goes to every browser of those who may see what it is about.

Each browser is told once: whom an attempt reached is kept with the delivery, so the next one leaves them out. A
browser that fails again and again is still tried with every message, but no message is held up for it any more.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from camserver.base.cancelling import apart
from camserver.base.clock import Clock
from camserver.base.credentials import Keys, open_sealed
from camserver.base.errors import BadInput, DataUnusable
from camserver.base.log import get_logger
from camserver.clients.outgoing import OutgoingHttp
from camserver.clients.push_sealing import ServerKey, parse_keys
from camserver.clients.web_push import Pushed, Target, WebPush
from camserver.domain.deliveries import (
    Along,
    DeliveryError,
    Done,
    JsonObject,
    Outgoing,
    Receiver,
    Suppressed,
    Trouble,
)
from camserver.domain.messages import Text
from camserver.domain.push_messages import push_message, topic_of
from camserver.store import Store, push_subscriptions
from camserver.store.push_subscriptions import Subscribed

log = get_logger(__name__)

# At once for one message.
ABREAST: Final = 8
# After this no further browser is begun with: who sends gives a message a minute.
ATTEMPT_MS: Final = 30_000
# Failures in a row after which a browser holds up no message.
PATIENCE: Final = 5
NOBODY_SUBSCRIBED: Final = "nobody_subscribed"


@dataclass(slots=True)
class _Tally:
    """What became of one attempt, by subscription."""

    sent: list[Subscribed] = field(default_factory=list)
    gone: list[Subscribed] = field(default_factory=list)
    refused: list[Subscribed] = field(default_factory=list)
    failed: list[Subscribed] = field(default_factory=list)
    # Of those that are worth another attempt.
    errors: list[DeliveryError] = field(default_factory=list)

    def along(self, now_ms: int) -> tuple[Along, ...]:
        def ids(some: Sequence[Subscribed]) -> tuple[int, ...]:
            return tuple(one.subscription_id for one in some)

        return (
            Along(
                push_subscriptions.settle,
                (ids(self.sent), ids([*self.refused, *self.failed]), ids(self.gone), now_ms),
            ),
        )

    def progress(self, before: JsonObject) -> dict[str, Any]:
        """Ids only: an address is the browser's secret."""
        named = {"sent": self.sent, "gone": self.gone, "refused": self.refused}
        return {
            name: [*before.get(name, ()), *(one.subscription_uuid for one in some)] for name, some in named.items()
        }


class PushSender:
    """Implements domain.deliveries.Sender for receivers of kind push."""

    def __init__(
        self, store: Store, clock: Clock, http: OutgoingHttp, push_key: bytes, credential_key: Keys, public_url: str
    ) -> None:
        self._store = store
        self._clock = clock
        self._push = WebPush(http, ServerKey(push_key))
        self._credential_key = credential_key
        self._contact = contact_of(public_url)

    async def send(self, receiver: Receiver, outgoing: Outgoing) -> Done | Suppressed:
        before = outgoing.progress
        over = {uuid for name in ("sent", "gone", "refused") for uuid in before.get(name, ())}
        found = await self._store.read(
            push_subscriptions.to_tell,
            receiver.tenant_id,
            outgoing.site_id,
            receiver.config.get("users"),
            outgoing.camera_key,
        )
        if not found and not over:
            # Neither a trial nor a message may say that it arrived.
            if outgoing.body.get("kind") != "trial":
                return Suppressed(NOBODY_SUBSCRIBED)
            raise DeliveryError(
                Trouble.REFUSED,
                "no browser is told through it yet; switch one on in the account menu ('Notify me in this browser')",
            )
        if len(found) == push_subscriptions.PER_MESSAGE_MAX:
            log.warning("push_subscriptions_beyond_bound", receiver=receiver.name, most=len(found))
        untold = [one for one in found if one.subscription_uuid not in over]
        tally = await apart(self._send_all(untold, receiver, outgoing))
        now_ms = self._clock.now_ms()
        if not tally.errors:
            failed = [one.subscription_uuid for one in tally.failed]
            return Done({**tally.progress(before), "failed": failed}, tally.along(now_ms))
        raise _joined(tally, before, now_ms)

    async def _send_all(self, browsers: Sequence[Subscribed], receiver: Receiver, outgoing: Outgoing) -> _Tally:
        messages = {language: _message(outgoing, text) for language, text in outgoing.translations.items()}
        usual = _message(outgoing, outgoing.text)
        tally = _Tally()
        abreast = asyncio.Semaphore(ABREAST)
        began_boot_ms = self._clock.boot_ms()

        async def send(browser: Subscribed) -> None:
            async with abreast:
                if self._clock.boot_ms() - began_boot_ms >= ATTEMPT_MS:
                    tally.errors.append(DeliveryError(Trouble.RETRY, "there was no time left for it", 0.0))
                    return
                message = messages.get(browser.language, usual)
                await self._send_one(browser, message, receiver, topic_of(outgoing.tag), tally)

        async with asyncio.TaskGroup() as group:
            for browser in browsers:
                group.create_task(send(browser))
        return tally

    async def _send_one(
        self, browser: Subscribed, text: bytes, receiver: Receiver, topic: str, tally: _Tally
    ) -> None:
        try:
            target = self._target(browser)
        except (BadInput, DataUnusable) as error:
            log.warning("push_subscription_unusable", subscription=browser.subscription_uuid, why=error.message)
            tally.refused.append(browser)
            return
        contact = str(receiver.config.get("contact") or self._contact)
        try:
            pushed = await self._push.push(target, text, contact=contact, topic=topic, now_ms=self._clock.now_ms())
        except DeliveryError as error:
            log.info("push_failed", subscription=browser.subscription_uuid, why=error.message)
            if error.kind is Trouble.REFUSED:
                tally.refused.append(browser)
                return
            tally.failed.append(browser)
            if browser.failures < PATIENCE:
                tally.errors.append(error)
            return
        {Pushed.SENT: tally.sent, Pushed.GONE: tally.gone, Pushed.REFUSED: tally.refused}[pushed].append(browser)

    def _target(self, browser: Subscribed) -> Target:
        bound_to = f"push:{browser.subscription_uuid}"
        auth = open_sealed(self._credential_key, browser.tenant_id, bound_to, browser.sealed)
        return Target(browser.endpoint, parse_keys(browser.p256dh, auth.decode("ascii", "replace")))

    async def close(self) -> None:
        """The connections are their maker's."""


def _message(outgoing: Outgoing, text: Text) -> bytes:
    return push_message(
        text.title,
        text.lines,
        tag=outgoing.tag or outgoing.delivery_uuid,
        link=text.link,
        delivery_uuid=outgoing.delivery_uuid,
    )


def contact_of(public_url: str) -> str:
    """Whom a push service may tell of trouble. Some refuse an address that is not of the public internet."""
    return public_url if public_url.startswith("https://") else "mailto:camserver@localhost"


def _joined(tally: _Tally, before: JsonObject, now_ms: int) -> DeliveryError:
    """One error for all browsers that are to be tried again."""
    waits = [error.retry_after_sec for error in tally.errors if error.retry_after_sec is not None]
    first = tally.errors[0]
    count = f"{len(tally.errors)} of {len(tally.errors) + len(tally.sent)} browsers not reached: "
    return DeliveryError(
        Trouble.RETRY if all(error.kind is Trouble.RETRY for error in tally.errors) else Trouble.FAILED,
        f"{count}{first.message}",
        max(waits, default=None),
        progress=tally.progress(before),
        along=tally.along(now_ms),
    )
