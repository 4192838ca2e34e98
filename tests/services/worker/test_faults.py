"""Faults of cameras, injected while everything runs, and what people see of each: state, cause, event.

The whole way: cameras that fail over RTSP (simulated ones, and GStreamer's server), `camserver up` with its worker,
control, dispatcher and web on SQLite, and the API. Nothing here depends on speed: every wait ends with what is waited
for.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from camserver.base.secrets import Secret
from camserver.clients.local_server import LocalServer
from camserver.media.clips import read_clip
from camserver.media.scenes import black_clip, encode_scene
from camserver.services.simulator.cameras import CameraAsked, Shows
from camserver.services.simulator.service import Simulator
from tests.fakes.gstreamer.camera import FaultyCamera, faulty_camera
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher
from tests.rig.simulated import PASSWORD, USER, simulated

TIMEOUT_SEC = 240.0
PAUSE_SEC = 0.5
# The numbers of the rule made short, so that a test sees in seconds what takes minutes; the rule itself is tested
# with its own numbers in tests/domain.
SETTINGS: dict[str, dict[str, object]] = {
    "looks": {
        "polling_interval_sec": 1,
        # A camera that hangs is given up only after two of these.
        "connect_timeout_sec": 8.0,
        "down_after_silence_sec": 3,
        "down_report_after_sec": 1,
    },
    "health": {
        "failing_sec": 15,
        "covered_looks": 3,
        "covered_sec": 2,
        "covered_within_sec": 86_400,  # on a slow machine the picture may take long to turn black
        "frozen_looks": 6,
        "frozen_sec": 5,
        "moved_looks": 5,
        "moved_sec": 4,
    },
    "leases": {"camera_retry_cap_sec": 1.0, "auth_retry_sec": 1.0, "auth_retry_cap_sec": 1.0},
    "gate": {"rule": "threshold"},
    "worker": {"allow_loopback": True},
    "analyzer": {"url": "http://127.0.0.1:9"},  # nobody: health needs no analysis
    "streamer": {"port": 0},
    "log": {"format": "json"},
}

Camera = dict[str, Any]


@dataclass(slots=True)
class Town:
    """A running installation, seen through its API."""

    server: LocalServer

    async def add(self, camera_id: str, url: str) -> None:
        await self.server.add_camera(camera_id, camera_id, url, USER, Secret(PASSWORD))

    async def until(self, camera_id: str, what: str, is_so: Callable[[Camera], bool]) -> Camera:
        async def seen() -> Camera | None:
            camera = await self.server.camera(camera_id)
            await asyncio.sleep(PAUSE_SEC)
            return camera if is_so(camera) else None

        try:
            return await poll_async(seen, f"{camera_id} {what}", TIMEOUT_SEC)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it is {await self.server.camera(camera_id)}") from error

    async def until_up(self, *camera_ids: str) -> None:
        for camera_id in camera_ids:
            await self.until(camera_id, "up", lambda camera: is_well(camera))

    async def until_down(self, camera_id: str, causes: set[str]) -> None:
        """Down, told as an event, and for one of these causes."""
        await self.until(
            camera_id,
            f"offline for {causes}",
            lambda camera: (
                camera["health"]["state"] == "down"
                and kinds(camera) == ["offline"]
                and camera["health"]["cause"]["id"] in causes
            ),
        )

    async def until_reported(self, camera_id: str, fault: str) -> None:
        await self.until(camera_id, f"reported {fault}", lambda camera: camera["state_reason"].startswith(fault))

    async def until_issue(self, camera_id: str, kind: str) -> None:
        camera = await self.until(camera_id, kind, lambda camera: kinds(camera) == [kind])
        assert camera["health"]["state"] == "up"

    async def now_ms(self) -> int:
        return int((await self.server.get("/api/system/status"))["now"])

    async def events(self, **query: str) -> list[dict[str, Any]]:
        text = "&".join(f"{name}={value}" for name, value in query.items())
        answer = await self.server.get(f"/api/events?{text}")
        events: list[dict[str, Any]] = answer["events"]
        return events


def kinds(camera: Camera) -> list[str]:
    return [issue["id"] for issue in camera["health"]["issues"]]


def is_well(camera: Camera) -> bool:
    health = camera["health"]
    return bool(health["state"] == "up" and not health["issues"] and health["cause"] is None)


@asynccontextmanager
async def town(launcher: Launcher, data: Path) -> AsyncIterator[Town]:
    ports = {"web": free_port(), "control": free_port()}
    settings = {name: dict(values) for name, values in SETTINGS.items()}
    settings["server"] = {"data_dir": str(data)}
    for name, port in ports.items():
        settings[name] = {"port": port}
    up = launcher.camserver("up", settings=settings)
    url = f"http://{LOOPBACK}:{ports['web']}"
    await up.until_ready(f"{url}/readyz")
    yield Town(LocalServer(url, data / "secrets" / "local_admin_token"))
    await up.stop()


async def pictures_width(place: Town, camera_id: str) -> int:
    camera = await place.server.camera(camera_id)
    if camera["latest_picture"] is None:
        return 0
    frame = await place.server.get(f"/api/frames/{camera['latest_picture']['frame_uuid']}")
    return int(frame["full_w"])


async def until_width(place: Town, camera_id: str, width: int) -> None:
    async def is_so() -> bool:
        await asyncio.sleep(PAUSE_SEC)
        return await pictures_width(place, camera_id) == width

    await poll_async(is_so, f"{camera_id} with pictures {width} wide", TIMEOUT_SEC)


@dataclass(frozen=True, slots=True)
class Inflicted:
    """A fault of a simulated camera, by its name, and what people are to see."""

    causes: frozenset[str] = frozenset()
    issue: str = "offline"


SIMULATED = {
    # A connection that falls silent, and then new ones on which nothing comes.
    "stall": Inflicted(frozenset({"stalled", "timeout"})),
    "drop": Inflicted(frozenset({"no_video"})),
    "401": Inflicted(frozenset({"unauthorized"})),
    "slow": Inflicted(frozenset({"timeout"})),
    "black": Inflicted(issue="covered"),
    "frozen": Inflicted(issue="frozen"),
    "turned": Inflicted(issue="moved"),
}


async def inflict(simulator: Simulator, name: str) -> None:
    camera = simulator.camera(name)
    match name:
        case "stall":
            camera.faults.is_stalled = True
        case "drop":
            camera.faults.is_offline = True
            camera.cut_all()
        case "401":
            camera.faults.refuses_login = True
            camera.cut_all()
        case "slow":
            camera.faults.slow_sec = 3600.0
            camera.cut_all()
        case "black":
            await camera.show(Shows.BLACK)
        case "frozen":
            await camera.show(Shows.FROZEN)
        case "turned":
            await camera.show(Shows.TURNED)
        case "small":
            await camera.show(Shows.SMALL)


async def heal(simulator: Simulator, name: str) -> None:
    camera = simulator.camera(name)
    camera.faults = type(camera.faults)()
    camera.cut_all()
    await camera.show(Shows.USUAL)


async def test_each_fault_of_a_simulated_camera_is_seen_for_what_it_is(launcher: Launcher, tmp_path: Path) -> None:
    names = [*SIMULATED, "small", "well"]
    asked = [CameraAsked(name, "scene:quiet") for name in names]
    async with simulated(tmp_path / "cache", *asked) as simulator, town(launcher, tmp_path / "data") as place:
        for name in names:
            # Made once, before anybody waits for it.
            await simulator.camera(name).playback("main")
            await place.add(name, simulator.url(name))
        await place.add("nothing-there", f"rtsp://{LOOPBACK}:{free_port()}/cam")
        await place.add("wrong-path", simulator.url("well").replace("/well", "/unheard"))
        await place.until_up(*names)
        await until_width(place, "small", 960)
        began = str(await place.now_ms())
        for name in names:
            await inflict(simulator, name)
        await place.until_down("nothing-there", {"refused"})
        await place.until_down("wrong-path", {"not_found"})
        # The worker's own reports say the same as the looks.
        await place.until_reported("nothing-there", "refused")
        await place.until_reported("wrong-path", "not_found")
        await place.until_reported("401", "unauthorized")
        for name, wanted in SIMULATED.items():
            if wanted.issue == "offline":
                await place.until_down(name, set(wanted.causes))
            else:
                await place.until_issue(name, wanted.issue)
        await until_width(place, "small", 480)
        assert is_well(await place.server.camera("small"))
        assert is_well(await place.server.camera("well"))
        await _check_events(place, began)
        for name in SIMULATED:
            await heal(simulator, name)
        await place.until_up(*names)
        # One event each, over now; those that nobody healed go on.
        open_events = await place.events(state="open")
        assert {event["camera_id"] for event in open_events} == {"nothing-there", "wrong-path"}
        for name in SIMULATED:
            (event,) = await place.events(camera_id=name, **{"from": began})
            assert event["state"] == "closed"
            assert event["end_at"] >= event["last_seen_at"] > event["start_at"]


async def _check_events(place: Town, began: str) -> None:
    """One event since then for each camera in trouble, found by its tag, with its cause in plain words."""
    since = {"from": began}
    found = {event["camera_id"]: event for event in await place.events(tag="camera.offline", **since)}
    assert set(found) == {"stall", "drop", "401", "slow"}
    refused = found["401"]
    assert (refused["primary_event"], refused["severity_max"], refused["state"]) == ("camera_issue", 3, "open")
    assert refused["issue"]["label_ja"] == "カメラの通信断"
    assert refused["cause"]["label_en"] == "It refuses user name or password"
    assert refused["best_frame_uuid"] is not None
    (never_seen,) = await place.events(tag="camera.offline", camera_id="nothing-there")
    assert never_seen["best_frame_uuid"] is None
    (covered,) = await place.events(tag="camera.occluded", **since)
    (frozen,) = await place.events(tag="camera.frozen", **since)
    (moved,) = await place.events(tag="camera.moved", **since)
    assert [event["camera_id"] for event in (covered, frozen, moved)] == ["black", "frozen", "turned"]
    assert frozen["tags"][0]["label_en"] == "Picture frozen"
    assert len(await place.events(primary_event="camera_issue", **since)) == 7


@pytest.fixture
def gstreamer(tmp_path: Path) -> Iterator[dict[str, FaultyCamera]]:
    """A camera of GStreamer's for each fault that it can have."""
    clip = read_clip(encode_scene("quiet", 480, tmp_path))
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(faulty_camera(clip, 10, USER, PASSWORD_PLAIN, tmp_path / name))
            for name in ("stall", "drop", "401", "slow", "black", "small")
        }


