"""Getting cameras in, as its user does it: the real commands, a running camserver, cameras that are strict."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from camserver.base.exits import Exit
from camserver.base.hosts import at_host
from camserver.services.simulator.cameras import CameraAsked
from camserver.services.simulator.service import Simulator
from tests.e2e.test_first_look import Installation, installation
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.fakes.onvif.device import FakeDevice, FakeProfile, fake_device
from tests.rig.processes import Launcher, Running
from tests.rig.simulated import PASSWORD, USER, simulated
from tests.rig.video_files import video_file


@pytest.fixture
async def simulator(tmp_path: Path) -> AsyncIterator[Simulator]:
    video = video_file(tmp_path / "cam.mp4", fps=10, seconds=1, keyframes_apart=5, bf="0", size=(640, 360))
    async with simulated(tmp_path / "cache", CameraAsked("cam", str(video))) as running:
        yield running


@pytest.fixture
async def device(simulator: Simulator) -> AsyncIterator[FakeDevice]:
    profiles = [
        FakeProfile("main", "H264", (640, 360), simulator.url("cam", "main")),
        FakeProfile("sub", "H264", (320, 180), simulator.url("cam", "sub")),
    ]
    made = FakeDevice(reference="urn:uuid:of-the-end-to-end-test", user=USER, password=PASSWORD, profiles=profiles)
    async with fake_device(made, in_group=True) as running:
        yield running


@pytest.fixture
async def house(launcher: Launcher, tmp_path: Path) -> AsyncIterator[Installation]:
    analyzer = await RemoteAnalyzer.start(launcher, tmp_path / "vocabulary.json")
    made = installation(launcher, tmp_path / "data", analyzer={"url": analyzer.url}, worker={"allow_loopback": True})
    up = await made.ready()
    yield made
    await up.stop()
    assert analyzer.process is not None
    await analyzer.process.stop()


async def asked(house: Installation, *arguments: str, code: Exit = Exit.OK) -> Any:
    """What a command says as JSON."""
    running: Running = house.launcher.camserver(*arguments, "--json", settings=house.settings)
    assert await running.wait() == code, running.output_tail()
    return json.loads(running.stdout_path.read_text().splitlines()[-1])


async def test_from_a_list_to_a_camera_that_moved(
    house: Installation, simulator: Simulator, device: FakeDevice, tmp_path: Path
) -> None:
    main, sub = (at_host(simulator.url("cam", stream), "localhost") for stream in ("main", "sub"))
    refused = await asked(house, "camera", "probe", main, code=Exit.CHECK_FAILED)
    assert refused["probes"][0]["result"]["cause"] == "needs_login"

    listed = tmp_path / "cameras.csv"
    listed.write_text(f'camera_id,name,url,sub_url,user,password\ncam_1,入口,{main},{sub},{USER},"{PASSWORD}"\n')
    done = await asked(house, "camera", "import", str(listed))
    assert [one["action"] for one in done["cameras"]] == ["added"]

    picture = tmp_path / "shown.jpg"
    probed = await asked(house, "camera", "probe", "cam_1", "--seconds", "1", "--picture", str(picture))
    assert [one["result"]["stream_kind"] for one in probed["probes"]] == ["main", "sub"]
    assert picture.read_bytes().startswith(b"\xff\xd8")
    assert picture.stat().st_mode & 0o777 == 0o600
    [camera] = await asked(house, "camera", "list")
    assert (camera["caps"]["codec"], camera["caps"]["res"]) == ("h264", "640x360")
    assert camera["caps"]["onvif"]["reference"] == device.reference
    assert camera["last_probe_at"] is not None
    table = await house.command("camera", "list")
    assert "入口" in table
    assert "640x360" in table
    assert "decode" in await house.command("camera", "test", "cam_1")

    found = await asked(house, "camera", "discover", "--seconds", "2", "--host", "127.0.0.1")
    assert device.reference in {one["reference"] for one in found["result"]["devices"]}
    moved = await asked(house, "camera", "rediscover", "cam_1", "--apply")
    [after] = await asked(house, "camera", "list")
    assert moved["address"] == "127.0.0.1"
    assert "//127.0.0.1:" in after["source"]["url"]
    assert "//127.0.0.1:" in after["sub"]["url"]
    assert after["source"]["has_credentials"]
