"""The errands probe and discover, on simulated cameras and an ONVIF device, as a worker does them."""

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from camserver.base.clock import StoreClock
from camserver.base.hosts import at_host
from camserver.base.secrets import Secret
from camserver.clients.onvif_media import Profile
from camserver.domain.diagnosis import Cause
from camserver.domain.looks import LookPolicy
from camserver.media.addresses import AddressPolicy
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.simulator.service import Simulator
from camserver.services.worker import errand_discover, errand_probe
from camserver.services.worker.doors import Doors, place_of
from camserver.services.worker.errand_discover import choose, discover_handler
from camserver.services.worker.errand_probe import probe_handler
from camserver.services.worker.errands import ErrandDone
from camserver.wire.errands import JPEG
from camserver.wire.worker import Errand, Source
from tests.fakes.onvif.device import FakeDevice, FakeProfile, fake_device
from tests.rig.ports import free_port
from tests.rig.simulated import PASSWORD, USER, simulated
from tests.rig.video_files import video_file

ANYWHERE = AddressPolicy(allow_loopback=True)
CLOCK = StoreClock()


@pytest.fixture
async def simulator(tmp_path: Path) -> AsyncIterator[Simulator]:
    video = video_file(tmp_path / "cam.mp4", fps=10, seconds=1, keyframes_apart=5, bf="0", size=(640, 360))
    async with simulated(tmp_path / "cache", CameraAsked("cam", str(video))) as running:
        yield running


@pytest.fixture
async def device(simulator: Simulator) -> AsyncIterator[FakeDevice]:
    """The same camera by ONVIF, with the same login."""
    profiles = [
        FakeProfile("main", "H264", (640, 360), simulator.url("cam", "main")),
        FakeProfile("sub", "H264", (320, 180), simulator.url("cam", "sub")),
    ]
    async with fake_device(FakeDevice(user=USER, password=PASSWORD, profiles=profiles)) as running:
        yield running


def errand(kind: Any = "probe", url: str | None = None, camera_id: str | None = None, **params: Any) -> Errand:
    source = None
    if url is not None:
        kind_of_source: Any = url.partition(":")[0]
        source = Source(type=kind_of_source, url=url, user=USER, password=Secret(PASSWORD))
    return Errand(errand_id="1", kind=kind, camera_id=camera_id, source=source, params=params, left_ms=120_000)


async def run(asked: Errand, device: FakeDevice | None = None) -> ErrandDone:
    port = 9 if device is None else device.udp_port
    if asked.kind == "discover":
        return await discover_handler(ANYWHERE, CLOCK, port)(asked)
    return await probe_handler(ANYWHERE, CLOCK, Doors(CLOCK, LookPolicy()), port)(asked)


async def test_a_source_is_probed(simulator: Simulator) -> None:
    done = await run(errand(url=simulator.url("cam"), measure_sec=1.0))
    assert done.ok
    assert done.content_type == JPEG
    assert done.body.startswith(b"\xff\xd8")
    assert done.result["cause"] == ""
    stream = done.result["stream"]
    assert isinstance(stream, dict)
    assert (stream["codec"], stream["width"], stream["height"], stream["transport"]) == ("h264", 640, 360, "tcp")
    caps = done.result["caps"]
    assert isinstance(caps, dict)
    assert (caps["codec"], caps["res"]) == ("h264", "640x360")


async def test_a_camera_is_probed_and_asked_who_it_is(simulator: Simulator, device: FakeDevice) -> None:
    done = await run(errand(url=simulator.url("cam"), camera_id="cam", measure_sec=0), device)
    caps = done.result["caps"]
    assert isinstance(caps, dict)
    assert caps["onvif"] == {"reference": device.reference, "hardware": "DS-2CD2043G2", "mac": "00:11:22:aa:bb:cc"}


async def test_another_device_at_the_address_does_not_become_the_camera(
    simulator: Simulator, device: FakeDevice
) -> None:
    asked = errand(url=simulator.url("cam"), camera_id="cam", measure_sec=0, reference="urn:uuid:known-before")
    done = await run(asked, device)
    assert done.ok
    assert done.result["other_reference"] == device.reference
    caps = done.result["caps"]
    assert isinstance(caps, dict)
    assert "onvif" not in caps


async def test_the_sub_stream_leaves_what_is_known_of_the_main_one(simulator: Simulator) -> None:
    done = await run(errand(url=simulator.url("cam", "sub"), stream="sub", measure_sec=0))
    caps = done.result["caps"]
    assert isinstance(caps, dict)
    assert set(caps) == {"sub"}


async def test_a_picture_that_nobody_may_see_is_not_sent(simulator: Simulator) -> None:
    done = await run(errand(url=simulator.url("cam"), measure_sec=0, hide_picture=True))
    assert (done.ok, done.body, done.content_type) == (True, b"", "")


async def test_a_picture_is_turned_and_what_is_private_is_black(simulator: Simulator) -> None:
    everything = [[0, 0], [1, 0], [1, 1], [0, 1]]
    done = await run(errand(url=simulator.url("cam"), measure_sec=0, rotation=90, privacy_masks=[everything]))
    picture = Image.open(io.BytesIO(done.body)).convert("L")
    assert picture.size == (360, 640)
    assert max(picture.tobytes()) < 20
    strange = await run(errand(url=simulator.url("cam"), measure_sec=0, privacy_masks="what"))
    assert (strange.ok, strange.body) == (True, b"")


