"""Live view's routes with the seed's JSON: admission, heartbeats, release, status, streams, and who may."""

import re
from dataclasses import dataclass

import pytest

from camserver.domain.admission import AdmissionPolicy, Load
from camserver.services.web import live_rounds
from camserver.store import streamers, viewings
from camserver.store.streamers import StreamerReport
from camserver.store.tx import Tx
from tests.rig.polling import poll_async
from tests.services.web.rig import PASSWORD, Browser, RunningWeb
from tests.store.people_rows import count_rows

POLICY = AdmissionPolicy()
SOURCE = {"url": "rtsp://10.0.0.9/main"}
SUB = {"url": "rtsp://10.0.0.9/sub"}


async def report(web: RunningWeb, load: Load = Load(10, 20, 0), units: int = 50) -> None:  # noqa: B008 - frozen
    said = StreamerReport("streamer-1", "", 8082, "ws://127.0.0.1:8082/v1/feed", units, load)
    await web.store.write(streamers.check_in, said, POLICY, web.clock.now_ms())


@dataclass(frozen=True, slots=True)
class Place:
    web: RunningWeb
    owner: Browser

    async def person(self, login: str, language: str = "en", **more: object) -> Browser:
        body = {"login": login, "role": "viewer", "password": PASSWORD, "language": language, **more}
        reply = await self.owner.post("/api/users", body)
        assert reply.status == 201, reply.content
        browser = self.web.browser()
        assert (await browser.sign_in(login)).status == 201
        return browser


@pytest.fixture
async def place(web: RunningWeb) -> Place:
    owner = await web.owner()
    for camera_id in ("cam_1", "cam_2"):
        body = {"camera_id": camera_id, "name": camera_id.upper(), "source": SOURCE, "sub": SUB}
        assert (await owner.post("/api/cameras", body)).status == 201
    await report(web)
    return Place(web, owner)


async def lease(browser: Browser, camera_id: str = "cam_1", **more: object) -> str:
    reply = await browser.post("/api/modal/lease", {"camera_id": camera_id, **more})
    assert reply.status == 200, reply.content
    found: str = reply.body["lease_id"]
    return found


async def test_an_admitted_viewing_is_answered_with_the_seeds_fields(place: Place) -> None:
    reply = await place.owner.post("/api/modal/lease", {"camera_id": "cam_1", "quality": "sub"})
    assert reply.status == 200
    body = reply.body
    assert re.fullmatch(r"[0-9a-f-]{36}", body["lease_id"])
    assert (body["allowed_quality"], body["expires_at"]) == ("sub", "2026-01-01T00:05:00Z")
    host = place.web.url.partition("://")[2].partition(":")[0]
    assert body["stream_url"].startswith(f"ws://{host}:8082/stream/cam_1?lease={body['lease_id']}&sig=")
    assert body["hls_url"].startswith(f"http://{host}:8082/hls/{body['lease_id']}.")
    assert body["snapshot_url"].startswith(f"http://{host}:8082/snapshot/{body['lease_id']}.")
    assert (body["remaining_sec"], body["ttl_sec"], body["units"]) == (300, 300, 1)
    assert (body["heartbeat_interval_sec"], body["heartbeat_grace_sec"]) == (30, 45)
    assert (body["transcoded"], body["note"]) == (False, "")


async def test_control_is_told_of_it_at_once(place: Place) -> None:
    await lease(place.owner)
    assert place.web.bells.live.is_rung


async def test_heartbeats_keep_it_and_release_ends_it(place: Place) -> None:
    lease_id = await lease(place.owner)
    await place.web.clock.advance(30_000)
    reply = await place.owner.post(f"/api/modal/lease/{lease_id}/heartbeat", None)
    assert (reply.status, reply.body) == (200, {"ok": True, "remaining_sec": 270})
    for _ in range(2):
        reply = await place.owner.ask("DELETE", f"/api/modal/lease/{lease_id}")
        assert (reply.status, reply.body) == (200, {"ok": True})
    reply = await place.owner.post(f"/api/modal/lease/{lease_id}/heartbeat", None)
    assert (reply.status, reply.body["details"]["reason"]) == (404, "viewing_over")


