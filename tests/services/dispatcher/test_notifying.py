"""From an event to messages at real servers: rules, cooldowns, counts, restarts and two dispatchers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
import uuid_utils

from camserver.base.credentials import seal
from camserver.config.secret_files import make_secrets
from camserver.domain.facts import DeliveryKind
from camserver.domain.people import Principal, Role
from camserver.store import notify_rules, receivers, snoozes
from camserver.store.deliveries import NewDelivery
from camserver.store.deliveries import add as add_deliveries
from camserver.store.notify_rules import RuleValues
from camserver.store.receivers import NewReceiver, secrets_of
from camserver.store.snoozes import NewSnooze
from tests.fakes.analyzer import Seen
from tests.fakes.mail import FakeMail
from tests.fakes.slack import FakeSlack
from tests.services.dispatcher.stage import Stage
from tests.services.dispatcher.test_health import FAILED
from tests.store.scenery import NOW_MS
from tests.store.stage import statement

SEC = 1000
MIN = 60 * SEC
# `appearance.face_visible` is for investigation only.
SEVERE = Seen("human", ("behavior.loitering", "appearance.face_visible"), confidence=0.8, severity=2)
WORSE = replace(SEVERE, severity=3)
VEHICLE = Seen("vehicle", (), confidence=0.8, severity=2)
on_one_database = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as server:
        yield server


@pytest.fixture
async def telling(stage: Stage) -> Stage:
    """A stage whose receivers may be on this machine."""
    stage.settings = replace(stage.settings, deliveries=replace(stage.settings.deliveries, allow_loopback=True))
    return stage


def admin(stage: Stage) -> Principal:
    return Principal(stage.scene.tenant_id, None, Role.SYSTEM_ADMIN)


async def add_receiver(
    stage: Stage, kind: str, name: str, config: dict[str, Any], secrets: dict[str, str], **changes: Any
) -> str:
    receiver_uuid = str(uuid_utils.uuid7())
    key = make_secrets(stage.settings).credential_key_bytes()
    plain = json.dumps(secrets).encode()
    sealed = seal(key, stage.scene.tenant_id, secrets_of(receiver_uuid), plain) if secrets else None
    values = {"language": "en", "hourly_cap": None, **changes}
    new = NewReceiver(receiver_uuid, name, kind, json.dumps(config), sealed, **values)
    await stage.store.as_(admin(stage)).write(receivers.add, new, "", stage.clock.now_ms())
    return receiver_uuid


async def add_slack(stage: Stage, slack: FakeSlack, name: str = "Slack", **changes: Any) -> str:
    config = changes.pop("config", {})
    return await add_receiver(stage, "slack", name, config, {"webhook_url": slack.hook_url}, **changes)


async def add_rule(stage: Stage, **changes: Any) -> None:
    values = RuleValues(**{"name": "rule", **changes})
    await stage.store.as_(admin(stage)).write(notify_rules.add, values, "", stage.clock.now_ms())


def texts(slack: FakeSlack) -> list[str]:
    return ["\n".join(block["text"]["text"] for block in call.body["blocks"]) for call in slack.calls]


async def deliveries(stage: Stage) -> list[tuple[str, str, str]]:
    rows = await stage.rows("SELECT kind, reason, status FROM deliveries ORDER BY delivery_id")
    return [(row["kind"], row["reason"], row["status"]) for row in rows]


async def until_told(stage: Stage) -> None:
    """Until nothing waits any more, neither a job nor a delivery."""
    await stage.until_nothing_waits()

    async def over() -> bool:
        return not {status for _, _, status in await deliveries(stage)} & {"queued", "running"}

    try:
        await stage.until(over, "no delivery waits")
    except TimeoutError as error:
        raise TimeoutError(f"{error}: {await stage.rows('SELECT * FROM deliveries')}") from error


async def seen(stage: Stage, after_sec: int, what: Seen = SEVERE, camera: int = 0, **changes: Any) -> None:
    """Something is seen so long after the beginning, and everything that follows from it is done."""
    ahead_ms = NOW_MS + after_sec * SEC - stage.clock.now_ms()
    if ahead_ms > 0:
        await stage.pass_time(ahead_ms // SEC, min(20, max(ahead_ms // SEC, 1)))
    await stage.look(camera, what, **changes)
    await until_told(stage)


async def test_an_event_is_told_to_slack_and_by_mail(telling: Stage, slack: FakeSlack) -> None:
    async with FakeMail() as mail:
        await add_slack(telling, slack)
        config = {
            "host": "127.0.0.1",
            "port": mail.port,
            "security": "plain",
            "sender": "c@x.test",
            "to": ["a@x.test"],
        }
        await add_receiver(telling, "email", "Mail", config, {}, language="ja")
        async with telling.dispatcher():
            await seen(telling, 0)
    (event,) = await telling.events()
    (text,) = texts(slack)
    assert text.startswith("*main cam_0: Person detected*\nSeverity: Warning (2/3)\nDetails: ")
    assert "Seen at: Fri 2027-01-15 08:00:00 UTC" in text
    assert f"<http://127.0.0.1:8080/events/{event['event_uuid']}|Open the event>" in text
    assert "face" not in text.lower()
    (got,) = mail.mails
    assert got.mail["Subject"] == "main cam_0：人を検知"
    assert any(part.get_content_type() == "image/jpeg" for part in got.mail.walk()), "the best frame is in it"
    rows = await telling.rows("SELECT * FROM notifications ORDER BY channel")
    assert [(row["channel"], row["event_id"], row["sent_at"]) for row in rows] == [
        ("email", event["event_id"], NOW_MS),
        ("slack", event["event_id"], NOW_MS),
    ]
    assert await deliveries(telling) == [
        ("notify", "incident_opened", "done"),
        ("message", "incident_opened", "done"),
        ("message", "incident_opened", "done"),
    ]
    sent = await telling.rows("SELECT delivery_uuid FROM deliveries WHERE kind = 'message'")
    assert got.mail["X-Camserver-Delivery"] in {row["delivery_uuid"] for row in sent}


async def test_within_the_cooldown_it_is_counted_and_told_later(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack)
    async with telling.dispatcher():
        await seen(telling, 0)
        for after_sec in (60, 120, 180, 240):
            await seen(telling, after_sec)
        assert len(slack.calls) == 1
        await seen(telling, 300)
    assert len(slack.calls) == 2
    assert "[Ongoing]" in texts(slack)[1]
    assert "+4 more of this camera since the last message" in texts(slack)[1]
    rows = await telling.rows("SELECT suppressed FROM notifications ORDER BY notification_id")
    assert [row["suppressed"] for row in rows] == [0, 4]


@on_one_database
async def test_to_a_new_receiver_what_goes_on_begins(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack)
    async with telling.dispatcher():
        await seen(telling, 0)
        await add_slack(telling, slack, name="Night")
        for after_sec in (60, 120, 180, 240, 300):
            await seen(telling, after_sec)
    first, *rest = texts(slack)
    assert "[Ongoing]" not in first
    assert sorted("[Ongoing]" in text for text in rest) == [False, True], "new to one, known to the other"


@on_one_database
async def test_a_push_message_that_nobody_subscribed_to_is_suppressed(telling: Stage) -> None:
    await add_receiver(telling, "push", "Browsers", {}, {})
    async with telling.dispatcher():
        await seen(telling, 0)
    (row,) = await telling.rows("SELECT status, last_error FROM deliveries WHERE kind = 'message'")
    assert (row["status"], row["last_error"]) == ("suppressed", "nobody_subscribed")
    assert await telling.rows("SELECT * FROM notifications") == []
    (row,) = await telling.rows("SELECT sent FROM receiver_hours") or ({"sent": 0},)
    assert row["sent"] == 0, "whoever subscribes a moment later is told of what comes next"
    assert all(row["until"] <= telling.clock.now_ms() for row in await telling.rows("SELECT until FROM cooldowns"))


@on_one_database
async def test_a_rise_in_severity_does_not_wait(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack)
    async with telling.dispatcher():
        await seen(telling, 0)
        await seen(telling, 20, WORSE)
    assert "[More severe]" in texts(slack)[1]


@on_one_database
async def test_another_kind_of_event_waits_for_the_cameras_cooldown(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack)
    async with telling.dispatcher():
        await seen(telling, 0)
        await seen(telling, 30, VEHICLE)
        assert len(slack.calls) == 1
        await seen(telling, 60, VEHICLE)
    assert len(slack.calls) == 2
    assert "Vehicle detected" in texts(slack)[1]
    assert "+1 more" in texts(slack)[1]


async def test_a_snooze_and_quiet_hours_start_no_cooldown(telling: Stage, slack: FakeSlack) -> None:
    """NOW is 08:00 UTC, and the site's time zone is UTC."""
    quiet = {"from": "07:00", "to": "08:01", "through_severity": None}
    await add_slack(telling, slack)
    await add_rule(telling, quiet=quiet)
    await telling.store.as_(admin(telling)).write(snoozes.add, NewSnooze(NOW_MS + 90 * SEC), "", NOW_MS)
    async with telling.dispatcher():
        await seen(telling, 0)
        await seen(telling, 40, VEHICLE)
        await seen(telling, 80)
        assert slack.calls == []
        errors = await telling.rows("SELECT last_error FROM deliveries WHERE kind = 'message' ORDER BY delivery_id")
        assert [row["last_error"] for row in errors] == ["snoozed"] * 3
        await seen(telling, 100)
    assert len(slack.calls) == 1, "nothing is sent later, and nothing held it back"
    assert "+3 more" in texts(slack)[0]