async def test_a_device_that_bears_one_stream_is_asked_for_one(simulator: Simulator) -> None:
    """A stream that is only kept open gives way, and the probe waits until it has."""
    doors = Doors(CLOCK, LookPolicy())
    held = doors.door(place_of("rtsp", simulator.url("cam"), "nvr"), 1)
    await held.enter()
    held.opened()
    asked: list[str] = []

    def give_way() -> None:
        asked.append("to leave")
        held.leave()

    held.on_asked = give_way
    probe = errand(url=simulator.url("cam"), measure_sec=0, device="nvr", streams_max=1)
    done = await probe_handler(ANYWHERE, CLOCK, doors)(probe)
    assert done.ok
    assert asked == ["to leave"]
    # Its door is gone again, so the held one gets back in.
    await held.enter()
    assert held.is_inside


async def test_what_is_wrong_is_said_in_both_languages(simulator: Simulator) -> None:
    simulator.camera("cam").faults.refuses_login = True
    done = await run(errand(url=simulator.url("cam")))
    assert not done.ok
    assert done.result["cause"] == Cause.WRONG_PASSWORD
    assert "パスワード" in str(done.result["said_ja"])
    assert done.message == done.result["said_en"]
    assert PASSWORD not in repr(done)


async def test_a_camera_that_moved_is_probed_where_it_is(simulator: Simulator, device: FakeDevice) -> None:
    old = at_host(simulator.url("cam"), "192.0.2.77")
    done = await run(
        errand(url=old, camera_id="cam", measure_sec=0, at="127.0.0.1", reference=device.reference), device
    )
    assert done.ok, done.message
    assert done.result["at"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"reference": "urn:uuid:another"}, Cause.OTHER_DEVICE),
        ({"password": "another"}, Cause.LOGIN_NOT_PROVEN),
        ({"auth": "none"}, Cause.LOGIN_NOT_PROVEN),  # who takes every login proves nothing
    ],
)
async def test_a_login_does_not_go_to_a_device_that_is_not_the_camera(
    simulator: Simulator, device: FakeDevice, change: dict[str, str], cause: Cause
) -> None:
    reference = device.reference
    for name, value in change.items():
        setattr(device, name, value)
    asked = errand(url=simulator.url("cam"), camera_id="cam", at="127.0.0.1", reference=reference)
    done = await run(asked, device)
    assert (done.ok, done.result["cause"], done.body) == (False, cause, b"")
    if cause is Cause.OTHER_DEVICE:
        assert device.asked == []


async def test_a_camera_that_is_gone_is_seen_elsewhere_without_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errand_probe, "REFERENCE_SEC", 20.0)
    gone = f"rtsp://127.0.0.2:{free_port()}/live"
    async with fake_device(FakeDevice(reference="urn:uuid:of-one-that-moved"), in_group=True) as moved:
        done = await run(errand(url=gone, measure_sec=0, reference=moved.reference))
    assert (done.ok, done.result["cause"], done.result["seen_at"]) == (False, Cause.PORT_CLOSED, "127.0.0.1")
    assert moved.asked == []


async def test_a_host_where_nothing_answers_or_none_may_be(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errand_probe, "REFERENCE_SEC", 0.2)
    silent = await run(errand(url=simulator.url("cam"), camera_id="cam", at="127.0.0.1", reference="x"))
    assert silent.result["cause"] == Cause.OTHER_DEVICE
    link_local = await run(errand(url=simulator.url("cam"), camera_id="cam", at="169.254.169.254", reference="x"))
    assert link_local.result["cause"] == Cause.NOT_ALLOWED


async def test_a_probe_without_a_source_says_so() -> None:
    assert not (await run(errand())).ok


async def test_devices_are_listed(device: FakeDevice) -> None:
    done = await run(
        errand("discover", wait_sec=20, hosts=["127.0.0.1", "nonsense"], reference=device.reference), device
    )
    [found] = [one for one in _dicts(done.result["devices"]) if one["address"] == "127.0.0.1"]
    assert (found["reference"], found["name"]) == (device.reference, "Entrance camera")


async def test_more_devices_than_an_answer_holds(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errand_discover, "DEVICES_MAX_BYTES", 10)
    done = await run(errand("discover", wait_sec=20, hosts=["127.0.0.1"], reference=device.reference), device)
    assert done.result == {"devices": [], "left_off": 1}


async def test_the_streams_of_a_device(device: FakeDevice) -> None:
    done = await run(errand("discover", url=f"http://127.0.0.1:{device.http_port}"))
    assert done.ok, done.message
    assert [one["token"] for one in _dicts(done.result["profiles"])] == ["main", "sub"]
    assert (done.result["main"], done.result["sub"]) == ("main", "sub")
    assert PASSWORD not in repr(done)


async def test_a_device_that_refuses_or_is_none(device: FakeDevice) -> None:
    device.password = "another"
    refused = await run(errand("discover", url=device.service))
    assert refused.result["cause"] == Cause.WRONG_PASSWORD
    absent = await run(errand("discover", url="http://127.0.0.1:1/"))
    assert absent.result["cause"] == Cause.NO_ONVIF
    assert "ONVIF" in str(absent.result["said_ja"])


def test_the_streams_that_fit() -> None:
    def profile(width: int, url: str = "") -> Profile:
        return Profile(str(width), "", "H264", width, width // 2, None, None, url or f"rtsp://h/{width}")

    large, small, tiny = profile(2560), profile(704), profile(320)
    assert choose([tiny, large, small]) == (large, small)
    assert choose([large]) == (large, None)
    assert choose([large, profile(640, large.stream_url)]) == (large, None)
    assert choose([]) == (None, None)


def _dicts(value: object) -> list[dict[str, Any]]:
    assert isinstance(value, list)
    return value
