"""Rules, snoozes, previews and sent messages by the API."""

from typing import Any

import pytest

from camserver.domain.people import Role
from camserver.store import Tx, cooldowns, notifications
from camserver.store.notifications import Sent
from tests.services.web.rig import Browser, RunningWeb
from tests.services.web.test_access import set_role
from tests.services.web.test_api import CAMERA, home_of
from tests.services.web.test_receivers import added
from tests.store.people_rows import EventRow, add_event

RULE = {"name": "夜間", "primary_events": ["human"], "quiet": {"from": "22:00", "to": "07:00", "days": [0, 6]}}


async def rule(browser: Browser, **values: object) -> dict[str, Any]:
    reply = await browser.post("/api/notify/rules", {"name": "rule", **values})
    assert reply.status == 201, reply.content
    body: dict[str, Any] = reply.body
    return body


async def event(web: RunningWeb, severity: int = 2) -> None:
    tags = (("behavior.loitering", "notify_safe"), ("appearance.face_visible", "investigation_only"))
    row = EventRow(primary_event="human", severity_max=severity)
    await web.store.write(add_event, await home_of(web), "cam_1", "event-1", web.clock.now_ms(), tags, row)


async def test_rules_are_written_changed_ordered_and_removed(web_on_each: RunningWeb) -> None:
    owner = await web_on_each.owner()
    first, second = await rule(owner, **RULE), await rule(owner, min_severity=3, receivers=[])
    assert first["quiet"] == {"from": "22:00", "to": "07:00", "days": [0, 6], "through_severity": 3}
    assert (first["receivers"], second["receivers"]) == (None, [])
    path = f"/api/notify/rules/{first['rule_uuid']}"
    assert (await owner.get(path)).body == first

    receiver = await added(owner, name="guard")
    named = await rule(owner, receivers=["guard", receiver["receiver_uuid"]])
    assert named["receivers"] == [receiver["receiver_uuid"]]
    assert (await owner.ask("DELETE", f"/api/notify/rules/{named['rule_uuid']}")).status == 204

    changed = await owner.ask("PATCH", path, {"name": "always"})
    kept = {**first, "name": "always", "updated_at": changed.body["updated_at"]}
    assert changed.body == kept
    for asked, became in (
        ({"enabled": False, "quiet": None}, {"enabled": False, "quiet": None}),
        ({"primary_events": None, "min_severity": 3}, {"primary_events": None, "min_severity": 3}),
        ({"name": None, "enabled": None, "min_severity": None}, {}),
        ({}, {}),
        ({"receivers": []}, {"receivers": []}),
    ):
        changed = await owner.ask("PATCH", path, asked)
        kept = {**kept, **became, "updated_at": changed.body["updated_at"]}
        assert (changed.status, changed.body) == (200, kept)
    refused = await owner.ask("PATCH", path, {"primary_events": ["humna"]})
    assert (refused.status, refused.body["details"]["reason"]) == (400, "rule_event")
    order = {"rule_uuids": [second["rule_uuid"], first["rule_uuid"]]}
    moved = await owner.post("/api/notify/rules/order", order)
    assert [one["name"] for one in moved.body["rules"]] == ["rule", "always"]
    stale = await owner.post("/api/notify/rules/order", {"rule_uuids": [first["rule_uuid"]]})
    assert (stale.status, stale.body["details"]["reason"]) == (409, "rules_moved")

    assert (await owner.ask("DELETE", path)).status == 204
    assert [one["name"] for one in (await owner.get("/api/notify/rules")).body["rules"]] == ["rule"]
    assert (await owner.get(path)).status == 404


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"camera_ids": ["nowhere"]}, 400),
        ({"receivers": ["nobody"]}, 400),
        ({"sites": ["nowhere"]}, 404),
        ({"primary_events": ["human", "unicorn"]}, 400),
        ({"primary_events": ["none"]}, 400),
        ({"camera_ids": []}, 400),
        ({"min_severity": 4}, 400),
        ({"quiet": {"from": "7:00", "to": "08:00"}}, 400),
        ({"quiet": {"from": "07:00", "to": "08:00", "days": [7]}}, 400),
        ({"quiet": {"from": "07:00"}}, 400),
        ({"quite": None}, 400),
    ],
)
async def test_a_rule_that_makes_no_sense_is_refused(web: RunningWeb, values: dict[str, Any], status: int) -> None:
    owner = await web.owner()
    reply = await owner.post("/api/notify/rules", {"name": "rule", **values})
    assert reply.status == status, reply.content
    assert (await owner.get("/api/notify/rules")).body == {"rules": []}


async def test_an_event_that_there_is_not_is_named_with_those_there_are(web: RunningWeb) -> None:
    owner = await web.owner()
    asked = {"name": "rule", "primary_events": ["humna"]}
    refused = await owner.post("/api/notify/rules", asked, headers={"Accept-Language": "en"})
    assert "'humna'" in refused.body["message"]
    assert "human, animal, vehicle, hazard, camera_issue" in refused.body["message"]
    assert refused.body["details"]["reason"] == "rule_event"


