"""Characters that some database refuses are bad input on every one, wherever they stand."""

from typing import Any

import pytest

from camserver.store import Tx
from tests.services.web.rig import RunningWeb

ASKED = [
    "/api/cameras?after=%00",
    "/api/search?primary_event=%00",
    "/api/search?text=a%00b",
    "/api/sites/a%00b",
    "/share/a%00b",
]


async def test_nothing_is_asked_for_by_them(web_on_each: RunningWeb) -> None:
    owner = await web_on_each.owner()
    for path in ASKED:
        reply = await owner.get(path, {"Accept-Language": "ja"})
        assert (reply.status, reply.body["details"]) == (400, {"reason": "bad_character"}), path
        assert "U+0000" in reply.body["message"]
        assert "使えない文字" in reply.body["message"]


@pytest.mark.parametrize("name", ["a\0b", "\\\0", "a\ud800b"])
async def test_they_are_not_kept(web_on_each: RunningWeb, name: str) -> None:
    owner = await web_on_each.owner()
    for path, body in (
        ("/api/sites", {"name": name}),
        ("/api/cases", {"title": name}),
        ("/api/session", {"login": name, "password": name}),
    ):
        reply = await owner.post(path, body)
        assert 400 <= reply.status < 500, (path, reply.status, reply.content)


async def test_their_names_are_plain_text(web: RunningWeb) -> None:
    owner = await web.owner()
    reply = await owner.post("/api/cases", {"title": "about \\u0000 and %00"})
    assert (reply.status, reply.body["title"]) == (201, "about \\u0000 and %00")


CAMERA = {"camera_id": "cam_1", "name": "Gate", "source": {"url": "rtsp://10.0.0.9/"}}
# Where a name is given, with all that is needed besides.
NAMED: list[tuple[str, str, dict[str, Any], str]] = [
    ("POST", "/api/cameras", {**CAMERA, "camera_id": "cam_2"}, "name"),
    ("PATCH", "/api/cameras/cam_1", {}, "name"),
    ("POST", "/api/sites", {}, "name"),
    ("POST", "/api/cases", {}, "title"),
    ("POST", "/api/users", {"login": "somebody"}, "display_name"),
    ("POST", "/api/tokens", {}, "name"),
    ("POST", "/api/notify/rules", {}, "name"),
    ("POST", "/api/receivers", {"kind": "webhook", "secrets": {"url": "https://hook.example/x"}}, "name"),
    ("POST", "/api/tenants", {"admin": "kato"}, "name"),
    ("POST", "/api/snoozes", {"duration_sec": 60}, "reason"),
]


@pytest.mark.parametrize(("method", "path", "body", "field"), NAMED, ids=[" ".join(one[:2]) for one in NAMED])
async def test_a_name_is_one_line_that_shows_itself(
    web: RunningWeb, method: str, path: str, body: dict[str, Any], field: str
) -> None:
    """It stands in mails, in messages and on terminals, where it must not begin a line or steer anything."""
    owner = await web.owner()
    assert (await owner.post("/api/cameras", CAMERA)).status == 201
    for name in ("a\x1b[31mb", "gpj.\u202eexe", "\u200b"):
        reply = await owner.ask(method, path, {**body, field: name})
        assert reply.status == 400, (name, reply.content)
    assert (await owner.ask(method, path, {**body, field: "a\r\nBcc: x"})).status == 400
    assert (await owner.ask(method, path, {**body, field: "東京　本社"})).status in (200, 201)


NEEDED = [one for one in NAMED if one[3] not in ("display_name", "reason")]
ZONE = {"name": "Door", "points": [[0, 0], [1, 0], [1, 1]]}
NEEDED += [
    ("POST", "/api/cameras", {**CAMERA, "camera_id": "cam_3", "zones": [ZONE]}, "zones.name"),
    ("PATCH", "/api/cameras/cam_1", {"zones": [ZONE]}, "zones.name"),
]


async def call_zones_nothing(tx: Tx) -> None:
    await tx.run("UPDATE camera_overrides SET zones = replace(zones, 'Door', '  ')")


async def test_a_zone_that_was_called_nothing_is_still_shown(web: RunningWeb) -> None:
    owner = await web.owner()
    assert (await owner.post("/api/cameras", {**CAMERA, "zones": [ZONE]})).status == 201

    await web.store.write(call_zones_nothing)
    assert (await owner.get("/api/cameras/cam_1")).body["own"]["zones"][0]["name"] == "  "


@pytest.mark.parametrize(
    ("method", "path", "body", "field"), NEEDED, ids=[f"{one[0]} {one[1]} {one[3]}" for one in NEEDED]
)
async def test_a_name_that_must_not_be_empty_is_not_blank(
    web: RunningWeb, method: str, path: str, body: dict[str, Any], field: str
) -> None:
    owner = await web.owner()
    assert (await owner.post("/api/cameras", CAMERA)).status == 201
    for name in ("", "  ", "\u3000", "\u00a0 \u2003"):
        given = {"zones": [{**ZONE, "name": name}]} if field == "zones.name" else {field: name}
        for language in ("en", "ja"):
            reply = await owner.ask(method, path, {**body, **given}, {"Accept-Language": language})
            assert (reply.status, reply.body["message"].isascii()) == (400, language == "en"), (name, reply.body)
    given = {} if field == "zones.name" else {field: "Gate 2"}
    assert (await owner.ask(method, path, {**body, **given})).status in (200, 201)
