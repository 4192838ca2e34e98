"""go2rtc as a camera: other session descriptions and other packets than GStreamer's or ours, with either reader."""

import os
import platform
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from camserver.base.secrets import Secret
from camserver.domain.leases import Fault
from camserver.media.probe import ProbeWanted, probe
from camserver.media.rtsp import RtspPackets
from camserver.media.rtsp_address import Login, RtspAddress
from camserver.media.rtsp_ffmpeg import FfmpegPackets
from camserver.media.rtsp_lean.reader import LeanPackets
from camserver.services.simulator.cameras import CameraAsked
from tests.fakes.go2rtc.server import MissingGo2rtc, go2rtc
from tests.fakes.gstreamer.camera import gstreamer_pipelines
from tests.media.test_rtsp_foreign import (
    FPS,
    HERE,
    PASSWORD,
    SIZE,
    TIMEOUT_SEC,
    USER,
    boot_ms,
    check_pictures,
    either,
    ffmpeg,
    lean,
    miss,
    read,
)
from tests.rig.simulated import simulated
from tests.rig.video_files import video_file

SECONDS = 30


def shade(number: int) -> int:
    return 40 + number % 150


@contextmanager
def here_or_skipped() -> Iterator[None]:
    """A missing program skips the test, loudly; where CI is set, on a machine that can have it, it fails."""
    try:
        yield
    except MissingGo2rtc as error:
        if os.environ.get("CI", "").lower() in ("1", "true", "yes") and platform.machine() == "x86_64":
            pytest.fail(f"{error} (skipped where CI is not set)", pytrace=False)
        pytest.skip(str(error))


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[str]:
    """The camera that go2rtc shows."""
    video = video_file(tmp_path / "cam.mp4", "libx264", SECONDS, FPS, 10, SIZE, shade, bf="0")
    async with simulated(tmp_path / "cache", CameraAsked("cam", str(video)), with_login=False) as simulator:
        yield simulator.url("cam")


@pytest.mark.parametrize("reader", [lean, ffmpeg, either])
async def test_video(
    source: str, tmp_path: Path, reader: Callable[[str], LeanPackets | FfmpegPackets | RtspPackets]
) -> None:
    with here_or_skipped(), go2rtc({"cam": source}, tmp_path) as cameras:
        packets = await read(reader(f"{cameras}/cam"))
        assert packets[0].stream.codec == "h264"
        check_pictures(packets)


@pytest.mark.parametrize("reader", [lean, ffmpeg])
async def test_h265(tmp_path: Path, reader: Callable[[str], LeanPackets | FfmpegPackets]) -> None:
    video = tmp_path / "hevc.mp4"
    quiet = {"x265-params": "bframes=0:log-level=none"}
    video_file(video, "libx265", SECONDS, FPS, 10, SIZE, shade, **quiet)
    mount = f"( filesrc location={video} ! qtdemux ! h265parse ! rtph265pay name=pay0 pt=97 )"
    with (
        here_or_skipped(),
        gstreamer_pipelines({"/h265": mount}) as behind,
        go2rtc({"cam": f"{behind}/h265"}, tmp_path) as cameras,
    ):
        packets = await read(reader(f"{cameras}/cam"))
        assert packets[0].stream.codec == "hevc"
        check_pictures(packets)


async def test_what_it_has_not(source: str, tmp_path: Path) -> None:
    with here_or_skipped(), go2rtc({"cam": source, "dead": "rtsp://127.0.0.1:9/none"}, tmp_path) as cameras:
        assert (await miss(either(f"{cameras}/other"))).fault is Fault.NOT_FOUND
        # It knows the camera, and can't reach it.
        assert (await miss(either(f"{cameras}/dead"))).fault is Fault.NOT_FOUND


async def test_it_sends_nothing_over_udp_and_that_is_said(source: str, tmp_path: Path) -> None:
    with here_or_skipped(), go2rtc({"cam": source}, tmp_path) as cameras:
        refused = await miss(either(f"{cameras}/cam", transport="udp"))
        assert refused.fault is Fault.NO_VIDEO
        assert "UDP" in refused.message


async def test_basic_authentication(source: str, tmp_path: Path) -> None:
    host = own_address()
    with here_or_skipped(), go2rtc({"cam": source}, tmp_path, host, USER, PASSWORD) as cameras:
        packets = await read(either(f"{cameras}/cam"))
        check_pictures(packets)
        wrong = RtspPackets(RtspAddress(f"{cameras}/cam", Login(USER, Secret("wrong")), HERE), TIMEOUT_SEC, boot_ms)
        assert (await miss(wrong)).fault is Fault.UNAUTHORIZED


async def test_a_probe_of_it(source: str, tmp_path: Path) -> None:
    with here_or_skipped(), go2rtc({"cam": source}, tmp_path) as cameras:
        wanted = ProbeWanted(
            "rtsp",
            f"{cameras}/cam",
            None,
            connect_timeout_sec=TIMEOUT_SEC,
            keyframe_sec=TIMEOUT_SEC,
            measure_sec=0,
            addresses=HERE,
        )
        found = await probe(wanted)
        assert found.caps is not None, found.said.en
        assert (found.caps.codec, found.caps.width, found.caps.height) == ("h264", *SIZE)


def own_address() -> str:
    """One of this machine that is not loopback: from there go2rtc wants a login."""
    for addresses in psutil.net_if_addrs().values():
        for one in addresses:
            if one.family is socket.AF_INET and not one.address.startswith(("127.", "169.254.")):
                return one.address
    pytest.skip("this machine has no address but loopback")
