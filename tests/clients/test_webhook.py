"""Webhooks: what is sent, how it is signed, and what each kind of answer leads to."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from camserver.base.secrets import Secret
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.clients.webhook import WebhookSender
from camserver.domain.deliveries import DeliveryError, Outgoing, Receiver, ReceiverKind, Trouble
from camserver.domain.messages import Language, Text
from tests.fakes.webhook import Act, FakeWebhook
from tests.rig.clock import ManualClock

NOW_MS = 1_800_000_000_123
KEY = "a signing key of some length"
THEN, IN_30_SEC = "Mon, 01 Jan 2029 00:00:00 GMT", "Mon, 01 Jan 2029 00:00:30 GMT"
MESSAGE = Outgoing(
    delivery_uuid="0190-uuid",
    text=Text(Language.JA, "門に人", ("1人", "12:34"), "https://cams.example/events/1"),
    body={"event": "human", "severity": 2},
    picture=b"\xff\xd8jpeg",
)


@pytest.fixture
async def hook() -> AsyncIterator[FakeWebhook]:
    async with FakeWebhook(key=KEY) as hook:
        yield hook


@pytest.fixture
async def http() -> AsyncIterator[OutgoingHttp]:
    http = OutgoingHttp(OutgoingPolicy(allow_loopback=True), timeout_sec=30)
    yield http
    await http.close()


def receiver(url: str, config: Mapping[str, Any] | None = None, key: str | None = KEY) -> Receiver:
    secrets = {"url": Secret(url)} | ({"signing_key": Secret(key)} if key else {})
    return Receiver(1, "r", 1, "hook", ReceiverKind.WEBHOOK, config or {}, secrets=secrets)


async def send(http: OutgoingHttp, to: Receiver, message: Outgoing = MESSAGE) -> Any:
    return await WebhookSender(http, ManualClock(NOW_MS)).send(to, message)


async def test_a_message_arrives_signed_and_with_its_id(hook: FakeWebhook, http: OutgoingHttp) -> None:
    done = await send(http, receiver(hook.url))
    assert done.result == {"status": 204}
    (got,) = hook.received
    assert got.signed is True
    assert got.delivery == "0190-uuid"
    assert got.headers["X-Camserver-Timestamp"] == str(NOW_MS // 1000)
    assert got.body == {
        "delivery": "0190-uuid",
        "event": "human",
        "severity": 2,
        "title": "門に人",
        "lines": ["1人", "12:34"],
        "language": "ja",
        "link": "https://cams.example/events/1",
        "picture_jpeg_base64": base64.b64encode(b"\xff\xd8jpeg").decode(),
    }


async def test_without_a_key_nothing_is_signed_and_the_picture_can_be_left_out(
    hook: FakeWebhook, http: OutgoingHttp
) -> None:
    await send(http, receiver(hook.url, {"picture": False}, key=None))
    assert hook.received[0].signed is None
    assert "picture_jpeg_base64" not in hook.received[0].body


async def test_a_wrong_key_is_noticed(hook: FakeWebhook, http: OutgoingHttp) -> None:
    await send(http, receiver(hook.url, key="another key of some length"))
    assert hook.received[0].signed is False


@pytest.mark.parametrize(
    ("act", "kind", "retry_after_sec"),
    [
        (Act(429, {"Retry-After": "17"}), Trouble.RETRY, 17.0),
        (Act(429, {"Retry-After": IN_30_SEC, "Date": THEN}), Trouble.RETRY, 30.0),
        (Act(429, {"Retry-After": "soon"}), Trouble.RETRY, None),
        (Act(503), Trouble.RETRY, None),
        (Act(502), Trouble.RETRY, None),
        (Act(cut_before=True), Trouble.RETRY, None),
        (Act(cut_after=True), Trouble.RETRY, None),
        (Act(500, body=b"oops"), Trouble.FAILED, None),
        (Act(404), Trouble.FAILED, None),
        (Act(401), Trouble.FAILED, None),
        (Act(400, body="だめ".encode()), Trouble.REFUSED, None),
        (Act(410), Trouble.GONE, None),
    ],
)  # fmt: skip
async def test_answers_and_what_they_lead_to(
    hook: FakeWebhook, http: OutgoingHttp, act: Act, kind: Trouble, retry_after_sec: float | None
) -> None:
    hook.acts.append(act)
    with pytest.raises(DeliveryError) as caught:
        await send(http, receiver(hook.url))
    assert caught.value.kind is kind
    assert caught.value.retry_after_sec == retry_after_sec
    assert "secret-token" not in caught.value.message
    # The next one is not hurt by what happened to the connection.
    assert (await send(http, receiver(hook.url))).result == {"status": 204}


async def test_a_redirect_is_not_followed(hook: FakeWebhook, http: OutgoingHttp) -> None:
    hook.acts.append(Act(307, {"Location": "http://169.254.169.254/latest/meta-data"}))
    with pytest.raises(DeliveryError, match="redirect") as caught:
        await send(http, receiver(hook.url))
    assert caught.value.kind is Trouble.FAILED
    assert hook.asked == 1


async def test_a_slow_receiver_is_not_waited_for_for_ever(hook: FakeWebhook) -> None:
    http = OutgoingHttp(OutgoingPolicy(allow_loopback=True), timeout_sec=0.1)
    hook.always = Act(held=asyncio.Event())
    with pytest.raises(DeliveryError, match=r"no answer within 0\.1 s") as caught:
        await send(http, receiver(hook.url))
    assert caught.value.kind is Trouble.FAILED
    await http.close()


async def test_an_answer_without_end_counts_by_its_status(hook: FakeWebhook, http: OutgoingHttp) -> None:
    hook.acts.append(Act(endless=True))
    assert (await send(http, receiver(hook.url))).result == {"status": 200}


async def test_a_receiver_that_is_not_there_is_tried_again(http: OutgoingHttp) -> None:
    async with FakeWebhook() as gone:
        url = gone.url
    with pytest.raises(DeliveryError) as caught:
        await send(http, receiver(url))
    assert caught.value.kind is Trouble.RETRY


async def test_this_machine_is_refused_unless_it_is_allowed(hook: FakeWebhook) -> None:
    http = OutgoingHttp(OutgoingPolicy())
    for url in (hook.url, hook.url.replace("127.0.0.1", "localhost"), hook.url.replace("127.0.0.1", "[::1]")):
        with pytest.raises(DeliveryError, match=r"\[deliveries\] allow_loopback") as caught:
            await send(http, receiver(url))
        assert caught.value.kind is Trouble.REFUSED
    await http.close()
    assert hook.asked == 0


async def test_without_an_address_it_says_so(http: OutgoingHttp) -> None:
    with pytest.raises(DeliveryError, match="enter it again"):
        await send(http, replace(receiver("http://x"), secrets={}))
