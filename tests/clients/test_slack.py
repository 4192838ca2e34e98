import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from camserver.base.plain_json import plain_json
from camserver.base.secrets import Secret
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.clients.slack import SECTION_MAX_CHARS, SlackSender, payload
from camserver.domain.deliveries import DeliveryError, Outgoing, Receiver, ReceiverKind, Trouble
from camserver.domain.messages import Language, Text
from tests.fakes.slack import FakeSlack

TEXT = Text(
    Language.EN, "Site <Gate> & co: Person detected", ("Severity: 2/3", "a <!channel> b"), "https://x.test/e/1"
)
PICTURE = b"\xff\xd8 a picture"


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as server:
        yield server


@pytest.fixture
async def sender(slack: FakeSlack) -> AsyncIterator[SlackSender]:
    http = OutgoingHttp(OutgoingPolicy(allow_loopback=True))
    yield SlackSender(http, slack.api_url)
    await http.close()


def receiver(**secrets: str) -> Receiver:
    return Receiver(
        1,
        "receiver",
        1,
        "alerts",
        ReceiverKind.SLACK,
        {"channel": "#alerts"},
        secrets={name: Secret(value) for name, value in secrets.items()},
    )


def outgoing(**changes: Any) -> Outgoing:
    return Outgoing(**{"delivery_uuid": "delivery-1", "text": TEXT, "body": {}, **changes})


async def test_a_webhook_gets_the_message_escaped(slack: FakeSlack, sender: SlackSender) -> None:
    done = await sender.send(receiver(webhook_url=slack.hook_url), outgoing(picture=PICTURE))
    assert done.result == {"http_status": 200}
    (call,) = slack.calls
    assert call.body["text"] == "Site &lt;Gate&gt; &amp; co: Person detected"
    shown = "\n".join(block["text"]["text"] for block in call.body["blocks"])
    assert "a &lt;!channel&gt; b" in shown
    assert "<https://x.test/e/1|Open the event>" in shown
    assert all(block["text"]["verbatim"] for block in call.body["blocks"])


async def test_a_bot_posts_and_adds_the_picture_below(slack: FakeSlack, sender: SlackSender) -> None:
    done = await sender.send(receiver(bot_token=slack.token), outgoing(picture=PICTURE))
    assert done.result["ts"] == "17.1"
    assert list(slack.files.values()) == [PICTURE]
    (posted,) = slack.called("chat.postMessage")
    assert posted["channel"] == "#alerts"
    assert posted["metadata"]["event_payload"] == {"delivery_uuid": "delivery-1"}
    (finished,) = slack.called("files.completeUploadExternal")
    assert (finished["channel_id"], finished["thread_ts"]) == ("C1", "17.1")
    assert finished["files"][0]["id"] == done.result["file"]


@pytest.mark.parametrize("lie", ["\ud800\0\n", "C" * 10_000, 7, None, ["C1"], {"id": "C1"}, float("nan")])
async def test_what_slack_calls_things_is_believed_only_as_short_text(
    slack: FakeSlack, sender: SlackSender, lie: object
) -> None:
    slack.answers.append((200, {}, json.dumps({"ok": True, "channel": lie, "ts": lie})))
    done = await sender.send(receiver(bot_token=slack.token), outgoing())
    for told in done.result.values():
        assert told is None or (isinstance(told, str) and len(told) <= 64)
    assert plain_json(done.result) is not None


@pytest.mark.parametrize(
    "address",
    ["http://files.slack.com/up", "https://slack.com.evil.test/up", "https://evilslack.com/up", "http://[::1",
     "https://slack.com@evil.test/up", "https://u:p@files.slack.com/up", "https://files.slack.com:8443/up",
     "http://127.0.0.1:9/upload/F1"],
)  # fmt: skip
async def test_a_picture_goes_to_slack_only(slack: FakeSlack, sender: SlackSender, address: str) -> None:
    slack.answers.append((200, {}, json.dumps({"ok": True, "channel": "C1", "ts": "1"})))
    slack.answers.append((200, {}, json.dumps({"ok": True, "upload_url": address, "file_id": "F1"})))
    done = await sender.send(receiver(bot_token=slack.token), outgoing(picture=PICTURE))
    assert "no place" in done.result["picture_error"]
    assert not slack.called("files.completeUploadExternal")


def test_slacks_own_places_are_slacks() -> None:
    sender = SlackSender(OutgoingHttp.__new__(OutgoingHttp))
    assert sender.is_slacks("https://files.slack.com/upload/v1/ABC")
    assert sender.is_slacks("https://slack.com/upload")


