import asyncio
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from camserver.base.credentials import open_sealed
from camserver.base.errors import Bug, StoreUnavailable
from camserver.config import make_secrets
from camserver.domain.people import Role
from camserver.domain.phrases import WATCHED_LIVE
from camserver.objects.keys import Kind, frame_key
from camserver.services.web.messages import _JA_BY_REASON
from camserver.store import Store, Tx, cameras, open_store
from camserver.store.worker_news import StreamFault
from tests.rig.clock import ManualClock
from tests.rig.templates import PostgresTemplate
from tests.services.web.rig import Browser, LoggedLines, RunningWeb, running_web
from tests.store.people_rows import FrameRow, add_event, add_frame, add_incident, add_tenant, admin_of, audit_rows
from tests.store.test_cameras import CAMERA as ROW
from tests.store.test_cameras import stored_credentials

SECRET = "p4ss-w0rd/of the camera"
CAMERA = {
    "camera_id": "cam_1",
    "name": "正門",
    "source": {"type": "rtsp", "url": "rtsp://admin:p4ss-w0rd%2Fof%20the%20camera@10.0.0.9:554/live?token=abc123"},
    "polling_interval_sec": 30,
}


async def home_of(web: RunningWeb) -> int:
    return (await web.store.read(audit_rows))[0][0]


async def test_a_camera_is_added_listed_and_removed(web_on_each: RunningWeb) -> None:
    owner = await web_on_each.owner()
    made = await owner.post("/api/cameras", CAMERA)

    assert made.status == 201
    assert made.body["source"] == {
        "type": "rtsp",
        "url": "rtsp://10.0.0.9:554/live?…",
        "has_credentials": True,
    }
    assert (made.body["name"], made.body["site"], made.body["polling_interval_sec"]) == ("正門", "main", 30)
    assert (await owner.get("/api/cameras/cam_1")).body == made.body
    listed = (await owner.get("/api/cameras")).body
    assert (await owner.get("/api/cameras?text=cam_&site=main&enabled=true&health=unknown")).body == listed
    assert (await owner.get("/api/cameras?enabled=false")).body["cameras"] == []
    assert (await owner.get("/api/cameras?site=nowhere")).body["details"]["reason"] == "no_site"
    assert listed == {"cameras": [made.body], "next_after": None}
    assert (await owner.post("/api/cameras", CAMERA)).status == 409

    assert (await owner.ask("DELETE", "/api/cameras/cam_1")).status == 204
    assert (await owner.get("/api/cameras/cam_1")).status == 404
    assert (await owner.ask("DELETE", "/api/cameras/cam_1")).status == 404
    changes = (await owner.get("/api/changes?after=0")).body
    assert [(change["kind"], change["camera_id"]) for change in changes["changes"]] == [("camera", "cam_1")] * 2
    actions = [row[1] for row in await web_on_each.store.read(audit_rows)]
    assert actions == ["set_up", "sign_in", "camera_added", "camera_removed"]


async def test_a_cameras_password_is_stored_sealed_and_never_shown(web: RunningWeb, logged: LoggedLines) -> None:
    owner = await web.owner()
    replies = [await owner.post("/api/cameras", CAMERA)]
    tenant_id = await home_of(web)
    sealed = await web.store.read(stored_credentials)
    key = make_secrets(web.settings).credential_key_bytes()
    assert json.loads(open_sealed(key, tenant_id, "cam_1", sealed)) == {"user": "admin", "password": SECRET}
    assert SECRET.encode() not in sealed.ciphertext

    for path in ("/api/cameras", "/api/cameras/cam_1", "/api/changes?after=0", "/api/system/status", "/readyz"):
        replies.append(await owner.get(path))
    # Refused requests with a password in them, too: twice the same id, a wrong field, a cut-off body.
    replies.append(await owner.post("/api/cameras", CAMERA))
    replies.append(await owner.post("/api/cameras", {**CAMERA, "camera_id": "?"}))
    wrong_source = {"url": f"gopher://admin:{SECRET}@host/", "password": SECRET, "user": 5}
    replies.append(await owner.post("/api/cameras", {**CAMERA, "source": wrong_source}))
    cut_off = json.dumps(CAMERA)[:-5].encode()
    replies.append(
        await owner.ask("POST", "/api/cameras", data=cut_off, headers={"Content-Type": "application/json"})
    )
    assert [reply.status for reply in replies] == [201, 200, 200, 200, 200, 200, 409, 400, 400, 400]

    said = [reply.content.decode() + str(reply.headers) for reply in replies] + logged.lines
    assert len(logged.lines) > 5
    rows = str(await web.store.read(audit_rows)) + (await web.store.read(stored_url))
    for text in (*said, rows):
        assert SECRET not in text
        assert "p4ss-w0rd" not in text
    for text in said:
        assert "abc123" not in text


