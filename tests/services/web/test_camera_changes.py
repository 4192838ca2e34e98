"""Cameras with their own values: added, changed, shown, and refused in words when they make no sense."""

from typing import Any

import pytest

from camserver.domain.hints import NAMES_MAX
from camserver.domain.people import Role
from camserver.domain.polygons import POINTS_MAX, POLYGONS_MAX
from camserver.store import Tx
from tests.services.web.rig import PASSWORD, Browser, Reply, RunningWeb
from tests.services.web.test_access import set_role

TRIANGLE = [[0.1, 0.1], [0.9, 0.1], [0.5, 0.9]]
CAMERA = {
    "camera_id": "cam_1",
    "name": "Gate",
    "source": {"url": "rtsp://viewer:p%40ss@192.0.2.1/main?channel=1"},
    "sub": {"url": "rtsp://192.0.2.1/sub"},
    "polling_interval_sec": 5,
    "rotation": 90,
    "privacy_masks": [TRIANGLE],
    "zones": [{"name": "門", "points": TRIANGLE}],
}


async def added(web: RunningWeb, **changes: object) -> Browser:
    owner = await web.owner()
    reply = await owner.post("/api/cameras", {**CAMERA, **changes})
    assert reply.status == 201, reply.content
    return owner


async def change(browser: Browser, **changes: object) -> Reply:
    return await browser.ask("PATCH", "/api/cameras/cam_1", changes)


async def test_a_camera_is_added_with_both_streams_and_its_own_values(web: RunningWeb) -> None:
    owner = await added(web)
    camera = (await owner.get("/api/cameras/cam_1")).body
    assert camera["source"] == {"type": "rtsp", "url": "rtsp://192.0.2.1/main?…", "has_credentials": True}
    assert camera["sub"] == {"type": "rtsp", "url": "rtsp://192.0.2.1/sub", "has_credentials": True}
    own = camera["own"]
    assert (own["rotation"], own["privacy_masks"], own["zones"]) == (90, [TRIANGLE], CAMERA["zones"])
    assert (own["transport"], own["ignore_masks"], own["clip_sec"], own["network_zone"]) == (
        None,
        None,
        None,
        "local",
    )
    assert camera["polling_interval_sec"] == 5


async def test_nobody_takes_a_camera_out_of_a_site_of_which_they_reach_single_cameras(web: RunningWeb) -> None:
    owner = await added(web)
    await owner.post("/api/sites", {"name": "annex"})
    grants = {"sites": ["annex"], "camera_ids": ["cam_1"]}
    guard = {"login": "guard", "role": "site_manager", "password": PASSWORD, "grants": grants}
    assert (await owner.post("/api/users", guard)).status == 201
    manager = web.browser()
    await manager.sign_in("guard")
    refused = await change(manager, site="annex")
    assert (refused.status, refused.body["details"]["reason"]) == (403, "site_of_others")
    assert (await owner.get("/api/cameras/cam_1")).body["site"] == "main"
    assert (await change(manager, name="Yard")).status == 200
    assert (await change(owner, site="annex")).status == 200


async def test_a_change_changes_what_it_names(web: RunningWeb) -> None:
    owner = await added(web)
    pin = ":".join(["AB"] * 32)
    reply = await change(
        owner, name="Yard", tls_pin=pin, rotation=None, mask_clock=False, zones=[], clip_sec=0, live_sound=False
    )
    assert reply.status == 200, reply.content
    own = reply.body["own"]
    assert (reply.body["name"], own["tls_pin"], own["rotation"]) == ("Yard", "ab" * 32, None)
    assert (own["mask_clock"], own["zones"], own["clip_sec"], own["live_sound"]) == (False, None, 0, False)
    assert own["privacy_masks"] == [TRIANGLE]
    assert (await owner.get("/api/cameras/cam_1")).body == reply.body
    assert (await change(owner, enabled=False, do_not_process=True)).body["do_not_process"] is True


async def test_names_in_hints_that_mean_nothing_are_told(web: RunningWeb) -> None:
    """They are no error: another analyzer may know them."""
    owner = await added(web, hints={"expected_objects": ["humann", "bottle", "car"]})
    assert (await owner.get("/api/cameras/cam_1")).body["unknown_hints"] == ["humann"]
    hints = {
        "expected_objects": ["human", "camera_issue"],
        "excluded_objects": ["animal.bird", "animal.birds"],
        "thresholds": {"persno": 0.5, "person": 0.5},
    }
    changed = await change(owner, hints=hints)
    assert (changed.status, changed.body["unknown_hints"]) == (200, ["animal.birds", "persno"])
    (listed,) = (await owner.get("/api/cameras")).body["cameras"]
    assert listed == changed.body
    assert (await change(owner, hints=None)).body["unknown_hints"] == []


async def test_hints_are_kept_as_a_whole(web: RunningWeb) -> None:
    owner = await added(web, hints={"preset": "parking"})
    own = (await owner.get("/api/cameras/cam_1")).body["own"]
    nothing_more = {"expected_objects": None, "excluded_objects": None, "thresholds": None, "shelf_roi": None}
    assert own["hints"] == {"preset": "parking", **nothing_more}
    hints = {"expected_objects": ["car", "animal.bird"], "thresholds": {"person": 0.6}, "shelf_roi": TRIANGLE}
    own = (await change(owner, hints=hints)).body["own"]
    assert own["hints"] == {**nothing_more, **hints, "preset": None}
    assert (await change(owner, name="Yard")).body["own"]["hints"] == own["hints"]
    assert (await change(owner, hints={})).body["own"]["hints"] is None
    await change(owner, hints=hints)
    assert (await change(owner, hints=None)).body["own"]["hints"] is None