async def test_a_message_whose_picture_is_not_taken_is_sent_all_the_same(
    slack: FakeSlack, sender: SlackSender
) -> None:
    slack.answers.extend([(200, {}, '{"ok": true, "channel": "C1", "ts": "1.1"}'), (500, {}, "no")])
    done = await sender.send(receiver(bot_token=slack.token), outgoing(picture=PICTURE))
    assert done.result["ts"] == "1.1"
    assert "500" in done.result["picture_error"]


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind", "retry_after_sec"),
    [
        (429, {"Retry-After": "30"}, "rate_limited", Trouble.RETRY, 30.0),
        (503, {}, "", Trouble.RETRY, None),
        (500, {}, "", Trouble.FAILED, None),
        (400, {}, "invalid_payload", Trouble.REFUSED, None),
        (404, {}, "no_service", Trouble.GONE, None),
        (410, {}, "channel_is_archived", Trouble.GONE, None),
        (403, {}, "invalid_token", Trouble.FAILED, None),
        (302, {"Location": "http://169.254.169.254/"}, "", Trouble.FAILED, None),
    ],
)
async def test_what_a_webhook_says(
    slack: FakeSlack,
    sender: SlackSender,
    status: int,
    headers: dict[str, str],
    body: str,
    kind: Trouble,
    retry_after_sec: float | None,
) -> None:
    slack.answers.append((status, headers, body))
    with pytest.raises(DeliveryError) as caught:
        await sender.send(receiver(webhook_url=slack.hook_url), outgoing())
    assert (caught.value.kind, caught.value.retry_after_sec) == (kind, retry_after_sec)
    assert "hook-secret" not in caught.value.message
    assert len(slack.calls) == 1, "no redirect is followed"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"ok": false, "error": "ratelimited"}', Trouble.RETRY),
        ('{"ok": false, "error": "internal_error"}', Trouble.RETRY),
        ('{"ok": false, "error": "channel_not_found"}', Trouble.FAILED),
        ('{"ok": false, "error": "missing_scope"}', Trouble.FAILED),
        ('{"ok": false, "error": "invalid_blocks"}', Trouble.REFUSED),
        ('{"ok": false, "error": "token_revoked"}', Trouble.GONE),
        ('{"ok": "yes"}', Trouble.FAILED),
        ("[]", Trouble.FAILED),
        ("<html>", Trouble.FAILED),
    ],
)
async def test_what_the_web_api_says(slack: FakeSlack, sender: SlackSender, body: str, kind: Trouble) -> None:
    slack.answers.append((200, {}, body))
    with pytest.raises(DeliveryError) as caught:
        await sender.send(receiver(bot_token=slack.token), outgoing())
    assert caught.value.kind is kind


async def test_a_token_that_is_wrong_is_no_secret_in_the_error(slack: FakeSlack, sender: SlackSender) -> None:
    with pytest.raises(DeliveryError) as caught:
        await sender.send(receiver(bot_token="xoxb-other-token"), outgoing())
    assert caught.value.kind is Trouble.FAILED
    assert "invalid_auth" in caught.value.message
    assert "xoxb" not in caught.value.message


async def test_a_connection_that_is_cut_is_tried_again(slack: FakeSlack, sender: SlackSender) -> None:
    slack.hang_up = True
    with pytest.raises(DeliveryError) as caught:
        await sender.send(receiver(webhook_url=slack.hook_url), outgoing())
    assert caught.value.kind is Trouble.RETRY


async def test_a_receiver_that_lacks_something_is_refused(sender: SlackSender) -> None:
    for lacking in (receiver(), replace(receiver(bot_token="xoxb-token"), config={})):
        with pytest.raises(DeliveryError) as caught:
            await sender.send(lacking, outgoing())
        assert caught.value.kind is Trouble.REFUSED


def test_long_messages_stay_within_slacks_bounds() -> None:
    lines = tuple("&" * 700 for _ in range(300))
    message = payload(Text(Language.JA, "<" * 5000, lines, "https://x.test/a|b"))
    assert len(message["text"]) <= 3000
    assert len(message["blocks"]) <= 50
    texts = [block["text"]["text"] for block in message["blocks"]]
    assert all(0 < len(one) <= SECTION_MAX_CHARS for one in texts)
    assert all(one.count("&") == one.count(";") for one in texts[:-1]), "no escape is cut in half"
    assert texts[-1] == "<https://x.test/a%7Cb|イベントを開く>", "the link is never cut off"