async def stored_url(tx: Tx) -> str:
    row = await tx.one("SELECT url FROM camera_streams")
    assert row is not None
    return str(row["url"])


async def test_a_viewer_sees_cameras_but_not_their_addresses(web: RunningWeb) -> None:
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    await web.store.write(set_role, Role.VIEWER.value)

    seen = (await owner.get("/api/cameras/cam_1")).body
    assert seen["name"] == "正門"
    assert seen["source"] is None


async def test_everybody_is_told_that_looks_wait_for_somebody_who_watches(web: RunningWeb) -> None:
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)

    async def shown() -> list[dict[str, Any] | None]:
        """On the camera's page, and in the list."""
        listed = (await owner.get("/api/cameras")).body["cameras"]
        return [(await owner.get("/api/cameras/cam_1")).body["stream_fault"], listed[0]["stream_fault"]]

    assert await shown() == [None, None]
    await web.store.write(set_fault, StreamFault("main", "no_video", "rtsp://10.0.0.1/…", 5))
    for fault in await shown():
        assert fault is not None
        assert fault["cause"]["id"] == "no_video"
    await web.store.write(set_role, Role.VIEWER.value)
    assert await shown() == [None, None], "how a camera's streams are is for those who manage it"
    await web.store.write(set_fault, StreamFault("main", WATCHED_LIVE, "somebody watches", 5))
    for fault in await shown():
        assert fault is not None
        assert (fault["cause"]["id"], fault["over_at"]) == ("watched_live", None)
        assert "watched live" in fault["cause"]["label_en"]
        assert "ライブ視聴中" in fault["cause"]["label_ja"]
    await web.store.write(set_fault, StreamFault("main", WATCHED_LIVE, "somebody watches", 5, over_at=6))
    assert await shown() == [None, None]


async def set_fault(tx: Tx, fault: StreamFault) -> None:
    matched = await tx.run("UPDATE camera_sessions SET stream_fault = :fault", fault=json.dumps(asdict(fault)))
    assert matched == 1


async def set_role(tx: Tx, role: str) -> None:
    await tx.run("UPDATE users SET role = :role", role=role)


async def test_files_and_test_pictures_need_a_system_admin(web: RunningWeb) -> None:
    owner = await web.owner()
    local = {**CAMERA, "source": {"url": "file:///srv/pictures"}}
    await web.store.write(set_role, Role.SITE_MANAGER.value)
    refused = await owner.post("/api/cameras", local)
    assert (refused.status, refused.body["details"]["reason"]) == (403, "source_needs_admin")
    assert (await owner.post("/api/cameras", CAMERA)).status == 201

    await web.store.write(set_role, Role.SYSTEM_ADMIN.value)
    assert (await owner.post("/api/cameras", {**local, "camera_id": "cam_2"})).status == 201


MALFORMED: list[tuple[dict[str, object], str]] = [
    ({"camera_id": ""}, "body.camera_id"),
    ({"camera_id": "../etc"}, "body.camera_id"),
    ({"camera_id": "cam~1"}, "body.camera_id"),
    ({"camera_id": "c" * 65}, "body.camera_id"),
    ({"name": ""}, "body.name"),
    ({"polling_interval_sec": 0}, "body.polling_interval_sec"),
    ({"source": {"url": "x" * 2000}}, "body.source.url"),
    ({"sauce": 1}, "body.sauce"),
]


async def test_a_malformed_camera_is_refused_naming_the_field(web: RunningWeb) -> None:
    owner = await web.owner()
    for changes, field in MALFORMED:
        reply = await owner.post("/api/cameras", {**CAMERA, **changes})
        assert reply.status == 400
        assert [problem["field"] for problem in reply.body["details"]["fields"]] == [field]
    assert (await owner.get("/api/cameras")).body["cameras"] == []