async def test_nobody_keeps_or_ends_anothers_viewing(place: Place) -> None:
    viewer = await place.person("viewer")
    lease_id = await lease(place.owner)
    assert (await viewer.post(f"/api/modal/lease/{lease_id}/heartbeat", None)).status == 404
    assert (await viewer.ask("DELETE", f"/api/modal/lease/{lease_id}")).status == 200
    assert (await viewer.post("/v1/streams/start", {"lease_id": lease_id})).status == 404
    assert (await viewer.post("/v1/streams/stop", {"session_id": lease_id})).status == 200
    assert (await place.owner.post(f"/api/modal/lease/{lease_id}/heartbeat", None)).status == 200


async def test_refusals_have_the_seeds_codes_and_words(place: Place) -> None:
    viewer, reader = await place.person("viewer", "ja"), await place.person("reader")
    first = await lease(viewer)
    reply = await viewer.post("/api/modal/lease", {"camera_id": "cam_2"})
    assert (reply.status, reply.body["error_code"]) == (409, "USER_ALREADY_HAS_MODAL")
    assert reply.body["message"] == "既に別のカメラを表示中です"
    assert reply.body["details"]["lease_id"] == first
    assert (reply.body["details"]["camera_id"], reply.body["details"]["camera_name"]) == ("cam_1", "CAM_1")

    await report(place.web, units=16)  # one for viewings, and that one is taken
    for browser, words in (
        (reader, "limit of streams"),
        (await place.person("ja", "ja"), "ストリーム数が上限に達しています。"),
    ):
        reply = await browser.post("/api/modal/lease", {"camera_id": "cam_2"})
        assert (reply.status, reply.body["error_code"]) == (503, "OVER_CAPACITY")
        assert words in reply.body["message"]
        assert reply.headers["Retry-After"] == "10"
        assert reply.body["details"]["units_budget"] == 1

    await report(place.web, Load(99, 0, 0))
    reply = await reader.post("/api/modal/lease", {"camera_id": "cam_2"})
    assert (reply.status, reply.body["error_code"]) == (503, "SYSTEM_OVERLOAD")
    assert "high load" in reply.body["message"]
    reply = await (await place.person("ja2", "ja")).post("/api/modal/lease", {"camera_id": "cam_2"})
    assert reply.body["message"] == "サーバーが高負荷のためしばらく経ってからお試しください"

    await place.web.clock.advance(15_001)
    reply = await reader.post("/api/modal/lease", {"camera_id": "cam_2"})
    assert (reply.status, reply.body["error_code"]) == (503, "NO_STREAMER")


async def test_the_main_stream_falls_back_when_there_is_room_for_no_more(place: Place) -> None:
    await report(place.web, units=16)
    reply = await place.owner.post("/api/modal/lease", {"camera_id": "cam_1", "quality": "main"})
    assert (reply.body["allowed_quality"], reply.body["note"]) == ("sub", "lowered_no_budget")


async def test_streams_start_and_stop_under_the_same_admission(place: Place) -> None:
    reply = await place.owner.post("/v1/streams/start", {"camera_id": "cam_1"})
    assert reply.status == 200
    session_id = reply.body["session_id"]
    assert session_id == reply.body["lease_id"]
    assert session_id in reply.body["hls_url"]
    again = await place.owner.post("/v1/streams/start", {"lease_id": session_id})
    assert again.body == reply.body
    refused = await place.owner.post("/v1/streams/start", {"camera_id": "cam_2"})
    assert refused.body["error_code"] == "USER_ALREADY_HAS_MODAL"
    for body in ({}, {"camera_id": "cam_1", "lease_id": session_id}):
        assert (await place.owner.post("/v1/streams/start", body)).status == 400
    for wrong in ("x", "", session_id[:-1], f"{session_id}0", session_id.replace("-", "x")):
        assert (await place.owner.post("/v1/streams/stop", {"session_id": wrong})).status == 400, wrong
    assert (await place.owner.post("/v1/streams/stop", {"session_id": session_id})).body == {"ok": True}
    assert (await place.owner.post("/v1/streams/start", {"lease_id": session_id})).status == 404


