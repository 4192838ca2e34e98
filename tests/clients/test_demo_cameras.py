"""The demo's cameras, against a running web service and the simulator's own reading of its options."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from camserver.clients.demo_cameras import (
    DEMO_CAMERAS,
    INTERVAL_SEC,
    SIMULATOR_PORT,
    add_demo_cameras,
    simulator_options,
)
from camserver.clients.local_server import LocalServer
from camserver.commands.serving import simulate
from camserver.config.secret_files import LOCAL_ADMIN_TOKEN
from camserver.services.simulator.asked import parse_cameras
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.web import setup_link
from camserver.store import open_store
from tests.rig.clock import ManualClock
from tests.rig.templates import SqliteTemplate
from tests.services.web.rig import RunningWeb, running_web

OTHER_PORT = SIMULATOR_PORT + 1  # nobody listens on either
IDS = ["demo_street", "demo_yard", "demo_night", "demo_gate"]


@pytest.fixture
async def web(
    sqlite_template: SqliteTemplate, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RunningWeb]:
    monkeypatch.setattr(setup_link, "_terminal", lambda: None)
    url = sqlite_template.fresh()
    store = await open_store(url)
    async with running_web(store, clock, tmp_path) as running:
        yield running
    await store.close()
    sqlite_template.discard(url)


@pytest.fixture
def server(web: RunningWeb) -> LocalServer:
    return LocalServer(web.url, token_of(web))


def token_of(web: RunningWeb) -> Path:
    return web.settings.server.secrets_dir / LOCAL_ADMIN_TOKEN


def played(footage: Path | None, port: int = SIMULATOR_PORT) -> tuple[int, dict[str, CameraAsked]]:
    """Port and cameras, as `camserver simulate` understands its options."""
    given = simulate.make_context("simulate", simulator_options(footage, port)).params
    return given["port"], {camera.name: camera for camera in parse_cameras(given["cameras"], given["offline"])}


def test_the_street_is_real_footage(tmp_path: Path) -> None:
    footage = tmp_path / "a street = many.mp4"
    footage.touch()
    _, cameras = played(footage)
    assert cameras["street"].shows == str(footage)
    assert {name for name, camera in cameras.items() if camera.shows.startswith("scene:")} == {
        "yard",
        "night",
        "gate",
    }


def test_without_footage_every_camera_shows_a_scene() -> None:
    _, cameras = played(None)
    assert {camera.name: camera.shows for camera in cameras.values()} == {
        "street": "scene:moving",
        "yard": "scene:quiet",
        "night": "scene:night",
        "gate": "scene:moving",
    }


@pytest.mark.parametrize("footage", [None, Path(__file__)])
def test_one_camera_is_away_now_and_then(footage: Path | None) -> None:
    _, cameras = played(footage)
    away = {
        name: (one.offline_every_sec, one.offline_for_sec) for name, one in cameras.items() if one.offline_every_sec
    }
    assert away == {"gate": (90.0, 30.0)}


@pytest.mark.parametrize("port", [SIMULATOR_PORT, OTHER_PORT])
async def test_all_are_added_where_the_simulator_plays_them(server: LocalServer, port: int) -> None:
    assert await add_demo_cameras(server, port) == 4
    there = {camera["camera_id"]: camera for camera in await server.cameras()}
    assert sorted(there) == sorted(IDS)
    played_at, cameras = played(None, port)
    for wanted, stream in zip(DEMO_CAMERAS, cameras, strict=True):
        camera = there[wanted.camera_id]
        url = f"rtsp://127.0.0.1:{played_at}/{stream}"
        assert camera["source"] == {"type": "rtsp", "url": url, "has_credentials": False}
        assert (camera["name"], camera["enabled"]) == (wanted.name, True)
        assert camera["polling_interval_sec"] == INTERVAL_SEC
    assert there["demo_street"]["own"]["hints"]["excluded_objects"] == ["camera.moved", "camera.occluded"]
    assert there["demo_yard"]["own"]["hints"] is None


async def test_adding_twice_adds_nothing(server: LocalServer) -> None:
    await add_demo_cameras(server)
    before = await server.cameras()
    assert await add_demo_cameras(server) == 0
    assert await server.cameras() == before


async def test_those_with_an_address_of_before_stay_and_are_told(server: LocalServer) -> None:
    await add_demo_cameras(server)
    before = await server.cameras()
    with capture_logs() as lines:
        assert await add_demo_cameras(server, OTHER_PORT) == 0
    assert await server.cameras() == before
    told = [line for line in lines if line["log_level"] == "warning"]
    assert [line["camera_id"] for line in told] == IDS


async def test_one_that_was_removed_is_added_again_and_others_are_left_alone(server: LocalServer) -> None:
    await add_demo_cameras(server)
    await server.remove_camera("demo_night")
    await server.add_camera("entrance", "入口", "test://still", None, None)
    assert await add_demo_cameras(server) == 1
    assert sorted(camera["camera_id"] for camera in await server.cameras()) == sorted([*IDS, "entrance"])


class Overtaken(LocalServer):
    """Somebody else adds a camera between the list and what follows from it."""

    async def cameras(self) -> list[dict[str, Any]]:
        listed = await super().cameras()
        await LocalServer(self._address, self._token_file).add_camera("demo_yard", "Mine", "test://still", None, None)
        return listed


async def test_one_that_was_added_meanwhile_is_no_error_and_stays_as_it_is(
    web: RunningWeb, server: LocalServer
) -> None:
    assert await add_demo_cameras(Overtaken(web.url, token_of(web))) == 3
    there = {camera["camera_id"]: camera["name"] for camera in await server.cameras()}
    assert sorted(there) == sorted(IDS)
    assert there["demo_yard"] == "Mine"


async def test_two_at_once_add_each_camera_once(web: RunningWeb, server: LocalServer) -> None:
    other = LocalServer(web.url, token_of(web))
    added = await asyncio.gather(add_demo_cameras(server), add_demo_cameras(other))
    assert sum(added) == 4
    assert len(await server.cameras()) == 4


async def test_another_port_is_where_they_are_played_and_added(server: LocalServer) -> None:
    options = simulator_options(None, 18554)
    assert options[options.index("--port") + 1] == "18554"
    assert await add_demo_cameras(server, 18554) == 4
    urls = [camera["source"]["url"] for camera in await server.cameras()]
    assert sorted(urls) == sorted(f"rtsp://127.0.0.1:18554/{camera.stream}" for camera in DEMO_CAMERAS)


async def test_cameras_of_another_port_stay_and_are_told(
    server: LocalServer, caplog: pytest.LogCaptureFixture
) -> None:
    await add_demo_cameras(server)
    before = await server.cameras()
    assert await add_demo_cameras(server, 18554) == 0
    assert await server.cameras() == before
    assert caplog.text.count("camserver camera remove demo_") == 4
