"""The camera to watch now, over the API: what it is and why, chosen by hand, told on the feed."""

import pytest

from camserver.store import tenants
from camserver.store.tx import Tx
from tests.rig.polling import poll_async
from tests.services.web.rig import PASSWORD, Browser, RunningWeb
from tests.services.web.test_viewings import SOURCE, report
from tests.store.people_rows import EventRow, add_event
from tests.store.viewing_rows import viewing_rows


@pytest.fixture
async def owner(web: RunningWeb) -> Browser:
    browser = await web.owner()
    for camera_id in ("cam_1", "cam_2"):
        body = {"camera_id": camera_id, "name": camera_id.upper(), "source": SOURCE}
        assert (await browser.post("/api/cameras", body)).status == 201
    return browser


async def happens(web: RunningWeb, camera_id: str, uuid: str, primary: str, severity: int) -> None:
    tenant_id = await web.store.read(tenants.home)
    assert tenant_id is not None
    row = EventRow(primary_event=primary, severity_max=severity)
    await web.store.write(add_event, tenant_id, camera_id, uuid, web.clock.now_ms(), (), row)


async def suggested(browser: Browser) -> dict[str, object] | None:
    reply = await browser.get("/api/suggest")
    assert reply.status == 200
    found: dict[str, object] | None = reply.body["suggestion"]
    return found


async def test_what_happens_is_suggested_with_its_reason(web: RunningWeb, owner: Browser) -> None:
    assert await suggested(owner) is None
    await happens(web, "cam_2", "e1", "hazard", 3)
    found = await suggested(owner)
    now_ms = web.clock.now_ms()
    assert found == {
        "camera_id": "cam_2",
        "camera_name": "CAM_2",
        "site": found["site"] if found else "",
        "score": 160.0,
        "reason_code": "hazard",
        "reason": "Hazard detected (alarm)",
        "manual": False,
        "event_uuid": "e1",
        "since": now_ms,
        "until": now_ms + 60_000,
    }
    assert (await owner.get("/api/system/status")).body["suggest_active"] is True
    await web.clock.advance(60_000)
    assert await suggested(owner) is None
    assert (await owner.get("/api/system/status")).body["suggest_active"] is False


async def test_somebody_chooses_and_ends_it(web: RunningWeb, owner: Browser) -> None:
    reply = await owner.post("/api/suggest/manual", {"camera_id": "cam_1", "duration_sec": 600})
    assert reply.status == 200
    assert (reply.body["suggestion"]["camera_id"], reply.body["suggestion"]["manual"]) == ("cam_1", True)
    await happens(web, "cam_2", "e1", "hazard", 3)
    assert (await suggested(owner) or {})["camera_id"] == "cam_1"
    assert (await owner.ask("DELETE", "/api/suggest")).status == 204
    assert await suggested(owner) is None
    assert (await owner.ask("DELETE", "/api/suggest")).status == 204
    for duration_sec in (0, 3601):
        body = {"camera_id": "cam_1", "duration_sec": duration_sec}
        assert (await owner.post("/api/suggest/manual", body)).status == 400


async def test_viewers_see_it_and_do_not_choose(web: RunningWeb, owner: Browser) -> None:
    people = {"viewer": None, "narrow": {"camera_ids": ["cam_1"]}}
    browsers = {}
    for login, grants in people.items():
        body = {"login": login, "role": "viewer", "password": PASSWORD, "grants": grants}
        assert (await owner.post("/api/users", body)).status == 201
        browsers[login] = web.browser()
        await browsers[login].sign_in(login)
    await happens(web, "cam_2", "e1", "hazard", 3)
    assert (await suggested(browsers["viewer"]) or {})["camera_id"] == "cam_2"
    assert await suggested(browsers["narrow"]) is None
    asked = {"camera_id": "cam_1", "duration_sec": 60}
    assert (await browsers["viewer"].post("/api/suggest/manual", asked)).status == 403
    assert (await browsers["viewer"].ask("DELETE", "/api/suggest")).status == 403


async def test_what_somebody_chose_is_not_taken_away_by_who_can_not_see_it(web: RunningWeb, owner: Browser) -> None:
    body = {"login": "narrow", "role": "site_manager", "password": PASSWORD, "grants": {"camera_ids": ["cam_1"]}}
    assert (await owner.post("/api/users", body)).status == 201
    narrow = web.browser()
    await narrow.sign_in("narrow")
    choose = "/api/suggest/manual"
    assert (await owner.post(choose, {"camera_id": "cam_2", "duration_sec": 60})).status == 200
    refused = await narrow.post(choose, {"camera_id": "cam_1", "duration_sec": 60})
    assert (refused.status, refused.body["details"]["reason"]) == (409, "suggestion_taken")
    assert (await suggested(owner) or {})["camera_id"] == "cam_2"
    assert (await owner.post(choose, {"camera_id": "cam_1", "duration_sec": 60})).status == 200
    assert (await narrow.post(choose, {"camera_id": "cam_1", "duration_sec": 90})).status == 200
    await web.clock.advance(90_000)
    assert (await narrow.post(choose, {"camera_id": "cam_1", "duration_sec": 60})).status == 200


async def test_where_a_page_is_open_it_is_told_and_prewarmed(web: RunningWeb, owner: Browser) -> None:
    await report(web)
    async with owner.http.ws_connect(web.url + "/api/feed", headers={"Origin": web.url}) as socket:
        await socket.receive_json(timeout=60)
        await happens(web, "cam_2", "e1", "hazard", 3)

        async def is_prewarmed() -> bool:
            await web.clock.advance(1_000)
            return [kind for _, kind, _ in await web.store.read(viewing_rows)] == ["prewarm"]

        await poll_async(is_prewarmed, "the suggested stream is opened")
        assert "suggestion" in await web.store.read(_kinds)
    reply = await owner.post("/api/modal/lease", {"camera_id": "cam_2", "purpose": "suggest", "quality": "main"})
    assert reply.status == 200, reply.content
    assert [kind for _, kind, _ in await web.store.read(viewing_rows)] == ["suggest"]
    reply = await owner.post("/api/modal/lease", {"camera_id": "cam_1", "purpose": "suggest"})
    assert (reply.status, reply.body["error_code"]) == (409, "NOT_SUGGESTED")


async def _kinds(tx: Tx) -> list[str]:
    return [row["kind"] for row in await tx.all("SELECT kind FROM changes ORDER BY seq")]