async def test_credentials_are_taken_apart_and_never_shown(web: RunningWeb) -> None:
    owner = await added(web)
    shown = b"".join(
        [
            (await owner.get("/api/cameras")).content,
            (await change(owner, credentials={"user": "other", "password": "n3w pass"})).content,
            (await change(owner, source={"url": "rtsp://third:th1rd@192.0.2.1/main"})).content,
        ]
    )
    for secret in (b"p@ss", b"p%40ss", b"n3w pass", b"th1rd", b"viewer", b"other", b"channel=1"):
        assert secret not in shown, secret
    assert await web.store.read(addresses) == {"rtsp://192.0.2.1/main", "rtsp://192.0.2.1/sub"}
    gone = await change(owner, credentials=None)
    assert gone.body["source"]["has_credentials"] is False
    assert (await change(owner, sub=None)).body["sub"] is None


async def addresses(tx: Tx) -> set[str]:
    return {row["url"] for row in await tx.all("SELECT url FROM camera_streams LIMIT 10")}


async def test_another_host_does_not_get_the_old_login(web: RunningWeb) -> None:
    owner = await added(web, sub=None)
    moved = await change(owner, source={"url": "rtsp://192.0.2.99/main"})
    assert moved.body["source"]["has_credentials"] is False


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ignore_masks": [[[0, 0], [1, 1]]]}, "polygon_points"),
        ({"ignore_masks": [TRIANGLE, [[0, 0], [2, 0], [0, 1]]]}, "polygon_outside"),
        ({"privacy_masks": [[[0, 0], [0.5, 0.5], [1, 1]]]}, "polygon_line"),
        ({"zones": [{"name": "a", "points": TRIANGLE}] * 2}, "zone_names"),
        ({"ignore_masks": [TRIANGLE] * (POLYGONS_MAX + 1)}, "bad_fields"),
        ({"ignore_masks": [[[0, 0]] * (POINTS_MAX + 1)]}, "bad_fields"),
        ({"zones": [{"name": "", "points": TRIANGLE}]}, "bad_fields"),
        ({"hints": {"preset": "moon"}}, "bad_fields"),
        ({"hints": {"expected_objects": ["Car!"]}}, "bad_fields"),
        ({"hints": {"expected_objects": ["car"] * (NAMES_MAX + 1)}}, "bad_fields"),
        ({"hints": {"thresholds": {"person": 1.1}}}, "bad_fields"),
        ({"hints": {"time_band": "night"}}, "bad_fields"),
        ({"hints": {"shelf_roi": [[0, 0], [0.5, 0.5], [1, 1]]}}, "polygon_line"),
        ({"tls_pin": "abc"}, "bad_fields"),
        ({"rotation": 45}, "bad_fields"),
        ({"polling_interval_sec": 0.5}, "bad_fields"),
        ({"surprise": 1}, "bad_fields"),
        ({"source": {"url": "rtsp://192.0.2.1/a#b"}}, "url_form"),
        ({"source": {"url": "webcam:///etc/passwd"}}, "url_form"),
        ({"source": {"url": "rtsp://a:b@192.0.2.1/"}, "sub": {"url": "rtsp://a:c@192.0.2.1/"}}, "sub_other_login"),
        (
            {"source": {"url": "rtsp://a:b@192.0.2.1/"}, "credentials": {"user": "a", "password": "b"}},
            "url_two_credentials",
        ),
        ({"sub": {"url": "rtsp://192.0.2.2/sub"}, "credentials": {"user": "a", "password": "b"}}, "sub_other_host"),
        ({"site": "nowhere"}, "no_site"),
    ],
)
@pytest.mark.parametrize("language", ["en", "ja"])
async def test_what_makes_no_sense_is_refused_in_words(
    web: RunningWeb, changes: dict[str, Any], reason: str, language: str
) -> None:
    await added(web)
    headers = {**web.local_admin, "Accept-Language": language}
    before = (await web.browser().get("/api/cameras/cam_1", headers)).body
    reply = await web.browser().ask("PATCH", "/api/cameras/cam_1", changes, headers)
    assert reply.status in (400, 404), reply.content
    assert reply.body["details"]["reason"] == reason
    is_japanese = any("ぁ" <= letter <= "ん" for letter in reply.body["message"])
    assert is_japanese == (language == "ja"), reply.body["message"]
    assert (await web.browser().get("/api/cameras/cam_1", headers)).body == before


async def test_only_those_who_manage_cameras_change_and_see_that(web: RunningWeb) -> None:
    owner = await added(web)
    await web.store.write(set_role, Role.VIEWER.value)
    camera = (await owner.get("/api/cameras/cam_1")).body
    assert (camera["source"], camera["sub"], camera["own"]) == (None, None, None)
    assert (await change(owner, name="mine")).status == 403
    await web.store.write(set_role, Role.SITE_MANAGER.value)
    assert (await change(owner, name="ours")).status == 200
    for url in ("webcam:///dev/video0", "file:///etc/passwd", "test://still"):
        refused = await change(owner, source={"url": url})
        assert (refused.status, refused.body["details"]["reason"]) == (403, "source_needs_admin")