@on_one_database
async def test_quiet_hours_hold_back_and_let_the_worst_through(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack)
    await add_rule(telling, quiet={"from": "22:00", "to": "09:00", "through_severity": 3})
    async with telling.dispatcher():
        await seen(telling, 0)
        assert slack.calls == []
        await seen(telling, 10, WORSE)
    assert len(slack.calls) == 1
    assert "+1 more" in texts(slack)[0]


@on_one_database
async def test_rules_choose_the_receivers(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack, "day")
    other = FakeSlack()
    async with other:
        night = await add_slack(telling, other, "night")
        await add_rule(telling, camera_ids=("cam_1",), receivers=(night,))
        async with telling.dispatcher():
            await seen(telling, 0, camera=0)
            await seen(telling, 0, camera=1)
    assert slack.calls == []
    assert len(other.calls) == 1
    assert "cam_1" in texts(other)[0]
    results = [
        json.loads(row["result"]) for row in await telling.rows("SELECT result FROM deliveries WHERE kind = 'notify'")
    ]
    assert sorted(sorted(one["verdicts"].values()) for one in results) == [
        ["no_rule", "no_rule"],
        ["no_rule", "send"],
    ]


async def test_a_failing_receiver_starts_no_cooldown_and_gets_it_later(telling: Stage, slack: FakeSlack) -> None:
    slack.answers.append((500, {}, "broken"))
    await add_slack(telling, slack)
    async with telling.dispatcher():
        await telling.look(0, SEVERE)
        await telling.until_nothing_waits()

        async def put_off() -> bool:
            return ("message", "incident_opened", "delayed") in await deliveries(telling)

        await telling.until(put_off, "the message is put off")
        until = await telling.rows("SELECT until FROM cooldowns")
        assert [row["until"] for row in until] == [0]
        await telling.pass_time(20, 10)

        async def arrived() -> bool:
            return ("message", "incident_opened", "done") in await deliveries(telling)

        await telling.until(arrived, "the message is sent")
    assert len(slack.calls) == 2
    assert len(await telling.rows("SELECT * FROM notifications")) == 1