# GStreamer compares digests of the bytes it is given; the hard one is tested with the simulator.
PASSWORD_PLAIN = "word of 1 camera"


async def test_each_fault_of_a_foreign_camera_is_seen_for_what_it_is(
    launcher: Launcher, tmp_path: Path, gstreamer: dict[str, FaultyCamera]
) -> None:
    async with town(launcher, tmp_path / "data") as place:
        for name, camera in gstreamer.items():
            await place.server.add_camera(name, name, camera.url, USER, Secret(PASSWORD_PLAIN))
        await place.until_up(*gstreamer)
        began = str(await place.now_ms())
        gstreamer["stall"].tell("stall")
        gstreamer["drop"].tell("stall")
        gstreamer["drop"].tell("drop")
        gstreamer["401"].tell("refuse")
        gstreamer["401"].tell("drop")
        gstreamer["slow"].tell("slow", "3600")
        gstreamer["slow"].tell("drop")
        gstreamer["black"].show(black_clip((480, 270), tmp_path))
        gstreamer["small"].show(read_clip(encode_scene("quiet", 240, tmp_path)))
        await place.until_down("stall", {"stalled", "timeout"})
        # It has nothing to describe, which its server says after a while, or says nothing.
        await place.until_down("drop", {"timeout", "no_video"})
        await place.until_down("slow", {"timeout"})
        await place.until_down("401", {"unauthorized"})
        await place.until_issue("black", "covered")
        await until_width(place, "small", 240)
        gstreamer["stall"].tell("go")
        gstreamer["drop"].tell("go")
        gstreamer["401"].tell("accept")
        gstreamer["slow"].tell("go")
        gstreamer["black"].show(read_clip(encode_scene("quiet", 480, tmp_path)))
        await place.until_up(*gstreamer)
        events = await place.events(primary_event="camera_issue", **{"from": began})
        assert sorted(event["camera_id"] for event in events) == ["401", "black", "drop", "slow", "stall"]
        assert {event["state"] for event in events} == {"closed"}
