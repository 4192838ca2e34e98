"""Errands through the API: who may ask for what, waiting for the answer, and the picture it brought."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

import camserver
from camserver.domain.people import Role
from camserver.objects.keys import errand_key
from camserver.services.web.messages import _JA_OF_ERRANDS, errand_message
from camserver.services.web.waits import Waits
from camserver.store import Tx, errand_orders, errands
from camserver.store.epochs import open_epoch
from camserver.store.errand_orders import AnswerRow, Sending
from camserver.store.errands import NewErrand
from camserver.store.workers import Registered, register
from tests.services.web.rig import Browser, RunningWeb
from tests.services.web.test_access import CAMERA, set_role
from tests.store.stage import registration

JPEG = b"\xff\xd8 an answer \xff\xd9"


async def owner_with_camera(web: RunningWeb) -> Browser:
    owner = await web.owner()
    assert (await owner.post("/api/cameras", CAMERA)).status == 201
    return owner


async def tenant(tx: Tx) -> int:
    row = await tx.one("SELECT min(tenant_id) AS tenant_id FROM tenants")
    assert row is not None
    return int(row["tenant_id"])


async def answer(web: RunningWeb, errand_uuid: str, **changes: object) -> None:
    """As control does it for a worker that was sent."""
    now_ms = web.clock.now_ms()
    tenant_id = await web.store.read(tenant)
    epoch_id = await web.store.write(open_epoch, "test", now_ms)
    worker: Registered = await web.store.write(
        register, tenant_id, registration("worker-1", "main", epoch_id), now_ms
    )
    errand_id = await web.store.read(errand_id_of, errand_uuid)
    await web.store.write(errand_orders.send, (Sending(errand_id, worker.worker_key, 1),), now_ms)
    key = errand_key(epoch_id, tenant_id, now_ms, errand_uuid, "image/jpeg")
    await web.objects.put(key, JPEG)
    row = AnswerRow(errand_uuid, True, "", '{"captured_at": 5}', key, len(JPEG), "image/jpeg", epoch_id)
    done = await web.store.write(
        errand_orders.answered,
        tenant_id,
        "worker-1",
        replace(row, **changes),  # type: ignore[arg-type]  # the names are its own
        now_ms,
    )
    assert done.recorded


async def errand_id_of(tx: Tx, errand_uuid: str) -> int:
    row = await tx.one("SELECT errand_id FROM errands WHERE errand_uuid = :errand_uuid", errand_uuid=errand_uuid)
    assert row is not None
    return int(row["errand_id"])


@pytest.mark.parametrize("errand", ["look", "recent-clip", "explain"])
async def test_a_camera_that_is_off_is_not_asked_for_anything(web: RunningWeb, errand: str) -> None:
    owner = await owner_with_camera(web)
    assert (await owner.ask("PATCH", "/api/cameras/cam_1", {"enabled": False})).status == 200
    refused = await owner.post(f"/api/cameras/cam_1/{errand}", None)
    assert (refused.status, refused.body["details"]["reason"]) == (409, "camera_off")
    assert "switched off" in refused.body["message"]
    # A probe is any worker's: so a camera is tried before it is switched on.
    assert (await owner.post("/api/cameras/cam_1/probe", {})).status == 202
    assert (await owner.ask("PATCH", "/api/cameras/cam_1", {"enabled": True})).status == 200
    assert (await owner.post(f"/api/cameras/cam_1/{errand}", None)).status == 202


async def test_the_log_says_what_somebody_was_sent_to(web: RunningWeb) -> None:
    owner = await owner_with_camera(web)
    [site] = (await owner.get("/api/sites")).body["sites"]
    asked = [
        ("/api/cameras/cam_1/recent-clip", None),
        ("/api/cameras/cam_1/probe", {}),
        (
            "/api/probes",
            {"source": {"url": "rtsp://viewer:hidden@192.0.2.7:554/user=viewer_password=hidden?pw=hidden"}},
        ),
        ("/api/discovery", {"hosts": ["192.0.2.8", "192.0.2.9"]}),
        ("/api/discovery", {"device": {"url": "192.0.2.10:8000", "user": "viewer", "password": "hidden"}}),
        ("/api/discovery", {"device": {"url": "192.0.2.12:80/user=admin_password=hidden"}}),
        ("/api/discovery", {}),
    ]
    for address, body in asked:
        assert (await owner.post(address, body)).status == 202, address
    entries = (await owner.get("/api/audit")).body["entries"]
    told = [
        (one["action"], one["object_kind"], one["object_id"], one["details"])
        for one in reversed(entries)
        if one["action"].startswith("errand_")
    ]
    of_camera, of_site = ("camera", "cam_1"), ("site", site["site_uuid"])
    assert told == [
        ("errand_clip", *of_camera, None),
        ("errand_probe", *of_camera, None),
        ("errand_probe", *of_site, {"name": "main", "host": "192.0.2.7:554"}),
        ("errand_discover", *of_site, {"name": "main", "host": "192.0.2.8, 192.0.2.9"}),
        ("errand_discover", *of_site, {"name": "main", "host": "192.0.2.10:8000"}),
        ("errand_discover", *of_site, {"name": "main", "host": "192.0.2.12:80"}),
        ("errand_discover", *of_site, {"name": "main"}),
    ]


async def test_a_viewer_asks_for_a_look_and_gets_the_picture(web: RunningWeb) -> None:
    viewer = await owner_with_camera(web)
    await web.store.write(set_role, Role.VIEWER.value)
    asked = await viewer.post("/api/cameras/cam_1/look", None)
    assert (asked.status, asked.body["state"], asked.body["camera_id"]) == (202, "waiting", "cam_1")
    assert web.bells.errands.is_rung  # control is told at once
    address = f"/api/errands/{asked.body['errand_uuid']}"
    assert (await viewer.get(address + "/picture")).status == 404
    await answer(web, asked.body["errand_uuid"])
    done = await viewer.get(address)
    assert (done.body["state"], done.body["result"], done.body["has_picture"]) == ("done", {"captured_at": 5}, True)
    picture = await viewer.get(address + "/picture")
    assert (picture.status, picture.content, picture.headers["Content-Type"]) == (200, JPEG, "image/jpeg")
    assert picture.headers["Cache-Control"] == "private, no-store"


async def test_a_viewer_asks_for_the_last_seconds(web: RunningWeb) -> None:
    viewer = await owner_with_camera(web)
    await web.store.write(set_role, Role.VIEWER.value)
    asked = await viewer.post("/api/cameras/cam_1/recent-clip?sec=20", None)
    assert (asked.status, asked.body["kind"], asked.body["state"]) == (202, "clip", "waiting")
    now_ms = web.clock.now_ms()
    request = json.loads(await web.store.read(request_of, asked.body["errand_uuid"]))
    assert request == {"from_ms": now_ms - 20_000, "to_ms": now_ms, "recent": True}
    await answer(web, asked.body["errand_uuid"], object_type="video/mp4")
    film = await viewer.get(f"/api/errands/{asked.body['errand_uuid']}/picture")
    assert (film.status, film.headers["Content-Type"]) == (200, "video/mp4")
    assert (await viewer.post("/api/cameras/cam_1/recent-clip?sec=61", None)).status == 400
    assert (await viewer.post("/api/cameras/cam_1/recent-clip?plays=vp9", None)).status == 400


async def test_a_browser_says_what_it_plays_of_the_last_seconds(web: RunningWeb) -> None:
    viewer = await owner_with_camera(web)
    for query, named in (("plays=h264", ["h264"]), ("plays=h264&plays=h265", ["h264", "hevc"])):
        asked = await viewer.post(f"/api/cameras/cam_1/recent-clip?{query}", None)
        assert json.loads(await web.store.read(request_of, asked.body["errand_uuid"]))["plays"] == named


async def request_of(tx: Tx, errand_uuid: str) -> str:
    row = await tx.one("SELECT request FROM errands WHERE errand_uuid = :errand_uuid", errand_uuid=errand_uuid)
    assert row is not None
    return str(row["request"])


async def test_who_waits_is_answered_when_it_is_over(web: RunningWeb) -> None:
    owner = await owner_with_camera(web)
    uuid = (await owner.post("/api/cameras/cam_1/look", None)).body["errand_uuid"]
    sleeping = web.clock.sleeping
    waiting = asyncio.create_task(owner.get(f"/api/errands/{uuid}?wait_sec=25"))
    await web.clock.until_sleeping(sleeping + 1)
    await answer(web, uuid, ok=False, message="401", object_key=None, object_type="", epoch_id=None)
    await web.clock.advance(1_000)
    reply = await waiting
    assert (reply.body["state"], reply.body["message"], reply.body["has_picture"]) == ("failed", "401", False)


async def test_waiting_ends_with_its_time_and_an_errand_with_its_own(web: RunningWeb) -> None:
    owner = await owner_with_camera(web)
    uuid = (await owner.post("/api/cameras/cam_1/look", None)).body["errand_uuid"]
    sleeping = web.clock.sleeping
    waiting = asyncio.create_task(owner.get(f"/api/errands/{uuid}?wait_sec=0.2"))
    await web.clock.until_sleeping(sleeping + 1)
    await web.clock.advance(1_000)
    assert (await waiting).body["state"] == "waiting"
    await web.clock.advance(60_000)
    reply = await owner.get(f"/api/errands/{uuid}?wait_sec=25")
    assert (reply.body["state"], reply.body["message"]) == ("expired", "no worker holds this camera now")
    japanese = await web.browser().get(f"/api/errands/{uuid}", {**web.local_admin, "Accept-Language": "ja"})
    assert japanese.body["message"] == "このカメラを担当しているワーカーがありません。"


def test_messages_that_workers_and_the_store_give_are_known_in_japanese() -> None:
    """Read from the sources, so that one that is changed there is noticed here."""
    folder = Path(camserver.__file__).parent
    sources = [*(folder / "services/worker").glob("errand*.py"), folder / "services/worker/camera.py"]
    text = " ".join(source.read_text() for source in [*sources, folder / "store/errands.py"])
    for message in _JA_OF_ERRANDS:
        assert f'"{message}"' in text, message
        assert errand_message(message, None, "ja") != message
        assert errand_message(message, None, "en") == message
    assert errand_message("x", {"said_ja": "はい"}, "ja") == "はい"
    assert errand_message("x", {"said_ja": ""}, "ja") == "x"


def test_who_finds_no_room_to_wait_is_not_kept() -> None:
    waits = Waits(waits_max=1)
    with waits.one_more() as first, waits.one_more() as second:
        assert (first, second) == (True, False)
    with waits.one_more() as again:
        assert again


@pytest.mark.parametrize("wait_sec", ["-1", "26", "nan", "inf", "x"])
async def test_waiting_is_bounded(web: RunningWeb, wait_sec: str) -> None:
    owner = await owner_with_camera(web)
    assert (await owner.get(f"/api/errands/x?wait_sec={wait_sec}")).status == 400


async def test_what_managers_ask_is_not_for_viewers(web: RunningWeb) -> None:
    owner = await owner_with_camera(web)
    explain = await owner.post("/api/cameras/cam_1/explain", None)
    assert (explain.status, explain.body["kind"]) == (202, "explain")
    uuid = explain.body["errand_uuid"]
    await answer(web, uuid)
    assert (await owner.get(f"/api/errands/{uuid}/picture")).status == 200
    await web.store.write(set_role, Role.VIEWER.value)
    assert (await owner.post("/api/cameras/cam_1/explain", None)).status == 403
    assert (await owner.get(f"/api/errands/{uuid}")).status == 403
    assert (await owner.get(f"/api/errands/{uuid}/picture")).status == 403


async def test_there_is_no_errand_of_nobody(web: RunningWeb) -> None:
    owner = await owner_with_camera(web)
    for reply in (
        await owner.post("/api/cameras/cam_9/look", None),
        await owner.get("/api/errands/0199aa00-0000"),
        await owner.get("/api/errands/0199aa00-0000/picture"),
    ):
        assert reply.status == 404


async def test_the_message_of_too_many_says_so(web: RunningWeb) -> None:
    owner = await owner_with_camera(web)
    tenant_id, now_ms = await web.store.read(tenant), web.clock.now_ms()
    for number in range(errands.UNFINISHED_MAX):
        errand = NewErrand(f"e{number}", "discover", "{}", now_ms + 60_000)
        await web.store.write(errands.add, tenant_id, 1, None, errand, now_ms)
    reply = await owner.post("/api/cameras/cam_1/look", None)
    assert (reply.status, reply.body["details"]["reason"]) == (503, "errands_full")
