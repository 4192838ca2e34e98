"""What lists are narrowed by: all of them name what is not there, and refuse times in the wrong order."""

import pytest

from tests.services.web.rig import PASSWORD, RunningWeb
from tests.services.web.test_api import CAMERA

TIMES = [
    "/api/events",
    "/api/incidents",
    "/api/incidents/counts",
    "/api/statistics",
    "/api/deliveries",
    "/api/audit",
    "/api/search",
    "/api/search/facets",
    "/api/timeline",
    "/api/cameras/cam_1/looks",
    "/api/cameras/cam_1/frames",
]
UNKNOWN = [
    *((path, "camera_id", "cam_9", "no_camera") for path in TIMES[:4]),
    ("/api/jobs", "camera_id", "cam_9", "no_camera"),
    ("/api/notifications", "camera_id", "cam_9", "no_camera"),
    ("/api/search", "camera_id", "cam_9", "no_camera"),
    *((path, "site", "moon", "no_site") for path in TIMES[:4]),
    ("/api/events", "incident", "i9", "no_incident"),
    ("/api/deliveries", "receiver", "r9", "no_receiver"),
    ("/api/deliveries", "event", "e9", "no_event"),
    ("/api/deliveries", "parent", "d9", "no_delivery"),
]


async def test_times_in_the_wrong_order_are_refused(web: RunningWeb) -> None:
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    for path in TIMES:
        for times in ("from=2&to=1", "from=2&to=2"):
            refused = await owner.get(f"{path}?{times}")
            assert (refused.status, refused.body["details"]["reason"]) == (400, "times_order"), (path, times)
        assert (await owner.get(f"{path}?from=1&to=2")).status == 200, path
    refused = await owner.post("/api/deliveries/requeue", {"from_ms": 2, "to_ms": 1})
    assert (refused.status, refused.body["details"]["fields"]) == (400, ["from_ms", "to_ms"])


@pytest.mark.parametrize(("path", "name", "value", "reason"), UNKNOWN)
async def test_what_is_not_there_is_named_by_every_list(
    web: RunningWeb, path: str, name: str, value: str, reason: str
) -> None:
    owner = await web.owner()
    refused = await owner.get(f"{path}?{name}={value}")
    assert (refused.status, refused.body["details"]["reason"]) == (404, reason)
    assert value in refused.body["message"]


async def test_whoever_reaches_a_camera_narrows_by_where_it_is(web_on_each: RunningWeb) -> None:
    """They see the site in their lists, so it can't be unknown to the same lists."""
    web = web_on_each
    owner = await web.owner()
    assert (await owner.post("/api/sites", {"name": "moon"})).status == 201
    for camera_id, site in (("cam_1", "main"), ("cam_2", "main"), ("cam_3", "moon")):
        assert (await owner.post("/api/cameras", {**CAMERA, "camera_id": camera_id, "site": site})).status == 201
    guard = {"login": "guard", "password": PASSWORD, "grants": {"camera_ids": ["cam_1"]}}
    assert (await owner.post("/api/users", guard)).status == 201
    browser = web.browser()
    await browser.sign_in("guard")
    [site] = (await browser.get("/api/sites")).body["sites"]
    listing = [path for path in TIMES if path not in ("/api/deliveries", "/api/audit") and "cam_1" not in path]
    for path in (*listing, "/api/cameras", "/api/summaries"):
        assert (await browser.get(f"{path}?site={site['name']}")).status == 200, path
        refused = await browser.get(f"{path}?site=moon")
        assert (refused.status, refused.body["details"]["reason"]) == (404, "no_site"), path
    shown = (await browser.get("/api/cameras?site=main")).body["cameras"]
    assert [one["camera_id"] for one in shown] == ["cam_1"]
    timeline = (await browser.get("/api/timeline?site=main")).body["cameras"]
    assert [one["camera_id"] for one in timeline] == ["cam_1"]


async def test_a_cursor_is_its_own_lists(web: RunningWeb) -> None:
    owner = await web.owner()
    paths = ("events", "search", "incidents", "jobs", "deliveries", "notifications", "summaries", "audit", "shares")
    for letter, lists in zip("eeijdnsah", paths, strict=True):
        for other in paths:
            status = 200 if other == lists or {other, lists} == {"events", "search"} else 400
            assert (await owner.get(f"/api/{other}?before={letter}20260101.1")).status == status, (letter, other)


async def test_deliveries_of_a_receiver_that_is_not_there_are_not_queued_again(web: RunningWeb) -> None:
    owner = await web.owner()
    refused = await owner.post("/api/deliveries/requeue", {"receiver_uuid": "r9"})
    assert (refused.status, refused.body["details"]["reason"]) == (404, "no_receiver")
    assert (await owner.post("/api/deliveries/requeue", {})).body == {"count": 0}