async def test_a_preview_says_who_is_told_and_why_not(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    english, off = await added(owner, name="a"), await added(owner, name="b", enabled=False)
    quiet = await added(owner, name="c", language="ja")
    await rule(owner, receivers=[english["receiver_uuid"], off["receiver_uuid"]], name="day")
    await rule(owner, receivers=[quiet["receiver_uuid"]], quiet={"from": "00:00", "to": "00:00"}, name="never")
    await event(web)

    reply = await owner.get("/api/notify/preview?event=event-1")
    assert reply.status == 200, reply.content
    found = {one["name"]: one for one in reply.body["receivers"]}
    assert {name: (one["verdict"], one["rule"]) for name, one in found.items()} == {
        "a": ("send", "day"),
        "b": ("receiver_off", None),
        "c": ("quiet_hours", "never"),
    }
    assert found["a"]["title"] == "main 正門: Person detected"
    assert found["c"]["title"] == "main 正門：人を検知"
    assert found["c"]["why"]["label_ja"] == "静かな時間帯です"
    assert "face" not in str(reply.body).lower()

    key = (await web.store.read(receiver_keys))[0]
    sending = cooldowns.Sending(await home_of(web), key, 1, "human", "incident_opened", None)
    reserved = await web.store.write(cooldowns.reserve, sending, web.clock.now_ms())
    assert isinstance(reserved, cooldowns.Reserved)
    await web.store.write(cooldowns.sent, reserved, web.settings.notify, web.clock.now_ms())
    await web.store.write(cooldowns.held_back, await home_of(web), key, 1, web.clock.now_ms())
    again = (await owner.get("/api/notify/preview?event=event-1")).body["receivers"][0]
    assert (again["verdict"], again["until"]) == ("cooldown", web.clock.now_ms() + 300_000)
    assert again["held_back"] == 1
    assert again["lines"][-1].startswith("+1 more")
    assert (await owner.get("/api/notify/preview?event=nothing")).status == 404


async def receiver_keys(tx: Tx) -> list[int]:
    return [row["receiver_id"] for row in await tx.all("SELECT receiver_id FROM receivers ORDER BY name")]


async def test_snoozes(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    made = await owner.post("/api/snoozes", {"duration_sec": 3600, "camera_id": "cam_1", "reason": "工事"})
    assert made.status == 201, made.content
    assert (made.body["camera_id"], made.body["by"]) == ("cam_1", "owner")
    assert made.body["until"] == web.clock.now_ms() + 3_600_000
    assert (await owner.get("/api/snoozes")).body == {"snoozes": [made.body]}
    assert (await owner.ask("DELETE", f"/api/snoozes/{made.body['snooze_uuid']}")).status == 204
    assert (await owner.get("/api/snoozes")).body == {"snoozes": []}
    for wrong, status in (
        ({"duration_sec": 0}, 400),
        ({"duration_sec": 31 * 86_400}, 400),
        ({"duration_sec": 60, "camera_id": "cam_9"}, 404),
        ({"duration_sec": 60, "site": "nowhere"}, 404),
        ({"duration_sec": 60, "receiver_uuid": "nobody"}, 404),
    ):
        assert (await owner.post("/api/snoozes", wrong)).status == status, wrong
    assert (await owner.ask("DELETE", "/api/snoozes/none")).status == 404


async def test_a_viewer_changes_neither_rules_nor_snoozes(web: RunningWeb) -> None:
    owner = await web.owner()
    await web.store.write(set_role, Role.VIEWER.value)
    for path in ("/api/notify/rules", "/api/notify/preview?event=event-1"):
        assert (await owner.get(path)).status == 403
    assert (await owner.post("/api/notify/rules", {"name": "x"})).status == 403
    assert (await owner.post("/api/snoozes", {"duration_sec": 60})).status == 403
    assert (await owner.get("/api/snoozes")).status == 200
    assert (await owner.get("/api/notifications")).status == 200


async def test_sent_messages_are_listed_newest_first(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    await event(web)
    tenant_id, now_ms = await home_of(web), web.clock.now_ms()
    for number in range(5):
        camera = (1, 1) if number else (None, None)
        sent = Sent(tenant_id, number, 1, *camera, 1, None, "slack", f"text {number}", number)
        await web.store.write(notifications.sent, sent, None, None, now_ms + number // 2)
    first = (await owner.get("/api/notifications?limit=3")).body
    assert [one["body"] for one in first["notifications"]] == ["text 4", "text 3", "text 2"]
    assert first["notifications"][0]["event_uuid"] == "event-1"
    assert first["notifications"][0]["held_back"] == 4
    rest = (await owner.get(f"/api/notifications?limit=3&before={first['next_before']}")).body
    assert [one["body"] for one in rest["notifications"]] == ["text 1", "text 0"]
    assert rest["next_before"] is None
    one_camera = (await owner.get("/api/notifications?camera_id=cam_1")).body
    assert len(one_camera["notifications"]) == 4
    unknown = await owner.get("/api/notifications?camera_id=cam_2")
    assert (unknown.status, unknown.body["details"]["camera_id"]) == (404, "cam_2")
    assert (await owner.get("/api/notifications?before=nonsense")).status == 400
