"""The RTSP source against a server that nobody here wrote, with digest authentication."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from camserver.base.secrets import Secret
from camserver.domain.leases import Fault
from camserver.media.clips import read_clip
from camserver.media.packets import Miss
from camserver.media.rtsp_address import Login
from camserver.media.shots import VideoShot
from tests.fakes.gstreamer.camera import gstreamer_camera
from tests.rig.simulated import camera_source
from tests.rig.video_files import video_file

TIMEOUT_SEC = 60
USER, PASSWORD = "viewer", "word of 1 camera"


@pytest.fixture(scope="module")
def camera(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("gstreamer")
    video = video_file(folder / "a.mp4", fps=10, keyframes_apart=5, bf="0", shade=lambda number: 60 + 5 * number)
    with gstreamer_camera(read_clip(video), 10, USER, PASSWORD, folder) as url:
        yield url


@pytest.mark.parametrize("interval_ms", [1000, 60_000], ids=["held", "opened for each look"])
async def test_looks_over_more_than_a_turn(camera: str, interval_ms: int) -> None:
    source = camera_source(camera, Login(USER, Secret(PASSWORD)), interval_ms)
    moments, shades = [], set()
    for _ in range(6):
        shot = await asyncio.wait_for(source.grab(), TIMEOUT_SEC)
        assert isinstance(shot, VideoShot), shot
        moments.append(shot.boot_ms)
        picture = shot.decode(320)
        assert picture.size == (320, 180)
        # Each picture after a keyframe is 5 brighter, of limited range.
        shades.add(round(float(picture.gray(320).mean()) - 5 * 255 / 219 * (len(shot.packets) - 1)))
    await source.close()
    assert moments == sorted(set(moments))
    # Keyframes are the pictures 0, 5, 10 and 15: limited range 60, 85, 110 and 135.
    assert all(min(abs(shade - full) for full in (51, 80, 109, 139)) <= 2 for shade in shades)


@pytest.mark.parametrize("login", [None, Login(USER, Secret("another word"))])
async def test_wrong_login(camera: str, login: Login | None) -> None:
    source = camera_source(camera, login)
    answer = await asyncio.wait_for(source.grab(), TIMEOUT_SEC)
    await source.close()
    assert isinstance(answer, Miss)
    assert answer.fault is Fault.UNAUTHORIZED


async def test_unknown_path(camera: str) -> None:
    source = camera_source(camera + "/none", Login(USER, Secret(PASSWORD)))
    answer = await asyncio.wait_for(source.grab(), TIMEOUT_SEC)
    await source.close()
    assert isinstance(answer, Miss)
    # Their server asks for a login first and hides what it does not have from everybody else.
    assert answer.fault in (Fault.NOT_FOUND, Fault.UNAUTHORIZED)