async def test_the_status_tells_of_load_and_budget(place: Place) -> None:
    await lease(place.owner, quality="main")
    body = (await place.owner.get("/api/system/status")).body
    assert (body["healthy"], body["cpu_percent"], body["memory_percent"]) == (True, 10.0, 20.0)
    assert (body["active_modals"], body["modal_budget"], body["modal_budget_remaining"]) == (1, 35, 33)
    assert body["suggest_active"] is False
    assert (body["modal_requests_24h"], body["modal_rejections_24h"]) == (1, 0)
    await place.owner.post("/api/modal/lease", {"camera_id": "cam_2"})
    await report(place.web, Load(86, 76, 0))
    body = (await place.owner.get("/api/system/status")).body
    assert (body["healthy"], body["load_warnings"]) == (False, ["cpu", "memory"])
    assert (body["modal_requests_24h"], body["modal_rejections_24h"]) == (2, 1)
    await place.web.clock.advance(15_001)
    body = (await place.owner.get("/api/system/status")).body
    assert (body["healthy"], body["cpu_percent"], body["modal_budget_remaining"]) == (False, None, 0)


async def test_a_program_watches_with_its_token(place: Place) -> None:
    made = await place.owner.post("/api/tokens", {"name": "wall", "scopes": ["read"]})
    headers = {"Authorization": f"Bearer {made.body['secret']}"}
    program = place.web.browser()
    reply = await program.post("/api/modal/lease", {"camera_id": "cam_1"}, headers)
    assert reply.status == 200, reply.content
    assert (await program.post(f"/api/modal/lease/{reply.body['lease_id']}/heartbeat", None, headers)).status == 200


async def test_opening_a_live_view_is_written_down_once_in_a_while(place: Place) -> None:
    for _ in range(3):
        lease_id = await lease(place.owner)
        await place.owner.ask("DELETE", f"/api/modal/lease/{lease_id}")
    found = (await place.owner.get("/api/audit?action=live_opened")).body["entries"]
    assert [(one["action"], one["object_id"]) for one in found] == [("live_opened", "cam_1")]


async def test_signing_out_ends_the_viewing(place: Place) -> None:
    viewer = await place.person("viewer")
    await lease(viewer)
    now_ms = place.web.clock.now_ms()
    assert (await viewer.ask("DELETE", "/api/session")).status == 200
    assert (await place.web.store.read(viewings.valid_on, "streamer-1", (), now_ms)).viewings == ()
    await live_rounds.clean(place.web.store, now_ms)
    assert await place.web.store.read(count_rows, "modal_leases") == 0


async def test_the_cleanup_runs_every_ten_seconds(place: Place) -> None:
    """Seed 001, section 11.3: what nobody watches any more goes by itself, and so does what was measured."""
    web = place.web
    await web.store.write(_old_metric, web.clock.now_ms() - 24 * 3_600_000)
    await lease(place.owner)
    await web.clock.advance(45_000)
    assert await web.store.read(count_rows, "modal_leases") == 1

    # The store works outside of the clock, so a round may have begun before it was moved.
    async def is_gone() -> bool:
        await web.clock.advance(10_000)
        return await web.store.read(count_rows, "modal_leases") == 0

    await poll_async(is_gone, "the viewing goes")

    async def is_pruned() -> bool:
        await web.clock.advance(600_000)
        return await web.store.read(_metrics_before, web.clock.now_ms() - 24 * 3_600_000) == 0

    await poll_async(is_pruned, "what was measured goes")


async def _old_metric(tx: Tx, at_ms: int) -> None:
    await tx.run(
        "INSERT INTO admission_metrics (streamer_id, recorded_at, cpu_percent, memory_percent, requests_total, "
        "rejections_total) VALUES ('gone', :at_ms, 0, 0, 0, 0)",
        at_ms=at_ms,
    )


async def _metrics_before(tx: Tx, at_ms: int) -> int:
    row = await tx.one("SELECT COUNT(*) AS n FROM admission_metrics WHERE recorded_at < :at_ms", at_ms=at_ms)
    return 0 if row is None else int(row["n"])