async def test_a_restart_while_sending_loses_nothing(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack)
    slack.held = asyncio.Event()
    async with telling.dispatcher():
        await telling.look(0, SEVERE)

        async def under_way() -> bool:
            return bool(slack.calls)

        await telling.until(under_way, "the message is being sent")
    slack.held.set()
    async with telling.dispatcher():
        # The one before is not known to have failed: its reservation has to run out.
        await telling.pass_time(240, 20)

        async def arrived() -> bool:
            return ("message", "incident_opened", "done") in await deliveries(telling)

        await telling.until(arrived, "the message is sent")
    assert len(slack.calls) == 2, "once more with the same id"
    assert len(await telling.rows("SELECT * FROM notifications")) == 1


async def test_two_dispatchers_send_one_message_in_a_cooldown(telling: Stage, slack: FakeSlack) -> None:
    """Many notices of one camera wait; whoever takes them, one message goes out and the others are counted."""
    await add_slack(telling, slack)
    async with telling.dispatcher():
        await seen(telling, 0)
    assert len(slack.calls) == 1
    again = """
        UPDATE deliveries SET status = 'queued', attempt = 0, finished_at = NULL, available_at = :now_ms
        WHERE kind = 'message'"""
    copies = """
        INSERT INTO deliveries (delivery_uuid, tenant_id, site_id, camera_key, kind, reason, frame_id, event_id,
          incident_id, status, available_at, created_at, receiver_id)
        SELECT :uuid, tenant_id, site_id, camera_key, kind, 'continues', frame_id, event_id, incident_id, 'queued',
          available_at, created_at, receiver_id
        FROM deliveries WHERE kind = 'message' AND reason = 'incident_opened'"""
    await telling.store.write(statement, again, {"now_ms": NOW_MS})
    for number in range(10):
        await telling.store.write(statement, copies, {"uuid": f"copy-{number}"})
    await telling.store.write(statement, "DELETE FROM cooldowns", {})
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(telling.dispatcher())
        for _ in range(20):
            await telling.pass_time(5, 5)
            await until_told(telling)
            if "delayed" not in {status for _, _, status in await deliveries(telling)}:
                break
    assert len(slack.calls) == 2
    statuses = [status for kind, _, status in await deliveries(telling) if kind == "message"]
    assert sorted(statuses) == ["done"] + ["suppressed"] * 10
    (row,) = await telling.rows("SELECT suppressed FROM cooldowns WHERE scope = ''")
    assert row["suppressed"] == 10


