"""The whole product with cameras that nobody here wrote: GStreamer's RTSP server with digest authentication plays a
real street, and the real detector finds somebody in it. Once on each database, from an empty one.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from PIL import Image

from camserver.base import assets
from camserver.base.exits import Exit
from camserver.media.clips import encode_file, read_clip
from tests.e2e.installation import Installation, installation, seen, signed_in
from tests.fakes.gstreamer.camera import gstreamer_camera
from tests.rig.databases import DatabaseServer
from tests.rig.footage import asset
from tests.rig.processes import Launcher

USER, CAMERA_PASSWORD, WRONG_PASSWORD = "viewer", "p@ss: word/of 1 camera", "not that of the camera"
DATABASE = "camserver_cameras"
FPS = 25
SIZE = (640, 272)
# The footage is ten seconds long and the model busy; nothing here is about speed.
EVENT_TIMEOUT_SEC = 180.0


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a camera that shows the street, for who knows its password."""
    footage = asset(assets.FOOTAGE)
    folder: Path = tmp_path_factory.mktemp("street")
    # As a camera would send it: pictures in order, a keyframe every second.
    encode_file(footage, SIZE[0], folder / "street.mp4")
    with gstreamer_camera(read_clip(folder / "street.mp4"), FPS, USER, CAMERA_PASSWORD, folder) as url:
        yield url


@pytest.fixture
def store_settings(db_kind: str, request: pytest.FixtureRequest) -> Iterator[dict[str, object]]:
    """What an operator writes about the database: nothing for SQLite, else the address of an empty one."""
    if db_kind == "sqlite":
        yield {}
        return
    server: DatabaseServer = request.getfixturevalue(db_kind)
    server.create(DATABASE)
    yield {"url": server.url(DATABASE)}
    server.drop(DATABASE)


async def test_somebody_in_the_street_is_seen(
    launcher: Launcher, tmp_path: Path, street: str, store_settings: dict[str, object]
) -> None:
    asset(assets.MODEL)
    house = installation(launcher, tmp_path / "data", store=store_settings, gate={})
    up = await house.ready()
    await _add(house, "street", street, CAMERA_PASSWORD)
    await _add(house, "locked", street, WRONG_PASSWORD)
    async with signed_in(house, house.setup_token) as browser:
        await _expect_human(browser)
        await _expect_refused_password(browser)
    assert await up.stop() == Exit.OK
    output = up.stdout_path.read_text() + up.stderr_path.read_text()
    assert CAMERA_PASSWORD not in output
    assert WRONG_PASSWORD not in output
    await launcher.none_left()


async def _add(house: Installation, camera_id: str, url: str, password: str) -> None:
    options = ["--user", USER, "--password-stdin", "--interval-sec", "1"]
    assert "Added" in await house.command("camera", "add", camera_id, url, *options, stdin=f"{password}\n")


async def _expect_human(browser: aiohttp.ClientSession) -> None:
    """An event with somebody in it, where they are, and pictures for whoever has their signed links."""
    query = "/api/events?camera_id=street"
    page = await seen(browser, query, lambda body: bool(_humans(body)), EVENT_TIMEOUT_SEC)
    event_uuid = _humans(page)[0]["event_uuid"]
    async with browser.get(f"/api/events/{event_uuid}") as answer:
        event = await answer.json()
    frame = event["best_frame"]
    assert (event["camera_id"], frame["camera_id"], frame["status"]) == ("street", "street", "ok")
    assert "person" in {box["label"] for box in frame["boxes"]}
    assert frame["tags"]
    assert frame["verdict"] in ("analyze", "forced")
    assert (frame["full_w"], frame["full_h"]) == SIZE
    assert len(frame["infer_hash64_hex"]) == 16
    assert {"infer", "full"} == set(frame["pictures"])
    for kind in ("infer", "full"):
        picture = await _opened(browser, frame["frame_uuid"], kind)
        assert picture.size == (frame[f"{kind}_w"], frame[f"{kind}_h"])


def _humans(page: Any) -> list[Any]:
    return [event for event in page["events"] if event["primary_event"] == "human" and event["best_frame_uuid"]]


async def _opened(browser: aiohttp.ClientSession, frame_uuid: str, kind: str) -> Image.Image:
    """The picture behind a signed link, opened by somebody who never signed in."""
    async with browser.post("/api/media/link", json={"frame_uuid": frame_uuid, "kind": kind}) as answer:
        assert answer.status == 200, await answer.text()
        url = (await answer.json())["url"]
    assert parse_qs(urlsplit(url).query).keys() == {"exp", "sig", "kid"}
    async with aiohttp.ClientSession() as stranger, stranger.get(url) as answer:
        assert (answer.status, answer.content_type) == (200, "image/jpeg")
        picture = Image.open(io.BytesIO(await answer.read()))
    assert picture.format == "JPEG"
    picture.load()
    return picture


def _is_well(camera: Any) -> bool:
    well: bool = (camera["state"], camera["state_reason"], camera["latest"]["status"]) == ("ACTIVE", "", "ok")
    return well


async def _expect_refused_password(browser: aiohttp.ClientSession) -> None:
    """The camera's state says it in words, and its look by the code that the pages have words for."""
    camera = await seen(browser, "/api/cameras/locked", lambda body: body["latest"] and body["state_reason"])
    assert camera["state_reason"].startswith("unauthorized: ")
    assert "the camera refused user or password" in camera["state_reason"]
    assert (camera["latest"]["status"], camera["latest"]["error_code"]) == ("error", "unauthorized")
    assert camera["latest_picture"] is None
    # The other one is none the worse for it.
    await seen(browser, "/api/cameras/street", _is_well)