async def test_another_tenants_things_are_not_found(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await web.owner()
    foreign = await web.store.write(add_tenant, "other", web.clock.now_ms())
    theirs = web.store.as_(admin_of(foreign.tenant_id))
    await theirs.write(cameras.add, replace(ROW, camera_id="cam_x"), "", web.clock.now_ms())
    await web.store.write(add_frame, FrameRow(foreign.tenant_id, "cam_x", web.clock.now_ms(), "f1"))
    await web.store.write(add_event, foreign.tenant_id, "cam_x", "e1", web.clock.now_ms())
    await web.store.write(add_incident, foreign.tenant_id, "cam_x", "i1", web.clock.now_ms())

    for path in (
        "/api/cameras/cam_x",
        "/api/cameras/cam_x/latest",
        "/api/cameras/cam_x/latest.jpg",
        "/api/events/e1",
        "/api/events/e1/frames",
        "/api/frames/f1",
        "/api/frames/f1/picture",
        "/api/incidents/i1",
    ):
        assert (await owner.get(path)).status == 404, path
    assert (await owner.ask("DELETE", "/api/cameras/cam_x")).status == 404
    assert (await owner.get("/api/cameras")).body["cameras"] == []
    assert (await owner.post("/api/media/link", {"frame_uuid": "f1"})).status == 404
    assert (await owner.get("/api/events?camera_id=cam_x")).status == 404
    assert (await owner.get("/api/incidents")).body["incidents"] == []
    assert (await owner.get("/api/changes?after=0")).body["changes"] == []
    assert (await owner.get("/api/system/status")).body["cameras"] == 0


async def test_the_newest_look_and_its_picture(web: RunningWeb) -> None:
    owner = await web.owner()
    tenant_id = await home_of(web)
    await owner.post("/api/cameras", CAMERA)
    assert (await owner.get("/api/cameras/cam_1/latest")).status == 404
    assert (await owner.get("/api/cameras/cam_1/latest.jpg")).status == 404

    now_ms = web.clock.now_ms()
    await web.store.write(add_frame, FrameRow(tenant_id, "cam_1", now_ms, "f1", epoch_id=7))
    await web.objects.put(frame_key(7, tenant_id, 1, now_ms, "f1", Kind.INFER), b"\xff\xd8 a picture")
    await web.store.write(add_frame, FrameRow(tenant_id, "cam_1", now_ms + 1, "f2", "error", None, None))

    look = (await owner.get("/api/cameras/cam_1/latest")).body
    assert (look["frame_uuid"], look["status"], look["has_picture"]) == ("f2", "error", False)
    assert (await owner.get("/api/cameras")).body["cameras"][0]["latest"] == look
    picture = await owner.get("/api/cameras/cam_1/latest.jpg")
    assert (picture.content, picture.headers["Content-Type"]) == (b"\xff\xd8 a picture", "image/jpeg")
    assert picture.headers["X-Captured-At"] == str(now_ms)
    unchanged = await owner.get("/api/cameras/cam_1/latest.jpg", {"If-None-Match": picture.headers["ETag"]})
    assert (unchanged.status, unchanged.content) == (304, b"")
    assert (await web.browser().get("/api/cameras/cam_1/latest.jpg")).status == 401


async def test_events_are_paged_newest_first(web: RunningWeb) -> None:
    owner = await web.owner()
    tenant_id = await home_of(web)
    await owner.post("/api/cameras", CAMERA)
    for number in range(5):
        await web.store.write(add_event, tenant_id, "cam_1", f"e{number}", 1000 + number)

    first = (await owner.get("/api/events?limit=3")).body
    second = (await owner.get(f"/api/events?limit=3&before={first['next_before']}")).body
    assert [event["event_uuid"] for event in (*first["events"], *second["events"])] == ["e4", "e3", "e2", "e1", "e0"]
    assert second["next_before"] is None
    detail = (await owner.get("/api/events/e2")).body
    assert detail == {
        **first["events"][2],
        "incident": None,
        "best_frame": None,
        "clip": None,
        "llm_review": None,
        "scores": [],
    }
    assert (await owner.get("/api/events?before=made-up")).status == 400
    assert (await owner.get("/api/events?limit=9999")).status == 400


async def test_a_cursor_that_is_too_old_asks_for_a_resync(web: RunningWeb) -> None:
    owner = await web.owner()
    for number in range(3):
        await owner.post("/api/cameras", {**CAMERA, "camera_id": f"cam_{number}"})
    await web.store.write(prune_first)

    page = (await owner.get("/api/changes?after=0")).body
    assert page == {"changes": [], "last_seq": 3, "resync": True}
    page = (await owner.get("/api/changes?after=1&limit=1")).body
    assert [change["seq"] for change in page["changes"]] == [2]
    assert (page["last_seq"], page["resync"]) == (2, False)
    assert (await owner.get("/api/changes")).status == 400


async def prune_first(tx: Tx) -> None:
    await tx.run("DELETE FROM changes WHERE seq = 1")


async def test_the_status_counts(web_on_each: RunningWeb, db_kind: str) -> None:
    owner = await web_on_each.owner()
    await owner.post("/api/cameras", CAMERA)
    status = (await owner.get("/api/system/status")).body
    assert (status["store"], status["cameras"], status["sessions"]) == (db_kind, 1, {"ORPHANED": 1})
    assert (status["unfinished_jobs"], status["open_events"], status["ready"]) == ({}, 0, True)
    assert status["now"] == web_on_each.clock.now_ms()


async def test_alive_and_ready(web: RunningWeb) -> None:
    browser = web.browser()
    assert (await browser.get("/healthz")).body == {"status": "alive"}
    assert (await browser.get("/readyz")).status == 200
    web.ready.clear("web", "the database is away")
    waiting = await browser.get("/readyz")
    assert waiting.status == 503
    assert waiting.body == {"ready": False, "checks": {"web": "the database is away"}}
    assert (await browser.get("/healthz")).status == 200


async def hold(tx: Tx, entered: asyncio.Event, leave: asyncio.Event) -> None:
    """Keeps a connection. Only on a database whose operations run in this process."""
    entered.set()
    await leave.wait()


async def test_an_exhausted_pool_is_a_503_that_says_so(
    postgres_template: PostgresTemplate, clock: ManualClock, tmp_path: Path
) -> None:
    url = postgres_template.fresh()
    store = await open_store(url, pool_size=1, acquire_timeout_sec=0.1)
    async with running_web(store, clock, tmp_path) as web:
        owner = await web.owner()
        entered, leave = asyncio.Event(), asyncio.Event()
        holding = asyncio.create_task(store.read(hold, entered, leave))
        await entered.wait()
        busy = await owner.get("/api/cameras", {"Accept-Language": "en"})
        # What needs no database goes on.
        assert (await owner.get("/healthz")).status == 200
        leave.set()
        await holding
        assert (await owner.get("/api/cameras")).status == 200
    await store.close()
    postgres_template.discard(url)

    assert (busy.status, busy.headers["Retry-After"]) == (503, "1")
    assert busy.body["error_code"] == "store_busy"
    assert "busy" in busy.body["message"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StoreUnavailable("connect to db.internal as camserver failed"), 503, "store_unavailable"),
        (Bug("row 17 is broken in db.internal"), 500, "error"),
        (RuntimeError("db.internal"), 500, "error"),
    ],
)
async def test_what_went_wrong_inside_is_logged_and_not_told(
    web: RunningWeb,
    logged: LoggedLines,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    status: int,
    code: str,
) -> None:
    owner = await web.owner()

    async def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cameras, "page", failing)
    reply = await owner.get("/api/cameras")
    assert (reply.status, reply.body["error_code"]) == (status, code)
    assert "db.internal" not in reply.content.decode()
    assert [line for line in logged.lines if "db.internal" in line]