@on_one_database
async def test_an_hourly_cap(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack, hourly_cap=2)
    async with telling.dispatcher():
        for camera in range(3):
            await seen(telling, 0, camera=camera)
        assert len(slack.calls) == 2
        assert "The hourly limit is reached" in texts(slack)[1]
        assert "The hourly limit is reached" not in texts(slack)[0]
    (hour,) = await telling.rows("SELECT sent, suppressed FROM receiver_hours")
    assert (hour["sent"], hour["suppressed"]) == (2, 1)


@on_one_database
async def test_a_late_incident_is_told_once_with_both_times(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack)
    async with telling.dispatcher():
        for number in range(2):
            at_ms = NOW_MS - 60 * MIN + number * 30 * SEC
            await telling.look(0, SEVERE, at_ms, received_at=NOW_MS)
            await until_told(telling)
        await seen(telling, 0)
    assert len(slack.calls) == 2
    late, live = texts(slack)
    assert "[Late]" in late
    assert "Seen at: Fri 2027-01-15 07:00:00 UTC" in late
    assert "Received late, at: Fri 2027-01-15 08:00:00 UTC" in late
    assert "[Late]" not in live, "and it held nothing back"


async def goes_down(stage: Stage) -> None:
    """Camera 0 fails until it is told, and everything that follows from it is done."""
    # Its worker has it all the time. Nobody has the others: that no looks come of them would be an issue, too.
    lease = """UPDATE camera_sessions SET lease_expires_at = :until
        WHERE camera_key = (SELECT min(camera_key) FROM cameras)"""
    await stage.store.write(statement, lease, {"until": NOW_MS + 86_400 * SEC})
    for _ in range(3):
        await stage.look(0, **FAILED)
    await stage.pass_time(10, 5)
    await until_issue(stage, [])
    await stage.pass_time(60, 5)
    await until_issue(stage, ["open"])
    await until_told(stage)


async def comes_back(stage: Stage) -> None:
    for number in range(2):
        await stage.look(0, Seen(), verdict="skip", infer_hash64_hex=f"{number:016x}")
    await stage.pass_time(10, 5)
    await until_issue(stage, ["closed"])
    await until_told(stage)


async def until_issue(stage: Stage, states: list[str]) -> None:
    async def reached() -> bool:
        health = await stage.rows("SELECT health FROM camera_state ORDER BY camera_key")
        found = [event["state"] for event in await stage.events() if event["subject"] == "offline"]
        return found == states and (states == ["closed"] or health[0]["health"] == "down")

    await stage.until(reached, f"the camera's issue is {states}")


async def test_a_camera_that_fails_and_comes_back(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack)
    async with telling.dispatcher():
        await goes_down(telling)
        assert "Camera offline" in texts(slack)[0]
        assert "Cause: It refuses the connection" in texts(slack)[0]
        await comes_back(telling)
    assert len(slack.calls) == 2
    assert "Back to normal: Camera offline" in texts(slack)[1]
    assert "Lasted: 1 min 10 s" in texts(slack)[1]


