"""Messages to browsers, against a push service that checks, opens, and misbehaves."""

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from uuid_utils import uuid7

from camserver.base.credentials import seal
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.clients.push_sealing import ServerKey
from camserver.domain.deliveries import DeliveryError, Done, Outgoing, Receiver, ReceiverKind, Suppressed, Trouble
from camserver.domain.messages import Language, Text
from camserver.services.dispatcher.pushing import PATIENCE, PushSender, contact_of
from camserver.store import Store, Tx, push_subscriptions
from camserver.store.first_start import Home
from camserver.store.push_subscriptions import NewSubscription
from tests.fakes.push import Fault, PushService
from tests.rig.clock import START_MS, ManualClock
from tests.store.people_rows import add_tenant, add_user, count_rows, execute

PUSH_KEY = b"\x07" * 32
CREDENTIAL_KEY = b"\x09" * 32
INCIDENT = "01934e9a-8a3b-7c4d-9e5f-1a2b3c4d5e6f"
# For an answer that never comes; everybody else is given a minute.
IMPATIENT_SEC = 0.3


@dataclass(slots=True)
class Town:
    """People with browsers, a push service, and who sends."""

    store: Store
    service: PushService
    sender: PushSender
    home: Home

    async def person(self, login: str, *faults: Fault, role: str = "viewer", language: str = "ja") -> str:
        """Somebody with a browser that is switched on; its address."""
        user_id = await self.store.write(add_user, self.home.tenant_id, login, role, None, START_MS)
        endpoint, browser = self.service.subscribe(ServerKey(PUSH_KEY).public, *faults)
        subscription_uuid = str(uuid7())
        sealed = seal(CREDENTIAL_KEY, self.home.tenant_id, f"push:{subscription_uuid}", browser.auth.encode())
        digest = hashlib.sha256(endpoint.encode()).hexdigest()
        new = NewSubscription(subscription_uuid, endpoint, digest, browser.p256dh, sealed, language)
        await self.store.write(push_subscriptions.add, self.home.tenant_id, user_id, new, "", START_MS)
        return endpoint

    def receiver(self, **config: object) -> Receiver:
        return Receiver(1, "receiver", self.home.tenant_id, "browsers", ReceiverKind.PUSH, config)

    async def send(self, progress: dict[str, object] | None = None, **config: object) -> Done:
        done = await self.sent_or_not(progress, **config)
        assert isinstance(done, Done)
        return done

    async def sent_or_not(self, progress: dict[str, object] | None = None, **config: object) -> Done | Suppressed:
        """One attempt, with what is written along with its end."""
        outgoing = Outgoing(
            delivery_uuid="delivery-1",
            text=Text(Language.JA, "main 入口：人を検知", ("重要度：2/3",), link="https://cameras.example/events/e1"),
            body={},
            tag=INCIDENT,
            progress=progress or {},
            tenant_id=self.home.tenant_id,
            site_id=self.home.site_id,
            translations={"en": Text(Language.EN, "main entrance: Person detected", ("Severity: 2/3",))},
        )
        try:
            done = await self.sender.send(self.receiver(**config), outgoing)
        except DeliveryError as error:
            await self._write(error.along)
            raise
        await self._write(done.along)
        return done

    async def _write(self, along: object) -> None:
        assert isinstance(along, tuple)
        for one in along:
            await self.store.write(one.operation, *one.args)

    async def subscriptions(self) -> int:
        return await self.store.read(count_rows, "push_subscriptions")


@pytest.fixture
def db_kind() -> str:
    """What is stored is tested on every database in tests/store/test_push_subscriptions.py."""
    return "sqlite"