async def test_messages_are_in_the_readers_language(web: RunningWeb) -> None:
    stranger = web.browser()
    english = await stranger.get("/api/cameras", {"Accept-Language": "en-GB,ja;q=0.5"})
    japanese = await stranger.get("/api/cameras", {"Accept-Language": "ja"})
    assert english.body["error_code"] == japanese.body["error_code"] == "unauthenticated"
    assert "sign in" in english.body["message"]
    assert japanese.body["message"] == "サインインしてください。"

    owner = await web.owner()
    # What is asked for counts, else the person's own language, which is English here.
    for asked in ({}, {"Accept-Language": "de"}):
        missing = await owner.get("/api/cameras/none", asked)
        assert "no camera 'none'" in missing.body["message"]
    missing = await owner.get("/api/cameras/none", {"Accept-Language": "ja"})
    assert missing.body["message"].startswith("カメラ「none」はありません。")
    missing = await stranger.get("/api/cameras/none", {**web.local_admin, "Accept-Language": "ja"})
    assert missing.body["message"].startswith("カメラ「none」はありません。")


def test_every_japanese_text_is_japanese() -> None:
    for reason, text in _JA_BY_REASON.items():
        assert any("\u3040" <= character <= "\u30ff" for character in text), reason


async def test_unknown_addresses_and_methods(web: RunningWeb) -> None:
    browser = web.browser()
    assert (await browser.get("/api/no-such")).body["details"]["reason"] == "no_route"
    assert (await browser.get("/api/cameras/")).status == 404
    wrong = await browser.ask("PUT", "/api/cameras", headers=web.local_admin)
    assert (wrong.status, wrong.body["error_code"]) == (405, "wrong_method")


async def test_the_access_log_has_no_query(web: RunningWeb, logged: LoggedLines) -> None:
    await web.browser().get("/api/changes?after=5&code=hunter22")
    lines = [line for line in logged.lines if "/api/changes" in line and "camserver" in line]
    assert lines
    assert not [line for line in lines if "hunter22" in line]


async def test_a_graceful_stop_ends_the_service(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> None:
    async with running_web(sqlite_store, clock, tmp_path) as web:
        browser = Browser(web.url)
        assert (await browser.get("/healthz")).status == 200
    with pytest.raises(OSError, match="onnect"):
        await browser.get("/healthz")
    await browser.http.close()