@on_one_database
async def test_only_who_heard_of_it_hears_that_it_is_over(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack)
    await telling.store.as_(admin(telling)).write(snoozes.add, NewSnooze(NOW_MS + 200 * SEC), "", NOW_MS)
    async with telling.dispatcher():
        await goes_down(telling)
        await telling.pass_time(200, 20)
        await comes_back(telling)
    assert slack.calls == []
    rows = await telling.rows("SELECT reason, last_error FROM deliveries WHERE kind = 'message' ORDER BY delivery_id")
    assert [(row["reason"], row["last_error"]) for row in rows] == [
        ("incident_opened", "snoozed"),
        ("back", "beginning_not_told"),
    ]


@on_one_database
async def test_an_issue_waits_for_the_cooldown_and_is_told_then(telling: Stage, slack: FakeSlack) -> None:
    """Whoever is seen and then cuts the cable is told of twice."""
    telling.settings = replace(telling.settings, notify=replace(telling.settings.notify, camera_cooldown_sec=200))
    await add_slack(telling, slack)
    async with telling.dispatcher():
        await seen(telling, 0)
        await goes_down(telling)
        assert ("message", "incident_opened", "delayed") in await deliveries(telling)
        assert len(slack.calls) == 1
        await telling.pass_time(140, 10)

        async def told() -> bool:
            return len(slack.calls) == 2

        await telling.until(told, "the second message")
    assert "Camera offline" in texts(slack)[1]


@on_one_database
async def test_a_signed_link_only_for_who_wants_it_and_never_into_a_case(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack, config={"signed_link": True})
    async with telling.dispatcher():
        await seen(telling, 0)
        assert "/media/frame/" in texts(slack)[0]
        await telling.store.write(statement, "UPDATE frames SET retention_class = 'case'", {})
        for after_sec in range(60, 301, 60):
            await seen(telling, after_sec, replace(SEVERE, confidence=0.1))
    assert len(slack.calls) == 2
    assert "/media/frame/" not in texts(slack)[1]


async def test_a_trial_and_a_text_written_before_go_out_as_they_are(telling: Stage, slack: FakeSlack) -> None:
    """Rules, snoozes and cooldowns are about events: what people ask for comes in any case."""
    receiver_uuid = await add_slack(telling, slack)
    await add_rule(telling, receivers=())
    scoped = telling.store.as_(admin(telling))
    await scoped.write(snoozes.add, NewSnooze(NOW_MS + MIN), "", NOW_MS)
    await scoped.write(receivers.queue_trial, receiver_uuid, "trial-1", "", NOW_MS)
    (row,) = await telling.rows("SELECT receiver_id FROM receivers")
    texts_ready = {"en": {"title": "A day", "lines": ["3 events"]}, "ja": {"title": "日", "lines": []}}
    new = NewDelivery(
        "summary-1",
        telling.scene.tenant_id,
        DeliveryKind.MESSAGE,
        "summary",
        {"texts": texts_ready, "link": "https://x.test/summaries/1"},
        receiver_id=row["receiver_id"],
    )
    await telling.store.write(add_deliveries, (new,), NOW_MS)
    async with telling.dispatcher():
        await until_told(telling)
    assert sorted(texts(slack))[0].startswith("*A day*\n3 events\n<https://x.test/summaries/1|")
    assert "camserver test message" in sorted(texts(slack))[1]
    assert len(await telling.rows("SELECT * FROM notifications WHERE camera_key IS NULL")) == 2
    assert await telling.rows("SELECT * FROM cooldowns") == []


@on_one_database
async def test_an_event_that_is_gone_is_not_told(telling: Stage, slack: FakeSlack) -> None:
    await add_slack(telling, slack)
    await telling.store.as_(admin(telling)).write(snoozes.add, NewSnooze(NOW_MS + SEC), "", NOW_MS)
    async with telling.dispatcher():
        await seen(telling, 0)
    again = "UPDATE deliveries SET status = 'queued', finished_at = NULL"
    await telling.store.write(statement, again, {})
    await telling.store.write(statement, "DELETE FROM events", {})
    async with telling.dispatcher():
        await until_told(telling)
    assert slack.calls == []
    assert {status for _, _, status in await deliveries(telling)} == {"suppressed"}