@pytest.fixture
async def town(store: Store, clock: ManualClock) -> AsyncIterator[Town]:
    home = await store.write(_furnish)
    http = OutgoingHttp(OutgoingPolicy(allow_loopback=True), 60.0)
    async with PushService(START_MS // 1000) as service:
        sender = PushSender(store, clock, http, PUSH_KEY, CREDENTIAL_KEY, "https://cameras.example")
        yield Town(store, service, sender, home)
    await http.close()


async def _furnish(tx: Tx) -> Home:
    return await add_tenant(tx, "one", START_MS)


async def test_everybody_who_may_see_it_is_told_once(town: Town) -> None:
    ann, bob = await town.person("ann"), await town.person("bob", role="tenant_admin")
    machine = await town.person("machine", role="worker")
    done = await town.send()
    for endpoint in (ann, bob):
        assert town.service.texts(endpoint) == [
            {
                "title": "main 入口：人を検知",
                "body": "重要度：2/3",
                "tag": INCIDENT,
                "url": "/events/e1",
                "id": "delivery-1",
            }
        ]
    assert town.service.texts(machine) == []
    assert town.service.refused == []
    assert [len(done.result[name]) for name in ("sent", "gone", "refused", "failed")] == [2, 0, 0, 0]
    got = town.service.got[0]
    assert got.headers["Topic"] == INCIDENT.replace("-", "")
    assert got.headers["Urgency"] == "high"
    assert got.claims["sub"] == "https://cameras.example"
    # No address of a browser is kept with the delivery.
    assert urlsplit(ann).netloc not in json.dumps(done.result)


async def test_everybody_is_told_in_their_own_language(town: Town) -> None:
    ann, bob = await town.person("ann"), await town.person("bob", language="en")
    await town.send()
    assert [text["title"] for text in town.service.texts(ann)] == ["main 入口：人を検知"]
    assert [text["title"] for text in town.service.texts(bob)] == ["main entrance: Person detected"]


async def test_named_people_only(town: Town) -> None:
    ann, bob = await town.person("ann"), await town.person("bob")
    await town.send(users=["bob"], contact="mailto:ops@cameras.example")
    assert (len(town.service.texts(ann)), len(town.service.texts(bob))) == (0, 1)
    assert town.service.got[0].claims["sub"] == "mailto:ops@cameras.example"


async def test_a_trial_that_reaches_no_browser_did_not_arrive(town: Town) -> None:
    trial = Outgoing(
        delivery_uuid="delivery-1",
        text=Text(Language.EN, "camserver test message", ()),
        body={"kind": "trial"},
        tenant_id=town.home.tenant_id,
    )
    with pytest.raises(DeliveryError, match="no browser is told through it yet") as refused:
        await town.sender.send(town.receiver(), trial)
    assert refused.value.kind is Trouble.REFUSED
    ann = await town.person("ann")
    await town.sender.send(town.receiver(), trial)
    assert len(town.service.texts(ann)) == 1


async def test_nobody_to_tell_is_not_done(town: Town) -> None:
    assert await town.sent_or_not() == Suppressed("nobody_subscribed")
    await town.person("ann")
    assert await town.sent_or_not(users=[]) == Suppressed("nobody_subscribed")


@pytest.mark.parametrize("fault", [Fault.GONE, Fault.UNKNOWN])
async def test_a_browser_that_is_no_more_is_dropped(town: Town, fault: Fault) -> None:
    await town.person("ann", fault)
    bob = await town.person("bob")
    done = await town.send()
    assert (len(done.result["sent"]), len(done.result["gone"])) == (1, 1)
    assert await town.subscriptions() == 1
    assert len(town.service.texts(bob)) == 1


@pytest.mark.parametrize(
    ("fault", "trouble"),
    [
        (Fault.BUSY, Trouble.RETRY),
        (Fault.AWAY, Trouble.RETRY),
        (Fault.CUT, Trouble.RETRY),
        (Fault.BROKEN, Trouble.FAILED),
    ],
)
async def test_only_those_who_did_not_get_it_are_tried_again(town: Town, fault: Fault, trouble: Trouble) -> None:
    ann, bob = await town.person("ann", fault), await town.person("bob")
    with pytest.raises(DeliveryError) as failed:
        await town.send()
    assert failed.value.kind is trouble
    assert failed.value.retry_after_sec == (30 if fault is Fault.BUSY else None)
    assert failed.value.progress is not None
    done = await town.send(dict(failed.value.progress))
    assert (len(town.service.texts(ann)), len(town.service.texts(bob))) == (1, 1)
    assert len(done.result["sent"]) == 2


async def test_a_push_service_that_does_not_answer_is_left(town: Town, clock: ManualClock) -> None:
    ann = await town.person("ann", Fault.HOLD)
    patient = town.sender
    http = OutgoingHttp(OutgoingPolicy(allow_loopback=True), IMPATIENT_SEC)
    town.sender = PushSender(town.store, clock, http, PUSH_KEY, CREDENTIAL_KEY, "https://cameras.example")
    with pytest.raises(DeliveryError) as failed:
        await town.send()
    assert failed.value.kind in (Trouble.FAILED, Trouble.RETRY)
    town.service.released.set()
    town.sender = patient
    await town.send(dict(failed.value.progress or {}))
    assert len(town.service.texts(ann)) == 1
    await http.close()


async def test_an_answer_that_was_lost_is_repeated_under_the_same_id_and_tag(town: Town) -> None:
    ann = await town.person("ann", Fault.CUT_AFTER)
    with pytest.raises(DeliveryError) as failed:
        await town.send()
    assert failed.value.progress is not None
    await town.send(dict(failed.value.progress))
    first, second = town.service.texts(ann)
    assert first == second


@pytest.mark.parametrize("fault", [Fault.FORBIDDEN, Fault.TOO_LONG, Fault.REDIRECT])
async def test_a_refusal_holds_up_nobody(town: Town, fault: Fault) -> None:
    await town.person("ann", fault)
    bob = await town.person("bob")
    done = await town.send()
    assert (len(done.result["sent"]), len(done.result["refused"])) == (1, 1)
    assert len(town.service.texts(bob)) == 1
    # Nothing was followed, and the browser is still there: a refusal may be the service's own mistake.
    assert town.service.refused == []
    assert await town.subscriptions() == 2


async def test_an_endless_answer_is_not_read(town: Town) -> None:
    ann = await town.person("ann", Fault.CHATTER)
    assert len((await town.send()).result["sent"]) == 1
    assert len(town.service.texts(ann)) == 1


async def test_a_browser_that_fails_again_and_again_holds_up_no_message(town: Town) -> None:
    await town.person("ann", *[Fault.AWAY] * (PATIENCE + 1))
    await town.person("bob")
    for _ in range(PATIENCE):
        with pytest.raises(DeliveryError):
            await town.send()
    done = await town.send()
    assert (len(done.result["sent"]), len(done.result["failed"])) == (1, 1)
    # It is well again, and counts again.
    assert len((await town.send()).result["sent"]) == 2


async def test_a_browser_whose_secret_can_not_be_opened_holds_up_nobody(town: Town) -> None:
    await town.person("ann")
    await town.person("bob")
    await town.store.write(execute, "UPDATE push_subscriptions SET key_id = 'another' WHERE subscription_id = 1", {})
    done = await town.send()
    assert (len(done.result["sent"]), len(done.result["refused"])) == (1, 1)


async def test_push_services_on_this_machine_need_leave(town: Town, clock: ManualClock) -> None:
    await town.person("ann")
    http = OutgoingHttp(OutgoingPolicy())
    town.sender = PushSender(town.store, clock, http, PUSH_KEY, CREDENTIAL_KEY, "https://cameras.example")
    done = await town.send()
    assert len(done.result["refused"]) == 1
    assert not town.service.got
    await http.close()


def test_whom_push_services_may_tell_of_trouble() -> None:
    assert contact_of("https://cameras.example") == "https://cameras.example"
    assert contact_of("http://127.0.0.1:8080").startswith("mailto:")
